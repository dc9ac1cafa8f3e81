//! Synonyms, and words that carry no meaning in a query.

use std::collections::HashMap;

use crate::stem::stem;

/// Each line is a group of words that people use for the same thing when they search for a tool or
/// describe one. It covers what tools do in general: actions, objects, and technical abbreviations.
const GROUPS: &str = "
create add new make insert
delete remove drop erase destroy clear purge
update edit modify change alter amend patch
get fetch retrieve read obtain load download
list show display enumerate browse view
search find lookup query locate discover explore
send deliver post publish submit share
run execute launch start invoke trigger
stop end terminate cancel abort kill halt
copy duplicate clone
move rename transfer migrate
check verify validate test inspect audit review
compare difference diff contrast
convert transform translate change
translate translation translator language multilingual
summarize summary summarization condense digest abstract recap tldr
analyze analysis analytics examine evaluate assess insight
calculate compute calculator math arithmetic equation formula
generate create produce compose make
write author compose draft
book reserve reservation booking
buy purchase shop shopping order store
sell sale selling
recommend suggest recommendation suggestion advise
schedule plan planner calendar agenda appointment
remind reminder alert notify notification
learn study education course lesson tutorial teach teacher tutor
explain describe clarify explanation
connect link attach join
upload import
export download save
filter sort select
summarize outline
chat talk converse conversation message
assign allocate delegate
track monitor watch follow observe
convert converter conversion
predict forecast prediction projection
optimize improve enhance optimization
visualize chart graph plot diagram visualization draw
repository repo
configuration config setting preference option
directory dir folder
database db sql table
document doc file
documentation docs manual guide reference
message msg
image img picture photo photograph artwork
screenshot screen capture snapshot
information info detail data fact
authentication auth login signin credential
environment env
parameter param argument
temperature temp
application app software program
advertisement ad advert advertising marketing campaign
vehicle car automobile auto
movie film cinema
television tv show series
song music track audio playlist lyrics
video clip youtube
book novel literature
game gaming play
quiz trivia puzzle riddle
restaurant dining eat meal
recipe cook cooking ingredient cuisine dish
food grocery nutrition meal
drink cocktail beverage
diet calorie nutrition
exercise workout fitness gym training
health medical medicine wellness clinical
doctor physician
disease illness symptom condition diagnosis
drug medication pharmacy
hotel lodging accommodation stay
flight airline plane airfare airplane
airport flight
travel trip vacation holiday tour itinerary journey tourism
train rail railway bus transit
map location place address geography route direction
navigate direction route
weather forecast temperature climate rain
news headline article press
job career employment vacancy hiring recruit work
resume cv
company business firm corporation enterprise
stock share equity ticker
finance financial investment invest market
cryptocurrency crypto bitcoin coin token blockchain
price cost fee rate pricing
cheap affordable discount deal coupon bargain promo
money currency cash payment
pay payment checkout
tax taxation
bank banking account
loan mortgage credit
insurance coverage
house home property apartment estate realty
rent lease rental
event concert ticket show
sport match team league score
football soccer
law legal lawyer attorney contract
email mail inbox gmail
phone call telephone
text sms
person people user contact member
customer client user
friend buddy companion
child kid
pet dog cat animal
gift present
clothes clothing fashion outfit apparel wear
beauty makeup cosmetics skincare
website site webpage page web url
url link uri
internet web online
search engine
browser chrome
scrape crawl extract
code program programming source develop
developer programmer engineer
bug error issue defect problem exception
issue ticket task
pull merge request pr mr
branch fork
commit change revision
test testing spec
deploy release publish
server host instance
container docker
cluster kubernetes
cloud aws azure
log logging trace
metric statistic stats measurement
report summary
spreadsheet excel sheet csv
presentation slide powerpoint slideshow
pdf document
science scientific research
paper research academic scholar publication article journal
university college school
math mathematics algebra
history historical
astrology horoscope zodiac
tarot fortune divination
dream sleep
religion bible spiritual
poem poetry
story tale narrative fiction
joke funny humor
name title
idea brainstorm inspiration
design layout template
logo brand branding icon
color colour palette
font typography
speech voice speak audio
transcript transcribe transcription subtitle caption
dictionary definition meaning define vocabulary
grammar spelling proofread
keyword seo
social twitter instagram facebook
plant garden gardening
environment sustainability carbon emission
energy electricity power
space astronomy nasa planet
quote quotation
random dice
time clock timezone date
today daily
password secret credential
security vulnerability threat
encrypt encryption cipher
domain dns hostname
ip network
qr barcode
compress zip archive
memory remember recall
note memo
todo task checklist
meeting conference
project milestone
team group channel
comment reply feedback review
rating review
subscribe subscription
near nearby local
best top popular trending
latest recent current new
";

/// Words of a query that do not say what is searched for.
const EMPTY: &str = "
the of and in to is for on with as by at from it its an be are was were been being am this that these those
or if but not no nor so than then there here where when what which who whom whose why how do does did done doing
have has had having can could will would shall should may might must i me my mine we us our ours you your yours he him
his she her hers they them their theirs one ones some any all each every both few more most other another such only own
same too very just also about into over after before again further once during while up down out off above below between
through because until against please kindly help need want like wish looking look interested wondering curious hoping
thinking considering trying try able possible possibly let lets know tell give gimme hey hi hello thanks thank okay ok
yes assist assistance something anything someone somebody thing things way ways really actually currently now
im ive id ill dont doesnt didnt cant couldnt wouldnt shouldnt isnt arent wasnt whats hows wheres theres
don doesn didn couldn wouldn shouldn isn aren wasn etc
";

/// The synonyms of each stem, as stems.
pub(crate) fn table() -> HashMap<String, Vec<String>> {
    let mut table: HashMap<String, Vec<String>> = HashMap::new();
    for group in GROUPS.lines() {
        let stems: Vec<String> = group.split_whitespace().map(stem).collect();
        for one in &stems {
            let known = table.entry(one.clone()).or_default();
            for other in &stems {
                if other != one && !known.contains(other) {
                    known.push(other.clone());
                }
            }
        }
    }
    table
}

/// Tests if a word does not say what is searched for.
pub(crate) fn is_empty_word(word: &str) -> bool {
    use std::{collections::HashSet, sync::LazyLock};
    static WORDS: LazyLock<HashSet<&'static str>> =
        LazyLock::new(|| EMPTY.split_whitespace().collect());
    WORDS.contains(word)
}
