//! Asking a server what it offers, and when to ask again.

use std::time::{Duration, Instant};

use switchboard_base::health::Reason;
use switchboard_catalog::{Kind, Offers};
use switchboard_client::{self as client, CacheHints, Client, Lossless, Pages, Raw, model};
use switchboard_wire::{code, meta, method};

/// A set of lists, by the kind of what they hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lists(u8);

impl Lists {
    pub(crate) const NONE: Self = Self(0);

    /// The lists that a notification says have changed.
    pub(crate) fn changed(method: &str) -> Option<Self> {
        match method {
            "notifications/tools/list_changed" => Some(Self::of(Kind::Tool)),
            "notifications/prompts/list_changed" => Some(Self::of(Kind::Prompt)),
            "notifications/resources/list_changed" => {
                Some(Self::of(Kind::Resource).and(Self::of(Kind::Template)))
            }
            _ => None,
        }
    }

    /// The list that holds things of this kind.
    pub(crate) const fn of(kind: Kind) -> Self {
        Self(1 << kind as u8)
    }

    /// Whether the list of this kind is one of them.
    pub(crate) const fn has(self, kind: Kind) -> bool {
        self.0 & Self::of(kind).0 != 0
    }

    /// The kinds that they hold, tools first.
    pub(crate) fn kinds(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |kind| self.has(*kind))
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those of them that are in `other`, too.
    pub(crate) const fn within(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl FromIterator<Kind> for Lists {
    fn from_iter<I: IntoIterator<Item = Kind>>(kinds: I) -> Self {
        let lists = kinds.into_iter().map(Self::of);
        lists.fold(Self::NONE, Self::and)
    }
}

/// When to ask for which list: for each once at a time, and for one that changes without end less and less
/// often. A list that takes long does not hold up the others.
#[derive(Debug)]
pub(crate) struct Curiosity([Turn; Kind::ALL.len()]);

/// When to ask for one list.
#[derive(Debug)]
struct Turn {
    wanted: bool,
    asking: bool,
    /// Somebody waits for the answer to the next question.
    hurried: bool,
    /// Not before this.
    from: Instant,
    /// How often in a row it was asked for without a quiet time in between.
    restless: u32,
    /// When to ask again for a list that could not be had.
    retry: Option<Instant>,
    /// How often in a row it could not be had.
    failures: u32,
}

/// This many questions in a row are asked without a pause, so that a client whose calls change a list sees it at once.
const EAGER: u32 = 8;
/// The first pause after those; it doubles with each question.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// After so long without a change the next one is asked for at once.
const QUIET: Duration = Duration::from_secs(10);
/// The longest pause before a list that could not be had is asked for again. The first is [`FIRST_PAUSE`]; it doubles
/// with each failure.
const LONGEST_RETRY: Duration = Duration::from_mins(10);
/// The pause before that if somebody waits for it.
pub(crate) const HURRIED_RETRY: Duration = Duration::from_secs(1);

impl Curiosity {
    pub(crate) fn new(now: Instant) -> Self {
        Self(Kind::ALL.map(|_| Turn {
            wanted: false,
            asking: false,
            hurried: false,
            from: now,
            restless: 0,
            retry: None,
            failures: 0,
        }))
    }

    pub(crate) fn want(&mut self, lists: Lists) {
        self.each(lists, |turn| turn.wanted = true);
    }

    /// When to ask next, if there is something to ask.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.0.iter().filter_map(Turn::due).min()
    }

    /// The lists to ask for now.
    pub(crate) fn ask(&mut self, now: Instant) -> Option<Lists> {
        let turns = Kind::ALL.into_iter().zip(&mut self.0);
        let asked = turns.filter_map(|(kind, turn)| turn.ask(now).then_some(kind));
        let asked: Lists = asked.collect();
        (asked != Lists::NONE).then_some(asked)
    }

    /// Somebody waits for these lists: they are asked for without a pause, or soon if they could not be had.
    pub(crate) fn hurry(&mut self, lists: Lists, now: Instant) {
        self.each(lists, |turn| {
            turn.from = turn.from.min(now);
            turn.hurried = turn.asking;
            turn.retry = turn.retry.map(|retry| retry.min(now + HURRIED_RETRY));
        });
    }

    /// The question for these lists has been answered, but for those that are missing.
    pub(crate) fn answered(&mut self, lists: Lists, missing: Lists, now: Instant) {
        self.each(lists, |turn| turn.answered(now));
        for kind in lists.kinds() {
            let turn = &mut self.0[kind as usize];
            if missing.has(kind) {
                turn.failed(now);
            } else {
                turn.failures = 0;
            }
        }
    }

    fn each(&mut self, lists: Lists, change: impl Fn(&mut Turn)) {
        for kind in lists.kinds() {
            change(&mut self.0[kind as usize]);
        }
    }
}

impl Turn {
    fn due(&self) -> Option<Instant> {
        let due = if self.wanted {
            Some(self.from)
        } else {
            self.retry
        };
        due.filter(|_| !self.asking)
    }

    /// Whether to ask now. If so, it is being asked.
    fn ask(&mut self, now: Instant) -> bool {
        if self.due().is_none_or(|due| due > now) {
            return false;
        }
        if now.saturating_duration_since(self.from) >= QUIET {
            self.restless = 0;
        }
        self.asking = true;
        self.wanted = false;
        self.retry = None;
        true
    }

    fn failed(&mut self, now: Instant) {
        self.retry = Some(now + pause(FIRST_PAUSE, self.failures, LONGEST_RETRY));
        self.failures = self.failures.saturating_add(1);
    }

    fn answered(&mut self, now: Instant) {
        self.asking = false;
        let is_hurried = std::mem::take(&mut self.hurried);
        let pause = match self.restless.checked_sub(EAGER) {
            Some(paused) if !is_hurried => pause(FIRST_PAUSE, paused, LONGEST_PAUSE),
            _ => Duration::ZERO,
        };
        self.restless = self.restless.saturating_add(1);
        self.from = now + pause;
    }
}

/// The first pause, doubled so often, and no longer than the longest.
fn pause(first: Duration, doubled: u32, longest: Duration) -> Duration {
    first
        .saturating_mul(2_u32.saturating_pow(doubled))
        .min(longest)
}

/// The lists that could not be had and may be had later, each with the reason.
pub(crate) type Missing = Vec<(Kind, Reason)>;

/// The request that asks for the list of a kind.
pub const fn list_method(kind: Kind) -> &'static str {
    match kind {
        Kind::Tool => method::TOOLS_LIST,
        Kind::Prompt => method::PROMPTS_LIST,
        Kind::Resource => method::RESOURCES_LIST,
        Kind::Template => method::RESOURCE_TEMPLATES_LIST,
    }
}

/// What a server said it offers: the lists that were asked for and could be had.
#[derive(Debug)]
pub(crate) struct Learnt {
    tools: Option<Listed>,
    prompts: Option<Listed>,
    resources: Option<Listed>,
    templates: Option<Listed>,
    about: Offers,
    pub(crate) missing: Missing,
}

/// A list, and how long it may be kept, if the server says.
type Listed = (Vec<Raw>, Option<CacheHints>);

impl Learnt {
    /// How long each list that was had may be kept.
    pub(crate) fn hints(&self) -> impl Iterator<Item = (Kind, Option<CacheHints>)> {
        let lists = [
            (Kind::Tool, &self.tools),
            (Kind::Prompt, &self.prompts),
            (Kind::Resource, &self.resources),
            (Kind::Template, &self.templates),
        ];
        lists
            .into_iter()
            .filter_map(|(kind, list)| Some((kind, list.as_ref()?.1)))
    }

    /// Whether there is something to keep.
    pub(crate) fn has_tools(&self) -> bool {
        self.tools.is_some()
    }

    /// What was known, with this in the place of what it replaces.
    pub(crate) fn merge(self, known: Offers) -> Offers {
        Offers {
            unlisted: self.tools.is_none() && known.unlisted,
            tools: self.tools.map_or(known.tools, |(list, _)| list),
            prompts: self.prompts.map_or(known.prompts, |(list, _)| list),
            resources: self.resources.map_or(known.resources, |(list, _)| list),
            templates: self.templates.map_or(known.templates, |(list, _)| list),
            ..self.about
        }
    }

    /// The lists that could be had.
    pub(crate) fn into_lists(self) -> impl Iterator<Item = (Kind, Vec<Raw>)> {
        let lists = [
            (Kind::Tool, self.tools),
            (Kind::Prompt, self.prompts),
            (Kind::Resource, self.resources),
            (Kind::Template, self.templates),
        ];
        lists
            .into_iter()
            .filter_map(|(kind, list)| Some((kind, list?.0)))
    }
}

/// More items, or more bytes, of one kind are no list but a trap.
pub(crate) const ITEMS_MAX: usize = 10_000;
pub(crate) const BYTES_MAX: usize = 32 * 1024 * 1024;

/// Asks the server for these lists, side by side. `None` if it is gone.
pub(crate) async fn learn(client: &Client, lists: Lists) -> Option<Learnt> {
    let session = client.ready().await.ok()?;
    let has = |what: &str| session.capabilities.member(what).is_some();
    let of = |kind: Kind, what: &str| lists.has(kind).then(|| has(what));
    let (tools, prompts, resources, templates) = tokio::join!(
        gather(of(Kind::Tool, "tools"), || client.tools()),
        gather(of(Kind::Prompt, "prompts"), || client.prompts()),
        gather(of(Kind::Resource, "resources"), || client.resources()),
        gather(of(Kind::Template, "resources"), || client
            .resource_templates()),
    );
    let mut missing = Missing::new();
    let mut list = |kind: Kind, result: Option<Result<Listed, client::Error>>| match result? {
        Ok(items) => Some(items),
        // A server may say that it has a kind of thing and not know how to list it.
        Err(client::Error::Server(error)) if error.code == code::METHOD_NOT_FOUND => {
            Some((Vec::new(), None))
        }
        Err(error) => {
            missing.push((kind, Reason::of(&error)));
            None
        }
    };
    Some(Learnt {
        tools: list(Kind::Tool, tools),
        prompts: list(Kind::Prompt, prompts),
        resources: list(Kind::Resource, resources),
        templates: list(Kind::Template, templates),
        about: Offers {
            capabilities: Some(session.capabilities.clone()),
            server_info: session.server_info.clone(),
            meta: said_beside(&session.raw),
            instructions: session.instructions.clone(),
            era: Some(session.revision.era()),
            revision: Some(session.revision),
            ..Offers::default()
        },
        missing,
    })
}

/// The `_meta` of the answer that opened a connection, without the server's name, which is kept on its own.
fn said_beside(answer: &Raw) -> Option<Raw> {
    let said = answer.member(meta::META).filter(Raw::is_object)?;
    let said = said.without(&[meta::SERVER_INFO]);
    (said.as_str() != "{}").then_some(said)
}

/// Reads a list, if it is wanted: `offered` says whether the server has one. One that it does not have is empty.
async fn gather<T: model::Listed>(
    offered: Option<bool>,
    pages: impl FnOnce() -> Pages<T>,
) -> Option<Result<Listed, client::Error>> {
    if !offered? {
        return Some(Ok((Vec::new(), None)));
    }
    let mut pages = pages();
    let mut items = Vec::new();
    let mut bytes = 0;
    while items.len() < ITEMS_MAX
        && bytes < BYTES_MAX
        && let Some(item) = pages.next().await
    {
        let item = match item {
            Ok(item) => Lossless::raw(&item).clone(),
            Err(error) => return Some(Err(error)),
        };
        bytes += item.as_bytes().len();
        items.push(item);
    }
    Some(Ok((items, pages.hints())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: Lists = Lists::of(Kind::Tool);
    const PROMPTS: Lists = Lists::of(Kind::Prompt);

    #[test]
    fn a_changed_notification_names_every_list_it_means() {
        let named = |what: &str| {
            let lists = Lists::changed(&format!("notifications/{what}/list_changed"));
            lists.map(|lists| lists.kinds().collect::<Vec<_>>())
        };
        assert_eq!(named("tools"), Some(vec![Kind::Tool]));
        assert_eq!(named("prompts"), Some(vec![Kind::Prompt]));
        let both = vec![Kind::Resource, Kind::Template];
        assert_eq!(named("resources"), Some(both));
        assert_eq!(named("others"), None);
    }

    #[test]
    fn questions_come_one_at_a_time_and_nothing_is_forgotten() {
        let now = Instant::now();
        let mut curiosity = Curiosity::new(now);
        assert_eq!(curiosity.ask(now), None);
        curiosity.want(TOOLS);
        assert_eq!(curiosity.ask(now), Some(TOOLS));
        curiosity.want(TOOLS);
        assert_eq!(curiosity.ask(now), None);
        curiosity.answered(TOOLS, Lists::NONE, now);
        assert_eq!(curiosity.ask(now), Some(TOOLS));
    }

    #[test]
    fn a_slow_list_does_not_hold_up_another() {
        let now = Instant::now();
        let mut curiosity = Curiosity::new(now);
        curiosity.want(TOOLS.and(PROMPTS));
        assert_eq!(curiosity.ask(now), Some(TOOLS.and(PROMPTS)));
        curiosity.answered(PROMPTS, Lists::NONE, now);
        curiosity.want(TOOLS.and(PROMPTS));
        assert_eq!(curiosity.ask(now), Some(PROMPTS));
    }

    #[test]
    fn a_list_that_is_waited_for_comes_without_a_pause() {
        let now = Instant::now();
        let mut curiosity = Curiosity::new(now);
        for _ in 0..=EAGER {
            curiosity.want(TOOLS);
            curiosity.hurry(TOOLS, now);
            assert!(curiosity.ask(now).is_some());
            curiosity.answered(TOOLS, Lists::NONE, now);
        }
        // The same of one that is waited for while it is asked for already.
        curiosity.want(TOOLS);
        assert_eq!(curiosity.ask(now), None);
        curiosity.hurry(PROMPTS, now);
        assert_eq!(curiosity.ask(now), None);
        curiosity.hurry(TOOLS, now);
        assert!(curiosity.ask(now).is_some());
        curiosity.want(TOOLS);
        curiosity.hurry(TOOLS, now);
        curiosity.answered(TOOLS, Lists::NONE, now);
        assert!(curiosity.ask(now).is_some());
        curiosity.answered(TOOLS, Lists::NONE, now);
        curiosity.want(TOOLS);
        assert_eq!(curiosity.ask(now), None);
    }

    #[test]
    fn list_that_fails_is_asked_for_less_and_less_often() {
        let start = Instant::now();
        let mut now = start;
        let mut curiosity = Curiosity::new(now);
        curiosity.want(TOOLS);
        let fail = |curiosity: &mut Curiosity, now: Instant| {
            assert_eq!(curiosity.ask(now), Some(TOOLS));
            curiosity.answered(TOOLS, TOOLS, now);
            curiosity.due().unwrap() - now
        };
        let mut pauses = Vec::new();
        while now < start + Duration::from_hours(2) {
            pauses.push(fail(&mut curiosity, now));
            now = curiosity.due().unwrap();
        }
        assert!(pauses.is_sorted() && pauses.len() < 30, "{pauses:?}");
        assert_eq!(pauses.first(), Some(&FIRST_PAUSE));
        assert_eq!(pauses.last(), Some(&LONGEST_RETRY));
        // Sooner if somebody waits for it, but not at once.
        fail(&mut curiosity, now);
        curiosity.hurry(TOOLS, now);
        assert_eq!(curiosity.due(), Some(now + HURRIED_RETRY));
        // At once if the server says that it has changed.
        curiosity.want(TOOLS);
        assert_eq!(curiosity.ask(now + LONGEST_PAUSE), Some(TOOLS));
        curiosity.answered(TOOLS, Lists::NONE, now);
        assert_eq!(curiosity.due(), None);
    }

    #[test]
    fn a_list_that_changes_without_end_is_asked_for_less_and_less_often() {
        let start = Instant::now();
        let mut now = start;
        let mut curiosity = Curiosity::new(now);
        let mut asked = 0;
        while now < start + Duration::from_mins(10) {
            curiosity.want(TOOLS);
            now = now.max(curiosity.due().unwrap());
            assert!(curiosity.ask(now).is_some());
            asked += 1;
            curiosity.answered(TOOLS, Lists::NONE, now);
        }
        assert!(asked < 80, "{asked}");
        // And after a quiet time at once.
        now += Duration::from_mins(3);
        curiosity.want(TOOLS);
        curiosity.ask(now);
        curiosity.answered(TOOLS, Lists::NONE, now);
        curiosity.want(TOOLS);
        assert_eq!(curiosity.due(), Some(now));
    }
}
