//! Fetches the lists of a server, and decides when to fetch them again.

use std::time::{Duration, Instant};

use switchboard_base::health::Reason;
use switchboard_catalog::{Kind, Offers};
use switchboard_client::{self as client, CacheHints, Client, Lossless, Pages, Raw, model};
use switchboard_wire::{code, meta, method};

/// A set of lists, by the kind of their items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lists(u8);

impl Lists {
    pub(crate) const NONE: Self = Self(0);

    /// The lists that a notification reports as changed.
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

    /// The list of items of this kind.
    pub(crate) const fn of(kind: Kind) -> Self {
        Self(1 << kind as u8)
    }

    /// Tests if the list of this kind is in the set.
    pub(crate) const fn has(self, kind: Kind) -> bool {
        self.0 & Self::of(kind).0 != 0
    }

    /// The kinds of the lists, tools first.
    pub(crate) fn kinds(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |kind| self.has(*kind))
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The intersection of two sets.
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

/// Decides when to fetch which list: each is fetched once at a time, and a list that changes constantly is
/// fetched less and less often. A slow list does not delay the others.
#[derive(Debug)]
pub(crate) struct Curiosity([Turn; Kind::ALL.len()]);

/// The schedule of one list.
#[derive(Debug)]
struct Turn {
    wanted: bool,
    asking: bool,
    /// A caller waits for the result of the next fetch.
    hurried: bool,
    /// The earliest time of the next fetch.
    from: Instant,
    /// The number of fetches in a row without a quiet period in between.
    restless: u32,
    /// Time of the retry of a failed fetch.
    retry: Option<Instant>,
    /// The number of failed fetches in a row.
    failures: u32,
}

/// The number of fetches in a row without a pause, so that a client whose calls change a list sees the change
/// at once.
const EAGER: u32 = 8;
/// The first pause after those; it doubles with each fetch.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Time without a change after which the next change is fetched at once.
const QUIET: Duration = Duration::from_secs(10);
/// The longest pause before a failed fetch is retried. The first is [`FIRST_PAUSE`]; it doubles with each
/// failure.
const LONGEST_RETRY: Duration = Duration::from_mins(10);
/// The pause before a retry if a caller waits for the list.
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

    /// Time of the next fetch, if there is one to make.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.0.iter().filter_map(Turn::due).min()
    }

    /// The lists to fetch now.
    pub(crate) fn ask(&mut self, now: Instant) -> Option<Lists> {
        let turns = Kind::ALL.into_iter().zip(&mut self.0);
        let asked = turns.filter_map(|(kind, turn)| turn.ask(now).then_some(kind));
        let asked: Lists = asked.collect();
        (asked != Lists::NONE).then_some(asked)
    }

    /// Speeds up these lists because a caller waits for them: they are fetched without a pause, or soon if
    /// the last fetch failed.
    pub(crate) fn hurry(&mut self, lists: Lists, now: Instant) {
        self.each(lists, |turn| {
            turn.from = turn.from.min(now);
            turn.hurried = turn.asking;
            turn.retry = turn.retry.map(|retry| retry.min(now + HURRIED_RETRY));
        });
    }

    /// Records that the fetch of these lists is complete. The lists in `missing` failed.
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

    /// Returns `true`, and marks the list as being fetched, if it is to be fetched now.
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

/// The first pause, doubled `doubled` times, and at most `longest`.
fn pause(first: Duration, doubled: u32, longest: Duration) -> Duration {
    first
        .saturating_mul(2_u32.saturating_pow(doubled))
        .min(longest)
}

/// The lists that could not be fetched but may be later, each with the reason.
pub(crate) type Missing = Vec<(Kind, Reason)>;

/// The request that fetches the list of a kind.
pub const fn list_method(kind: Kind) -> &'static str {
    match kind {
        Kind::Tool => method::TOOLS_LIST,
        Kind::Prompt => method::PROMPTS_LIST,
        Kind::Resource => method::RESOURCES_LIST,
        Kind::Template => method::RESOURCE_TEMPLATES_LIST,
    }
}

/// The lists that were requested and could be fetched.
#[derive(Debug, Clone)]
pub(crate) struct Learnt {
    tools: Option<Listed>,
    prompts: Option<Listed>,
    resources: Option<Listed>,
    templates: Option<Listed>,
    about: Offers,
    pub(crate) missing: Missing,
}

/// A list, and its lifetime if the server gave one.
type Listed = (Vec<Raw>, Option<CacheHints>);

impl Learnt {
    /// The cache hints of each fetched list.
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

    /// Tests if the tools were fetched.
    pub(crate) fn has_tools(&self) -> bool {
        self.tools.is_some()
    }

    /// Merges the fetched lists into the known offers.
    pub(crate) fn merge(self, known: Offers) -> Offers {
        Offers {
            unlisted: self.tools.is_none() && known.unlisted,
            tools: self.tools.map_or(known.tools, |(list, _)| list),
            prompts: self.prompts.map_or(known.prompts, |(list, _)| list),
            resources: self.resources.map_or(known.resources, |(list, _)| list),
            templates: self.templates.map_or(known.templates, |(list, _)| list),
            asks_back: known.asks_back,
            directories: known.directories,
            ..self.about
        }
    }

    /// The fetched lists.
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

/// The most items and the most bytes of one list. A larger one is an attack.
pub(crate) const ITEMS_MAX: usize = 10_000;
pub(crate) const BYTES_MAX: usize = 32 * 1024 * 1024;

/// Fetches these lists concurrently. `None` if the server is gone.
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
        // A server may declare a capability and not implement its list.
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

/// The `_meta` of the response that opened the connection, without the server's name, which is stored
/// separately.
fn said_beside(answer: &Raw) -> Option<Raw> {
    let said = answer.member(meta::META).filter(Raw::is_object)?;
    let said = said.without(&[meta::SERVER_INFO]);
    (said.as_str() != "{}").then_some(said)
}

/// Fetches a list, if it is wanted. `offered` tells if the server has one; a list that it does not have is
/// empty.
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
    fn list_changed_notification_covers_all_affected_lists() {
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
    fn each_list_is_fetched_once_at_a_time() {
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
    fn slow_list_does_not_delay_another() {
        let now = Instant::now();
        let mut curiosity = Curiosity::new(now);
        curiosity.want(TOOLS.and(PROMPTS));
        assert_eq!(curiosity.ask(now), Some(TOOLS.and(PROMPTS)));
        curiosity.answered(PROMPTS, Lists::NONE, now);
        curiosity.want(TOOLS.and(PROMPTS));
        assert_eq!(curiosity.ask(now), Some(PROMPTS));
    }

    #[test]
    fn awaited_list_is_fetched_without_a_pause() {
        let now = Instant::now();
        let mut curiosity = Curiosity::new(now);
        for _ in 0..=EAGER {
            curiosity.want(TOOLS);
            curiosity.hurry(TOOLS, now);
            assert!(curiosity.ask(now).is_some());
            curiosity.answered(TOOLS, Lists::NONE, now);
        }
        // The same holds for a list that is already being fetched when a caller begins to wait for it.
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
    fn failing_list_is_retried_with_growing_pauses() {
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
        // Sooner if a caller waits for it, but not at once.
        fail(&mut curiosity, now);
        curiosity.hurry(TOOLS, now);
        assert_eq!(curiosity.due(), Some(now + HURRIED_RETRY));
        // At once if the server reports a change.
        curiosity.want(TOOLS);
        assert_eq!(curiosity.ask(now + LONGEST_PAUSE), Some(TOOLS));
        curiosity.answered(TOOLS, Lists::NONE, now);
        assert_eq!(curiosity.due(), None);
    }

    #[test]
    fn constantly_changing_list_is_fetched_less_often() {
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
        // At once after a quiet period.
        now += Duration::from_mins(3);
        curiosity.want(TOOLS);
        curiosity.ask(now);
        curiosity.answered(TOOLS, Lists::NONE, now);
        curiosity.want(TOOLS);
        assert_eq!(curiosity.due(), Some(now));
    }
}
