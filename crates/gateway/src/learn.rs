//! Asking a server what it offers, and when to ask again.

use std::{
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use switchboard_catalog::{Kind, Offers};
use switchboard_client::{
    CacheHints, Client, Error, Lossless, Pages, Raw, model, throttle::Limited,
};
use switchboard_wire::code;

/// Which lists to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lists {
    tools: bool,
    prompts: bool,
    resources: bool,
}

impl Lists {
    pub(crate) const ALL: Self = Self {
        tools: true,
        prompts: true,
        resources: true,
    };

    pub(crate) const NONE: Self = Self {
        tools: false,
        prompts: false,
        resources: false,
    };

    /// Which lists a notification says have changed.
    pub(crate) fn changed(method: &str) -> Option<Self> {
        match method {
            "notifications/tools/list_changed" => Some(Self::of(Kind::Tool)),
            "notifications/prompts/list_changed" => Some(Self::of(Kind::Prompt)),
            "notifications/resources/list_changed" => Some(Self::of(Kind::Resource)),
            _ => None,
        }
    }

    /// The list that holds things of this kind.
    pub(crate) const fn of(kind: Kind) -> Self {
        match kind {
            Kind::Tool => Self {
                tools: true,
                ..Self::NONE
            },
            Kind::Prompt => Self {
                prompts: true,
                ..Self::NONE
            },
            Kind::Resource | Kind::Template => Self {
                resources: true,
                ..Self::NONE
            },
        }
    }

    /// Whether the list of this kind is one of them.
    pub(crate) const fn has(self, kind: Kind) -> bool {
        match kind {
            Kind::Tool => self.tools,
            Kind::Prompt => self.prompts,
            Kind::Resource | Kind::Template => self.resources,
        }
    }

    /// Each of them alone, the tools first.
    pub(crate) fn one_by_one(self) -> Vec<Self> {
        let kinds = [Kind::Tool, Kind::Prompt, Kind::Resource].into_iter();
        kinds.filter(|kind| self.has(*kind)).map(Self::of).collect()
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            tools: self.tools || other.tools,
            prompts: self.prompts || other.prompts,
            resources: self.resources || other.resources,
        }
    }
}

/// When to ask: one question at a time, and a server whose lists change without end is asked less and
/// less often.
#[derive(Debug)]
pub(crate) struct Curiosity {
    wanted: Lists,
    asking: bool,
    /// Somebody waits for the answer to the next question.
    hurried: bool,
    /// Not before this.
    from: Instant,
    /// How often in a row it was asked without a quiet time in between.
    restless: u32,
}

/// The pause after the second question in a row; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// After so long without a change the next one is asked for at once.
const QUIET: Duration = Duration::from_secs(10);

impl Curiosity {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            wanted: Lists::NONE,
            asking: false,
            hurried: false,
            from: now,
            restless: 0,
        }
    }

    pub(crate) fn want(&mut self, lists: Lists) {
        self.wanted = self.wanted.and(lists);
    }

    /// When to ask next, if there is something to ask.
    pub(crate) fn due(&self) -> Option<Instant> {
        (!self.asking && self.wanted != Lists::NONE).then_some(self.from)
    }

    /// What to ask now.
    pub(crate) fn ask(&mut self, now: Instant) -> Option<Lists> {
        self.due().filter(|due| *due <= now)?;
        if now.saturating_duration_since(self.from) >= QUIET {
            self.restless = 0;
        }
        self.asking = true;
        Some(std::mem::replace(&mut self.wanted, Lists::NONE))
    }

    /// Somebody waits for the answer: it is asked for without a pause.
    pub(crate) fn hurry(&mut self, now: Instant) {
        self.from = self.from.min(now);
        self.hurried = self.asking;
    }

    /// The question has been answered.
    pub(crate) fn answered(&mut self, now: Instant) {
        self.asking = false;
        let pause = match self.restless {
            _ if std::mem::take(&mut self.hurried) => Duration::ZERO,
            0 => Duration::ZERO,
            n => FIRST_PAUSE
                .saturating_mul(2_u32.saturating_pow(n - 1))
                .min(LONGEST_PAUSE),
        };
        self.restless = self.restless.saturating_add(1);
        self.from = now + pause;
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
    /// The lists that could not be had, and may be had later; and why, of the first.
    pub(crate) missing: Option<(Lists, Arc<str>)>,
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
    pub(crate) fn merge(self, known: Option<&Offers>) -> Offers {
        let known = known.cloned().unwrap_or_default();
        Offers {
            tools: self.tools.map_or(known.tools, |(list, _)| list),
            prompts: self.prompts.map_or(known.prompts, |(list, _)| list),
            resources: self.resources.map_or(known.resources, |(list, _)| list),
            templates: self.templates.map_or(known.templates, |(list, _)| list),
            ..self.about
        }
    }
}

/// More items, or more bytes, of one kind are no list but a trap.
const ITEMS_MAX: usize = 10_000;
const BYTES_MAX: usize = 32 * 1024 * 1024;

/// Asks the server for these lists. `None` if it is gone.
pub(crate) async fn learn(name: &str, client: &Client, lists: Lists) -> Option<Learnt> {
    let session = client.ready().await.ok()?;
    let has = |what: &str| session.capabilities.member(what).is_some();
    let mut missing: Option<(Lists, Arc<str>)> = None;
    let mut list = |result: Result<Listed, Error>, which: Lists| match result {
        Ok(items) => Some(items),
        // A server may say that it has a kind of thing and not know how to list it.
        Err(Error::Server(error)) if error.code == code::METHOD_NOT_FOUND => {
            Some((Vec::new(), None))
        }
        Err(error) => {
            static TOLD: LazyLock<Limited> = LazyLock::new(Limited::default);
            TOLD.report(|missed| {
                tracing::warn!(server = name, %error, missed, "Cannot learn what the server offers.");
            });
            missing = Some(match missing.take() {
                Some((lists, why)) => (lists.and(which), why),
                None => (which, error.to_string().into()),
            });
            None
        }
    };
    let (mut tools, mut prompts, mut resources, mut templates) = (None, None, None, None);
    if lists.tools {
        let gathered = gather(has("tools").then(|| client.tools())).await;
        tools = list(gathered, Lists::of(Kind::Tool));
    }
    if lists.prompts {
        let gathered = gather(has("prompts").then(|| client.prompts())).await;
        prompts = list(gathered, Lists::of(Kind::Prompt));
    }
    if lists.resources {
        let which = Lists::of(Kind::Resource);
        let gathered = gather(has("resources").then(|| client.resources())).await;
        resources = list(gathered, which);
        let gathered = gather(has("resources").then(|| client.resource_templates())).await;
        templates = list(gathered, which);
    }
    Some(Learnt {
        tools,
        prompts,
        resources,
        templates,
        about: Offers {
            capabilities: Some(session.capabilities.clone()),
            server_info: session.server_info.clone(),
            instructions: session.instructions.clone(),
            era: Some(session.revision.era()),
            revision: Some(session.revision),
            ..Offers::default()
        },
        missing,
    })
}

async fn gather<T: model::Listed>(pages: Option<Pages<T>>) -> Result<Listed, Error> {
    let Some(mut pages) = pages else {
        return Ok((Vec::new(), None));
    };
    let mut items = Vec::new();
    let mut bytes = 0;
    while items.len() < ITEMS_MAX
        && bytes < BYTES_MAX
        && let Some(item) = pages.next().await
    {
        let item = Lossless::raw(&item?).clone();
        bytes += item.as_bytes().len();
        items.push(item);
    }
    Ok((items, pages.hints()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_come_one_at_a_time_and_nothing_is_forgotten() {
        let now = Instant::now();
        let mut curiosity = Curiosity::new(now);
        assert_eq!(curiosity.ask(now), None);
        let tools = Lists::changed("notifications/tools/list_changed").unwrap();
        let prompts = Lists::changed("notifications/prompts/list_changed").unwrap();
        curiosity.want(tools);
        assert_eq!(curiosity.ask(now), Some(tools));
        curiosity.want(prompts);
        curiosity.want(tools);
        assert_eq!(curiosity.ask(now), None);
        curiosity.answered(now);
        assert_eq!(curiosity.ask(now), Some(tools.and(prompts)));
    }

    #[test]
    fn a_list_that_is_waited_for_comes_without_a_pause() {
        let now = Instant::now();
        let mut curiosity = Curiosity::new(now);
        for _ in 0..5 {
            curiosity.want(Lists::ALL);
            curiosity.hurry(now);
            assert!(curiosity.ask(now).is_some());
            curiosity.answered(now);
        }
        // The same of one that is waited for while another is asked for.
        curiosity.want(Lists::ALL);
        assert_eq!(curiosity.ask(now), None);
        curiosity.hurry(now);
        assert!(curiosity.ask(now).is_some());
        curiosity.want(Lists::ALL);
        curiosity.hurry(now);
        curiosity.answered(now);
        assert!(curiosity.ask(now).is_some());
        curiosity.answered(now);
        curiosity.want(Lists::ALL);
        assert_eq!(curiosity.ask(now), None);
    }

    #[test]
    fn a_server_that_changes_without_end_is_asked_less_and_less_often() {
        let start = Instant::now();
        let mut now = start;
        let mut curiosity = Curiosity::new(now);
        let mut asked = 0;
        while now < start + Duration::from_mins(10) {
            curiosity.want(Lists::ALL);
            now = now.max(curiosity.due().unwrap());
            assert!(curiosity.ask(now).is_some());
            asked += 1;
            curiosity.answered(now);
        }
        assert!(asked < 75, "{asked}");
        // And after a quiet time at once.
        now += Duration::from_mins(3);
        curiosity.want(Lists::ALL);
        curiosity.ask(now);
        curiosity.answered(now);
        curiosity.want(Lists::ALL);
        assert_eq!(curiosity.due(), Some(now));
    }
}
