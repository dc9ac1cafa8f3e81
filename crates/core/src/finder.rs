//! The search for tools: keeps the index up to date with the catalog in the background, and queries
//! it.
//!
//! The index is kept in memory only and is built from the catalog, so no file of it can be damaged.
//! It is built when a client first searches for a tool or is shown the menu; from then on it
//! follows the catalog. The vectors of a slow model come later than the words, and no search waits
//! for them.

mod scoped;

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, LazyLock, Weak},
    time::Duration,
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use switchboard_base::{
    apps::is_for_apps_alone,
    error::Error,
    health::{Part, PartState},
};
use switchboard_catalog::{Catalog, Kind, ServerPart};
use switchboard_config::{Config, Embeddings};
use switchboard_outbound::{
    live_catalog::LiveCatalog,
    model::{Model, Models},
};
use switchboard_search::{
    Cache, Filter, Found, Index, Language, Learnt, Meaning, Query, Segment, Tool, Vectors,
};
use switchboard_trust::{Others, Severity, scan};
use tokio::sync::watch;

use self::scoped::ScopedIndexes;
use crate::search_feedback::SearchFeedback;

/// The index of tools, and the tasks that keep it up to date.
#[derive(Debug)]
pub struct Finder {
    live_catalog: Arc<LiveCatalog>,
    config: Arc<ArcSwap<Config>>,
    made: ArcSwap<Made>,
    scoped: ScopedIndexes,
    /// Held while `made` is replaced, so that no change is lost.
    changing: Mutex<()>,
    stage: watch::Sender<Stage>,
    /// Counts changes of the settings.
    settings: watch::Sender<u64>,
    /// Counts updates of the index.
    followed: watch::Sender<u64>,
    pub(crate) models: Arc<Models>,
    /// The tools that were called after each search.
    pub feedback: SearchFeedback,
}

/// The searchable state.
#[derive(Debug, Default, Clone)]
struct Made {
    index: Index,
    /// The catalog part of which each server's segment was built.
    from: HashMap<Arc<str>, Arc<ServerPart>>,
    /// The model that embeds queries.
    model: Option<Arc<Model>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// No search yet.
    Asleep,
    Building,
    Ready,
    Closed,
}

/// A search for tools.
#[derive(Debug, Clone, Default)]
pub struct ToolQuery {
    /// The words to search for.
    pub text: String,
    /// The most tools to find.
    pub limit: usize,
    /// Only tools of this server.
    pub server: Option<String>,
    /// Only tools that declare themselves read-only.
    pub read_only: bool,
    /// Only tools without suspicious text.
    pub trusted: bool,
    /// Only tools of this catalog, which belongs to a scope.
    pub within: Option<Arc<Catalog>>,
    /// Explain each score.
    pub explain: bool,
}

/// The built-in knowledge of English.
pub(crate) static LANGUAGE: LazyLock<Language> = LazyLock::new(Language::built_in);

/// Pause after a failure before the index is built again.
const PAUSE: Duration = Duration::from_secs(1);
/// Interval at which new feedback is written to disk.
const KEEP: Duration = Duration::from_secs(10);

impl Finder {
    /// A finder whose tasks have not been started.
    pub fn new(
        live_catalog: Arc<LiveCatalog>,
        config: Arc<ArcSwap<Config>>,
        models: Arc<Models>,
        feedback: SearchFeedback,
    ) -> Self {
        Self {
            live_catalog,
            config,
            made: ArcSwap::default(),
            scoped: ScopedIndexes::default(),
            changing: Mutex::default(),
            stage: watch::Sender::new(Stage::Asleep),
            settings: watch::Sender::new(0),
            followed: watch::Sender::new(0),
            models,
            feedback,
        }
    }

    /// Starts the tasks, which sleep until the first search.
    pub fn start(self: &Arc<Self>) {
        tokio::spawn(follow(Arc::downgrade(self)));
        tokio::spawn(understand(Arc::downgrade(self)));
        tokio::spawn(scrutinise(Arc::downgrade(self)));
        tokio::spawn(keep_lessons(Arc::downgrade(self)));
    }

    /// Wakes the tasks for a search.
    pub(crate) fn wake(&self) {
        self.advance(Stage::Asleep, Stage::Building);
    }

    /// Rebuilds everything after a change of the settings.
    pub(crate) fn settings_changed(&self) {
        self.models.pardon();
        self.begin_anew();
    }

    /// Refuses further searches, and writes unsaved feedback to its file.
    pub(crate) fn close(&self) {
        self.stage.send_replace(Stage::Closed);
        self.feedback.keep();
    }

    /// Finds the best tools. Waits for the index, for a bounded time.
    pub async fn find(self: &Arc<Self>, wish: ToolQuery) -> Result<Found, Error> {
        self.wake();
        let mut stages = self.stage.subscribe();
        let ready = stages.wait_for(|stage| *stage >= Stage::Ready);
        let wait = self.config.load().wait;
        match tokio::time::timeout(wait, ready).await {
            Ok(Ok(stage)) if *stage == Stage::Ready => {}
            Ok(_) => return Err(Error::SearchClosed),
            Err(_) => return Err(Error::Indexing { retry_after: PAUSE }),
        }
        let finder = Arc::clone(self);
        let learns = self.config.load().search.learn;
        let search = tokio::task::spawn_blocking(move || finder.search(&wish, learns));
        search.await.map_err(|_| {
            tracing::error!("The search index is damaged; the gateway rebuilds it.");
            self.begin_anew();
            Error::Indexing { retry_after: PAUSE }
        })
    }

    fn search(&self, wish: &ToolQuery, learns: bool) -> Found {
        let made = self.made.load_full();
        let scoped = wish
            .within
            .as_ref()
            .map(|catalog| self.scoped.of(catalog, &made));
        let index = scoped.as_deref().unwrap_or(&made.index);
        let query = Query {
            text: &wish.text,
            limit: wish.limit,
            filter: Filter {
                server: wish.server.as_deref(),
                read_only: wish.read_only,
                trusted: wish.trusted,
            },
            explain: wish.explain,
        };
        let model = made.model.as_deref();
        let vector = model.and_then(|model| model.embed(&LANGUAGE.spell(&wish.text)));
        let meaning = model.zip(vector.as_deref()).map(|(model, vector)| Meaning {
            model: model.fingerprint(),
            vector,
            words: model.words_beside(),
        });
        let search = |learnt: &Learnt| index.search(&LANGUAGE, learnt, meaning, &query);
        // Lessons come from the searches of all clients.
        if learns && wish.within.is_none() {
            self.feedback.with(search)
        } else {
            search(&Learnt::default())
        }
    }

    /// Discards the index, so that it is built again.
    fn begin_anew(&self) {
        self.change(|made| *made = Made::default());
        self.advance(Stage::Ready, Stage::Building);
        self.settings.send_modify(|count| *count += 1);
    }

    /// Updates the words and built-in vectors of the index from the catalog.
    fn follow(&self, catalog: &Catalog, settings: &Embeddings) {
        let made = self.made.load_full();
        let unchanged = |part: &&Arc<ServerPart>| {
            let known = made.from.get(part.name());
            known.is_some_and(|known| Arc::ptr_eq(known, part))
        };
        let built_in = (*settings != Embeddings::Off).then(Model::built_in);
        let fresh: Vec<_> = catalog
            .servers()
            .filter(|part| !unchanged(part))
            .filter_map(|part| {
                // The scan for suspicious text takes longer, and follows later.
                let segment = segment(part, &|_| true)?;
                let vectors = built_in.as_ref().and_then(|model| vectors_of(model, part));
                let vectors = vectors.map(Arc::new);
                Some((part, segment, vectors))
            })
            .collect();
        self.change(|made| {
            made.from.retain(|name, _| catalog.server(name).is_some());
            let known = made.from.clone();
            let is_fresh = |name: &str| fresh.iter().any(|(part, _, _)| **part.name() == *name);
            let has_changed = |name: &str| !known.contains_key(name) || is_fresh(name);
            let segments = fresh.iter().map(|(part, segment, vectors)| {
                made.from.insert(Arc::clone(part.name()), Arc::clone(part));
                (Arc::clone(segment), vectors.clone())
            });
            made.index = made.index.with_all(has_changed, segments);
            match (&made.model, built_in) {
                (_, None) => made.model = None,
                (None, Some(model)) => made.model = Some(Arc::new(model)),
                (Some(_), Some(_)) => {}
            }
        });
        self.advance(Stage::Building, Stage::Ready);
        self.followed.send_modify(|count| *count += 1);
    }

    /// Scans the tools of new segments, and marks those with suspicious text.
    fn scrutinise(&self, catalog: &Catalog) {
        let made = self.made.load_full();
        for old in made
            .index
            .segments()
            .filter(|segment| !segment.is_scrutinised())
        {
            let Some(part) = made.from.get(old.server()) else {
                continue;
            };
            let others = others(catalog, part.name());
            let is_trusted = |tool: &Tool<'_>| {
                let findings = scan(tool.definition, &others);
                findings
                    .iter()
                    .all(|finding| finding.severity < Severity::Warn)
            };
            let all = tools(part).all(|tool| is_trusted(&tool));
            old.set_scrutinised();
            if !all && let Some(new) = segment(part, &is_trusted) {
                new.set_scrutinised();
                self.change(|made| made.index = made.index.replaced(old, &new));
            }
        }
    }

    /// Embeds all tools with the sentence model, and then uses it for queries.
    fn understand(&self, model: &Arc<Model>) {
        let mut cache = self.models.read_cache(model);
        self.understand_all(model, &mut cache);
        if cache.is_changed() {
            self.models.write_cache(model, &cache);
        }
    }

    fn understand_all(&self, model: &Arc<Model>, cache: &mut Cache) {
        let settings = *self.settings.borrow();
        let go_on = || *self.stage.borrow() != Stage::Closed && *self.settings.borrow() == settings;
        loop {
            let made = self.made.load_full();
            let lacking = made.index.without_vectors(model.fingerprint());
            let mut fresh = Vec::new();
            for segment in lacking {
                let Some(part) = made.from.get(segment.server()) else {
                    continue;
                };
                let tools: Vec<_> = tools(part).collect();
                match model.vectors(&tools, cache, &go_on) {
                    Ok(Some(vectors)) => fresh.push((Arc::clone(segment), vectors)),
                    Ok(None) => return,
                    Err(error) => return self.models.failed(model, &error),
                }
            }
            if fresh.is_empty() {
                return;
            }
            self.change(|made| {
                if !go_on() {
                    return;
                }
                for (segment, vectors) in fresh {
                    made.index = made.index.with_vectors(&segment, vectors);
                }
                made.model = Some(Arc::clone(model));
            });
        }
    }

    fn change(&self, change: impl FnOnce(&mut Made)) {
        let _changing = self.changing.lock();
        let mut made = Made::clone(&self.made.load());
        change(&mut made);
        self.made.store(Arc::new(made));
    }

    fn advance(&self, from: Stage, to: Stage) {
        self.stage.send_if_modified(|stage| {
            let is_from = *stage == from;
            if is_from {
                *stage = to;
            }
            is_from
        });
    }

    /// The state of the search and of its model.
    pub fn parts(&self, settings: &Embeddings) -> [Part; 2] {
        let made = self.made.load();
        let stage = *self.stage.borrow();
        let search = Part {
            name: "search".to_owned(),
            state: match stage {
                Stage::Building => PartState::Initializing,
                Stage::Asleep | Stage::Ready => PartState::Ready,
                Stage::Closed => PartState::Error {
                    message: "closed".into(),
                },
            },
            note: (stage == Stage::Asleep).then(|| "not loaded until the first search".into()),
        };
        [search, self.models.part(made.model.as_deref(), settings)]
    }
}

/// Keeps the index up to date with the catalog, from the first search on.
async fn follow(finder: Weak<Finder>) {
    let Some((mut changes, mut settings, stages)) = finder.upgrade().map(|finder| {
        let changes = finder.live_catalog.changes();
        (
            changes,
            finder.settings.subscribe(),
            finder.stage.subscribe(),
        )
    }) else {
        return;
    };
    if !awake(stages, Stage::Building).await {
        return;
    }
    if let Some(finder) = finder.upgrade() {
        // Before the index is ready, so that the first search uses the feedback and can add to it.
        let _ = tokio::task::spawn_blocking(move || finder.feedback.load()).await;
    }
    loop {
        let Some(finder) = finder.upgrade() else {
            return;
        };
        changes.borrow_and_update();
        settings.borrow_and_update();
        let work = tokio::task::spawn_blocking(move || {
            let catalog = finder.live_catalog.catalog_full();
            let settings = finder.config.load().search.embeddings.clone();
            finder.follow(&catalog, &settings);
        });
        if work.await.is_err() {
            tracing::error!("Cannot build the search index; the gateway tries again.");
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            changed = settings.changed() => if changed.is_err() { return },
        }
    }
}

/// Has every new tool scanned.
async fn scrutinise(finder: Weak<Finder>) {
    let Some(mut followed) = finder.upgrade().map(|finder| finder.followed.subscribe()) else {
        return;
    };
    while followed.changed().await.is_ok() {
        let Some(finder) = finder.upgrade() else {
            return;
        };
        let work = tokio::task::spawn_blocking(move || {
            finder.scrutinise(&finder.live_catalog.catalog_full());
        });
        // A panic there costs only the marks.
        let _ = work.await;
    }
}

/// Loads the sentence model, if there is one, and embeds every new tool.
async fn understand(finder: Weak<Finder>) {
    let Some((mut followed, mut changes, stages)) = finder.upgrade().map(|finder| {
        (
            finder.followed.subscribe(),
            finder.models.changes(),
            finder.stage.subscribe(),
        )
    }) else {
        return;
    };
    if !awake(stages, Stage::Ready).await {
        return;
    }
    loop {
        followed.borrow_and_update();
        changes.borrow_and_update();
        let Some(finder) = finder.upgrade() else {
            return;
        };
        let wanted = finder.config.load().search.embeddings.clone();
        let again = finder.models.fetch(&wanted).await;
        let work = tokio::task::spawn_blocking(move || {
            if let Some(model) = finder.models.best(&wanted)
                && model.is_sentences()
            {
                finder.understand(&model);
            }
        });
        // A panic there costs only the vectors.
        let _ = work.await;
        let alive = match again {
            // A model that could not be loaded is not requested again at every change of a list.
            Some(pause) => tokio::select! {
                () = tokio::time::sleep(pause) => true,
                changed = changes.changed() => changed.is_ok(),
            },
            None => followed.changed().await.is_ok(),
        };
        if !alive {
            return;
        }
    }
}

/// Writes new feedback to disk at intervals.
async fn keep_lessons(finder: Weak<Finder>) {
    let Some(stages) = finder.upgrade().map(|finder| finder.stage.subscribe()) else {
        return;
    };
    if !awake(stages, Stage::Building).await {
        return;
    }
    loop {
        tokio::time::sleep(KEEP).await;
        let Some(finder) = finder.upgrade() else {
            return;
        };
        let _ = tokio::task::spawn_blocking(move || finder.feedback.keep()).await;
    }
}

/// Waits for a stage. Returns `false` if the finder was closed first.
async fn awake(mut stages: watch::Receiver<Stage>, wanted: Stage) -> bool {
    let reached = stages.wait_for(|stage| *stage >= wanted).await;
    reached.is_ok_and(|stage| *stage != Stage::Closed)
}

fn vectors_of(model: &Model, part: &ServerPart) -> Option<Vectors> {
    let tools: Vec<_> = tools(part).collect();
    model.vectors(&tools, &mut Cache::none(), &|| true).ok()?
}

/// Builds the segment of a server. If that panics, the server is left out of the index, and the
/// tools of others are still found.
fn segment(part: &ServerPart, is_trusted: &dyn Fn(&Tool<'_>) -> bool) -> Option<Arc<Segment>> {
    let tools = tools(part).map(|tool| Tool {
        trusted: is_trusted(&tool),
        ..tool
    });
    let making = AssertUnwindSafe(|| Segment::new(part.name(), &LANGUAGE, tools));
    let made = catch_unwind(making);
    if made.is_err() {
        tracing::error!(server = %part.name(), "Cannot index the tools of a server.");
    }
    made.ok().map(Arc::new)
}

/// The names of the other servers and of their tools.
pub fn others(catalog: &Catalog, name: &str) -> Others {
    let mut others = Others::default();
    let own = catalog.server(name).into_iter();
    for tool in own.flat_map(|part| part.items(Kind::Tool)) {
        others.own([tool.name()]);
        others.own_parameters(tool.raw());
    }
    for other in catalog.servers().filter(|other| **other.name() != *name) {
        others.add(
            other.name(),
            other.items(Kind::Tool).map(|tool| tool.shown_name()),
        );
    }
    others
}

/// The tools of a server that models may call.
fn tools(part: &ServerPart) -> impl Iterator<Item = Tool<'_>> {
    let tools = part.items(Kind::Tool);
    let tools = tools.filter(|item| !is_for_apps_alone(item.raw()));
    tools.map(|item| Tool {
        name: item.shown_name(),
        definition: item.definition(),
        trusted: true,
    })
}
