//! Names that have a distinctive form, and words that begin a sentence without being a name.

use crate::limits;

/// Returns a name with a distinctive form at the start of a text, its kind, and the number of bytes it
/// takes; `before` is the preceding text.
pub(super) fn at_start<'a>(text: &'a str, before: &str) -> Option<(&'a str, &'static str, usize)> {
    let first = text.chars().next()?;
    let previous = before.chars().next_back();
    match first {
        '`' => between(text, '`', '`').map(|(code, length)| (code, "code", length)),
        '"' => title(text, '"', '"'),
        '“' => title(text, '“', '”'),
        // None of the other forms begins inside a word.
        _ if previous
            .is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '@' | '/' | '.')) =>
        {
            None
        }
        '@' => marked(text, "handle"),
        '#' => marked(text, "tag"),
        _ => token(text),
    }
}

/// Returns the text between two marks on one line.
fn between(text: &str, open: char, close: char) -> Option<(&str, usize)> {
    let inner = text.strip_prefix(open)?;
    // Names are short, so only a little of the text is searched.
    let near = &inner[..inner.floor_char_boundary(limits::NAME_BYTES + close.len_utf8())];
    let end = near.find([close, '\n'])?;
    let is_closed = near[end..].starts_with(close) && end > 0;
    is_closed.then(|| (&inner[..end], open.len_utf8() + end + close.len_utf8()))
}

/// A quoted title, which begins with a capital and has few words.
fn title(text: &str, open: char, close: char) -> Option<(&str, &'static str, usize)> {
    const WORDS: usize = 8;
    let (inner, length) = between(text, open, close)?;
    let words = inner.split_whitespace().count();
    let is_title = inner.starts_with(|c: char| c.is_uppercase() || c.is_numeric())
        && words <= WORDS
        && !inner.ends_with(['.', '!', '?', ',']);
    is_title.then_some((inner, "title", length))
}

/// A word with a mark before it.
fn marked<'a>(text: &'a str, kind: &'static str) -> Option<(&'a str, &'static str, usize)> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let end = text[1..]
        .find(|c| !is_part(c))
        .map_or(text.len(), |end| end + 1);
    let name = text[..end].trim_end_matches(['.', '-']);
    let is_name = name[1..].contains(|c: char| c.is_alphabetic());
    is_name.then_some((name, kind, name.len()))
}

/// An address or a path: a run without spaces that has a certain form.
fn token(text: &str) -> Option<(&str, &'static str, usize)> {
    const BYTES: usize = 2048;
    let near = &text[..text.floor_char_boundary(BYTES)];
    let end = near
        .find(|c: char| {
            c.is_whitespace()
                || matches!(c, ',' | ';' | '"' | '<' | '>' | '(' | ')' | '`' | '“' | '”')
        })
        .unwrap_or(near.len());
    let token = near[..end].trim_end_matches(['.', ':', '!', '?', '\'', '’', ']', '}']);
    if let Some((scheme, rest)) = token.split_once("://") {
        let is_scheme =
            !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let end = rest.find(['/', '?', '#', ':']).unwrap_or(rest.len());
        // The user name before a host is not part of the name.
        let host = rest[..end].rsplit('@').next().unwrap_or_default();
        return (is_scheme && host.len() > 1).then_some((host, "host", token.len()));
    }
    if let Some((user, host)) = token.split_once('@') {
        let is_email = !user.is_empty() && host.contains('.') && !host.contains('@');
        return is_email.then_some((token, "email", token.len()));
    }
    is_path(token).then_some((token, "file", token.len()))
}

/// Returns `true` if this is the path of a file: it has a slash, and an extension or a prefix that only
/// paths have.
fn is_path(token: &str) -> bool {
    let Some((folder, file)) = token.rsplit_once(['/', '\\']) else {
        return false;
    };
    let is_rooted = token.starts_with("./") || token.starts_with("../") || token.starts_with("~/");
    let has_ending = file.rsplit_once('.').is_some_and(|(name, ending)| {
        !name.is_empty()
            && (1..=8).contains(&ending.len())
            && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && ending.bytes().any(|byte| byte.is_ascii_alphabetic())
    });
    let is_absolute = token.starts_with('/') && !folder.is_empty();
    has_ending || (!file.is_empty() && (is_rooted || is_absolute))
}

/// Words that often begin a sentence, in addition to the stop words.
pub(super) const COMMON: &str = "
absolutely according across actually add ago agreed ah aha along alright although always amazing among answer
anyone anything anyway anywhere apparently apply around ask assign assume avoid aw away awesome back bad
basically beautiful become began begin behind believe beneath beside besides best better beyond big bring
brought build business busy buy bye call came cancel care case cause certain certainly change check children
choose city clean clear click close cold come configure congrats congratulations connect consider cool copy
course create cut cute damn day days dear decide delete deploy despite different difficult disable download
drop due early easy edit either else email enable end enjoy enough ensure enter especially even evening
eventually ever everybody everyone everything everywhere exactly excellent except exciting expect explain
export fact family fantastic far fast feel fetch fill finally find fine first five fix follow food format four
free fresh friend friends fun funny future gee generally get girl give glad go god going gonna good goodbye
gosh got great group guess guys half happy hard hate hear hello help hey hi high hmm home honestly hope
hopefully house however huge hundred idea imagine import important include increase indeed insert inside
install instead interesting invite job join keep kept kid kids kind know known lack large last late lately
later leave left less let life like likely listen little live load local log long look lot lots love lovely
low luckily made main major make man many maybe mean meanwhile men merge met mind minor minute month months
morning mostly mother move much music name near nearly necessary need neither never nevertheless new news next
nice night nine nobody none nope normally note nothing notice now nowhere number obviously often oh ok okay
old omg onto open order others otherwise ouch outside overall part pass past paste pay people per perfect
perhaps person pick place plan play please plus point poor possible post press pretty previously print problem
project pull push put question quick quite rather read ready real really reason recent recently reduce refer
remember remind remove rename repeat replace reply report request reset respond restart return review right
room run sad said sat save saw say school search second see seems seen select sell send set seven several
short show sign similarly simply since six skip small solve somebody somehow someone something sometimes
somewhere soon sorry sort sounds speaking spend start stay still stop store story strange strong submit
suggest summer sunny super sure surely sweet switch sync take talk team tell ten terrible test thank thanks
therefore thing things think third though thought three throughout thus till time times tip today together
tomorrow tonight took total totally tough toward towards track transfer translate tree true truly trust try
turn twice two typically ugh uh um under underneath unfortunately unless unlike update upload upon use user
usually verify via view visit wait walk wanna want warning watch way weather week weeks welcome well whatever
whenever wherever whether whichever whoever whole win wish within without woah women wonder wonderful word
work world worse wow write wrong ya yay yeah year years yep yes yesterday yet young yum yup zero
";
