//! The instances of a server that belong to single callers: which exist, and which one makes room for another.
//!
//! This is a table without clocks and tasks: starting and stopping instances is left to its user.

use std::{fmt, sync::Arc, time::Instant};

use switchboard_base::caller::{Caller, Principal, Realm};

/// The callers that an instance serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// The clients that work in this directory.
    Project(Arc<str>),
    /// One client.
    Client {
        /// The party that the client belongs to.
        realm: Realm,
        /// Distinguishes the clients of that party.
        person: u64,
        /// The directory that the client works in, if the server needs it or the client has named it: a client over
        /// HTTP may work in several. A directory that becomes known later does not change the key.
        project: Option<Arc<str>>,
    },
}

impl Key {
    /// Tests if the instance is for a single client.
    pub fn is_of_one_client(&self) -> bool {
        matches!(self, Self::Client { .. })
    }

    /// The key of a single client.
    pub(crate) fn of_client(caller: &Caller, needs_project: bool) -> Self {
        let project = if needs_project {
            caller.project()
        } else {
            caller.project.given()
        };
        Self::Client {
            realm: caller.realm,
            person: caller.person,
            project: project.cloned(),
        }
    }

    /// Tests if the instance serves this caller.
    pub fn serves(&self, caller: &Caller) -> bool {
        match self {
            Self::Project(project) => caller.project() == Some(project),
            Self::Client { project, .. } => {
                let is_there = match project {
                    Some(project) => caller.project() == Some(project),
                    None => caller.project.given().is_none(),
                };
                self.is_of(caller) && is_there
            }
        }
    }

    /// The party of the client that the instance belongs to.
    pub(crate) fn principal(&self) -> Option<Principal> {
        match self {
            Self::Project(_) => None,
            Self::Client { realm, .. } => Some(realm.principal),
        }
    }

    /// Tests if the instance belongs to this client alone.
    pub(crate) fn is_of(&self, caller: &Caller) -> bool {
        match self {
            Self::Project(_) => false,
            Self::Client { realm, person, .. } => {
                *realm == caller.realm && *person == caller.person
            }
        }
    }
}

/// The spelling in signed tokens, which differs for each key.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Project(project) => write!(f, "in {project}"),
            Self::Client {
                realm,
                person,
                project,
            } => {
                let project = project.as_deref().unwrap_or_default();
                write!(f, "of {realm} {person:x} in {project}")
            }
        }
    }
}

/// The precedence of a caller. An instance never makes room for a caller of a lower rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    Anyone,
    Token,
    Owner,
}

impl From<Principal> for Rank {
    fn from(principal: Principal) -> Self {
        match principal {
            Principal::Owner => Self::Owner,
            Principal::Token(_) => Self::Token,
            Principal::Anyone => Self::Anyone,
        }
    }
}

/// Something that may be in use.
pub(crate) trait InUse {
    /// The time since when it has not been used; `None` while it is in use.
    fn idle_since(&self) -> Option<Instant>;
}

/// The instances of one server.
#[derive(Debug)]
pub(crate) struct Instances<T> {
    entries: Vec<Entry<T>>,
    ending: Vec<Ending<T>>,
    /// The number of the last one.
    last: u64,
}

/// One instance.
#[derive(Debug, Clone)]
pub(crate) struct Entry<T> {
    pub(crate) key: Key,
    /// Identifies it: no other instance of the server ever has this number.
    pub(crate) number: u64,
    pub(crate) place: usize,
    /// The highest rank of the callers that have used it.
    rank: Rank,
    pub(crate) instance: T,
}

/// An instance that is stopping.
#[derive(Debug)]
struct Ending<T> {
    entry: Entry<T>,
    /// Another one, which starts when this one has ended, takes up its room by now.
    is_replaced: bool,
}

/// An instance that is about to be created.
#[derive(Debug)]
pub(crate) struct Vacancy<T> {
    pub(crate) number: u64,
    /// The least number that no other instance has at the moment, except for its predecessors.
    pub(crate) place: usize,
    /// The instances that have to end first. They are to be stopped, and [have ended](Instances::ended) then.
    pub(crate) predecessors: Vec<Entry<T>>,
}

/// The most instances that wait for one that is stopping, directly or for one another. Otherwise, callers that come and
/// go could create any number of them before it has ended.
const REPLACED_MAX: usize = 64;

/// There is no room, and all instances that could make some are in use.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl<T: InUse + Clone> Instances<T> {
    /// A table whose numbers continue after this one.
    pub(crate) fn after(last: u64) -> Self {
        Self {
            entries: Vec::new(),
            ending: Vec::new(),
            last,
        }
    }

    /// The number of the last instance.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The instance of a key. If there is none, `start` creates it; beyond `most`, the ones that have been idle
    /// longest make room. One of the same key that is stopping ends first, so that two never work in one directory.
    ///
    /// Callers other than the owner have at most half of the places, but at least one, and no instance that a caller
    /// of a higher rank has used makes room for theirs: a client with a token cannot keep the owner from the server, or
    /// stop its processes.
    pub(crate) fn find_or_start(
        &mut self,
        key: &Key,
        rank: Rank,
        most: usize,
        start: impl FnOnce(Vacancy<T>) -> T,
    ) -> Result<T, Full> {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.key == *key) {
            entry.rank = entry.rank.max(rank);
            return Ok(entry.instance.clone());
        }
        let ending = self.ending.iter().filter(|ending| !ending.is_replaced);
        let former = ending.filter(|ending| ending.entry.key == *key);
        // The ones that take up room and have to end first.
        let mut leaving: Vec<_> = former.map(|ending| ending.entry.number).collect();
        while !self.has_room(rank, most, &leaving) {
            leaving.push(self.next_to_leave(rank, &leaving).ok_or(Full)?);
        }
        // Callers of a lower rank must not use up the room of others.
        let replaced = self.ending.iter();
        let replaced = replaced.filter(|ending| ending.is_replaced && ending.entry.rank >= rank);
        if !leaving.is_empty() && replaced.count() >= REPLACED_MAX {
            return Err(Full);
        }
        self.end(|entry| leaving.contains(&entry.number));
        let mut predecessors = Vec::new();
        for ending in &mut self.ending {
            let number = ending.entry.number;
            // The others still take up room.
            ending.is_replaced |= leaving.first() == Some(&number);
            if ending.entry.key == *key || leaving.contains(&number) {
                predecessors.push(ending.entry.clone());
            }
        }
        let (number, place) = self.vacant(&predecessors);
        let instance = start(Vacancy {
            number,
            place,
            predecessors,
        });
        self.entries.push(Entry {
            key: key.clone(),
            number,
            place,
            rank,
            instance: instance.clone(),
        });
        Ok(instance)
    }

    /// Tests if there is room for another one without the ones with the numbers `leaving`.
    fn has_room(&self, rank: Rank, most: usize, leaving: &[u64]) -> bool {
        let ending = self.ending.iter().filter(|ending| !ending.is_replaced);
        let all = self
            .entries
            .iter()
            .chain(ending.map(|ending| &ending.entry));
        let stay: Vec<_> = all
            .filter(|entry| !leaving.contains(&entry.number))
            .collect();
        let others = stay.iter().filter(|entry| entry.rank < Rank::Owner).count();
        stay.len() < most && (rank == Rank::Owner || others < (most / 2).max(1))
    }

    /// The number of the next one that makes room for a caller of this rank: one that is stopping or, of all others, the
    /// one that has been idle longest.
    fn next_to_leave(&self, rank: Rank, leaving: &[u64]) -> Option<u64> {
        let may_leave = |entry: &Entry<T>| entry.rank <= rank && !leaving.contains(&entry.number);
        let ending = self.ending.iter().filter(|ending| !ending.is_replaced);
        let mut ending = ending.map(|ending| &ending.entry);
        if let Some(ending) = ending.find(|entry| may_leave(entry)) {
            return Some(ending.number);
        }
        let idle = self.entries.iter().filter(|entry| may_leave(entry));
        let idle = idle.filter_map(|entry| Some((entry.instance.idle_since()?, entry.number)));
        idle.min().map(|(_, number)| number)
    }

    fn vacant(&mut self, predecessors: &[Entry<T>]) -> (u64, usize) {
        self.last += 1;
        let ending = self.ending.iter().map(|ending| &ending.entry);
        let is_predecessor = |number| predecessors.iter().any(|entry| entry.number == number);
        let ending = ending.filter(|entry| !is_predecessor(entry.number));
        let others: Vec<_> = self.entries.iter().chain(ending).collect();
        let is_free = |place: &usize| others.iter().all(|entry| entry.place != *place);
        // One of these is free: there are fewer instances than numbers.
        let place = (1..=others.len() + 1).find(is_free);
        (self.last, place.unwrap_or(1))
    }

    /// Removes the instances for which this holds. They take up room until they [have ended](Self::ended).
    pub(crate) fn end(&mut self, is_it: impl Fn(&Entry<T>) -> bool) -> Vec<Entry<T>> {
        let removed: Vec<_> = self.entries.extract_if(.., |entry| is_it(entry)).collect();
        let ending = removed.iter().cloned().map(|entry| Ending {
            entry,
            is_replaced: false,
        });
        self.ending.extend(ending);
        removed
    }

    /// Removes all instances, like [`end`](Self::end), and returns the ones that are stopping already, too.
    pub(crate) fn end_all(&mut self) -> Vec<Entry<T>> {
        self.end(|_| true);
        let ending = self.ending.iter();
        ending.map(|ending| ending.entry.clone()).collect()
    }

    /// Forgets an instance that was stopping.
    pub(crate) fn ended(&mut self, number: u64) {
        self.ending.retain(|ending| ending.entry.number != number);
    }

    /// The number of instances that have not ended.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.entries.len() + self.ending.len()
    }

    /// All instances that are not stopping, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry<T>> {
        self.entries.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, collections::BTreeMap, rc::Rc, time::Duration};

    use proptest::prelude::*;

    use super::*;

    /// A process in virtual time, which is started by a call, and ends when it crashes or has been idle.
    #[derive(Debug)]
    struct Process {
        key: Key,
        number: u64,
        place: usize,
        /// It starts when these have ended.
        predecessors: Vec<Rc<Self>>,
        /// The limit when it was created.
        most: usize,
        state: RefCell<State>,
    }

    #[derive(Debug)]
    struct State {
        calls: u32,
        last_used: Instant,
        is_up: bool,
        is_ending: bool,
        has_ended: bool,
    }

    impl Process {
        fn new(key: &Key, vacancy: Vacancy<Rc<Self>>, most: usize, now: Instant) -> Rc<Self> {
            let predecessors = vacancy.predecessors.into_iter();
            Rc::new(Self {
                key: key.clone(),
                number: vacancy.number,
                place: vacancy.place,
                predecessors: predecessors.map(|entry| entry.instance).collect(),
                most,
                state: RefCell::new(State {
                    calls: 0,
                    last_used: now,
                    is_up: false,
                    is_ending: false,
                    has_ended: false,
                }),
            })
        }

        fn has_ended(&self) -> bool {
            self.state.borrow().has_ended
        }

        fn is_ending(&self) -> bool {
            self.state.borrow().is_ending
        }

        /// Tests if it may run: those before it have ended, and it has not.
        fn is_alive(&self) -> bool {
            !self.has_ended() && self.predecessors.iter().all(|process| process.has_ended())
        }
    }

    impl InUse for Rc<Process> {
        fn idle_since(&self) -> Option<Instant> {
            let state = self.state.borrow();
            (state.calls == 0).then_some(state.last_used)
        }
    }

    /// The callers: two clients of each rank, in three projects.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    struct Who {
        client: u8,
        project: u8,
    }

    impl Who {
        fn principal(self) -> Principal {
            match self.client {
                0 | 1 => Principal::Owner,
                2 | 3 => Principal::Token(serde_json::from_str("\"0123456789abcdef\"").unwrap()),
                _ => Principal::Anyone,
            }
        }

        fn rank(self) -> Rank {
            self.principal().into()
        }

        fn key(self, by_project: bool) -> Key {
            let project = format!("/p{}", self.project).into();
            if by_project {
                return Key::Project(project);
            }
            Key::Client {
                realm: self.principal().into(),
                person: self.client.into(),
                project: Some(project),
            }
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Call(Who),
        /// Ends one of the calls in flight.
        End(usize),
        /// The process of one of the calls crashes, which ends all its calls.
        Crash(usize),
        Leave(u8),
        /// One of the processes that are stopping has ended.
        Ended(usize),
        Wait(u64),
        Limit(usize),
    }

    fn who() -> impl Strategy<Value = Who> {
        (0..6_u8, 0..3_u8).prop_map(|(client, project)| Who { client, project })
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => who().prop_map(Step::Call),
            4 => any::<usize>().prop_map(Step::End),
            1 => any::<usize>().prop_map(Step::Crash),
            1 => (0..6_u8).prop_map(Step::Leave),
            1 => any::<usize>().prop_map(Step::Ended),
            3 => (0..400_u64).prop_map(Step::Wait),
            1 => (1..6_usize).prop_map(Step::Limit),
        ];
        prop::collection::vec(step, 0..150)
    }

    /// The time after which an unused process is stopped.
    const IDLE: Duration = Duration::from_mins(5);

    struct World {
        table: Instances<Rc<Process>>,
        by_project: bool,
        most: usize,
        now: Instant,
        calls: Vec<(Who, Rc<Process>)>,
        /// All processes that were ever created.
        all: Vec<Rc<Process>>,
    }

    impl World {
        fn new(by_project: bool, most: usize) -> Self {
            Self {
                table: Instances::after(0),
                by_project,
                most,
                now: Instant::now(),
                calls: Vec::new(),
                all: Vec::new(),
            }
        }

        fn call(&mut self, who: Who) -> Result<(), TestCaseError> {
            let key = who.key(self.by_project);
            let before: BTreeMap<u64, (Rank, Rc<Process>)> = self
                .table
                .iter()
                .map(|entry| (entry.number, (entry.rank, Rc::clone(&entry.instance))))
                .collect();
            let (now, most) = (self.now, self.most);
            let found = self.table.find_or_start(&key, who.rank(), most, |vacancy| {
                Process::new(&key, vacancy, most, now)
            });
            let may_go = |process: &Process| {
                let known = before.get(&process.number);
                known.is_some_and(|(rank, _)| *rank <= who.rank())
                    && process.state.borrow().calls == 0
            };
            let is_new = |process: &&Rc<Process>| !before.contains_key(&process.number);
            let created = found.as_ref().ok().filter(is_new);
            let replaced = created.map_or(&[][..], |created| &created.predecessors[..]);
            for process in replaced.iter().filter(|process| !process.is_ending()) {
                prop_assert!(may_go(process), "a process in use was replaced");
                let since = process.state.borrow().last_used;
                let is_older = |other: &&(Rank, Rc<Process>)| {
                    may_go(&other.1) && other.1.state.borrow().last_used < since
                };
                let stays = |other: &&(Rank, Rc<Process>)| {
                    !replaced.iter().any(|gone| Rc::ptr_eq(gone, &other.1))
                };
                prop_assert_eq!(before.values().filter(stays).filter(is_older).count(), 0);
            }
            for process in replaced {
                let mut state = process.state.borrow_mut();
                (state.is_up, state.is_ending) = (false, true);
            }
            let Ok(process) = found else {
                let has = before.values().any(|(_, process)| process.key == key);
                prop_assert!(!has, "an existing process was refused");
                // Without all that may make room for the caller, there would still be none.
                let stay = before.values().filter(|(_, process)| !may_go(process));
                let ending = self.table.ending.iter();
                let ending = ending.filter(|ending| !ending.is_replaced);
                let ending = ending.map(|ending| ending.entry.rank);
                let ending = ending.filter(|rank| *rank > who.rank());
                let stay: Vec<_> = stay.map(|(rank, _)| *rank).chain(ending).collect();
                let others = stay.iter().filter(|rank| **rank < Rank::Owner).count();
                let is_full = stay.len() >= self.most
                    || who.rank() < Rank::Owner && others >= (self.most / 2).max(1);
                prop_assert!(is_full, "an idle process could have made room");
                return Ok(());
            };
            prop_assert_eq!(
                &process.key,
                &key,
                "a call reached a process of another key"
            );
            if !before.contains_key(&process.number) {
                self.all.push(Rc::clone(&process));
            }
            let mut state = process.state.borrow_mut();
            prop_assert!(
                !state.is_ending && !state.has_ended,
                "a call reached a process that ends"
            );
            (state.calls, state.is_up) = (state.calls + 1, true);
            drop(state);
            self.calls.push((who, process));
            Ok(())
        }

        fn end(&mut self, at: usize) {
            if !self.calls.is_empty() {
                let (_, process) = self.calls.remove(at % self.calls.len());
                let mut state = process.state.borrow_mut();
                state.calls -= 1;
                state.last_used = self.now;
            }
        }

        fn crash(&mut self, at: usize) {
            if self.calls.is_empty() {
                return;
            }
            let (_, crashed) = self.calls[at % self.calls.len()].clone();
            self.calls
                .retain(|(_, process)| !Rc::ptr_eq(process, &crashed));
            let mut state = crashed.state.borrow_mut();
            (state.calls, state.is_up, state.last_used) = (0, false, self.now);
        }

        /// Has the processes of a client stop, which ends its calls.
        fn leave(&mut self, client: u8) {
            let who = Who { client, project: 0 };
            let caller = Caller {
                person: client.into(),
                ..Caller::new(0, "c".into(), who.principal())
            };
            for left in self.table.end(|entry| entry.key.is_of(&caller)) {
                self.calls
                    .retain(|(_, process)| !Rc::ptr_eq(process, &left.instance));
                let mut state = left.instance.state.borrow_mut();
                (state.calls, state.is_up, state.is_ending) = (0, false, true);
            }
        }

        fn ended(&mut self, at: usize) {
            let can_end = |process: &&Rc<Process>| process.is_ending() && process.is_alive();
            let ending: Vec<_> = self.all.iter().filter(can_end).collect();
            if let Some(process) = ending.get(at % ending.len().max(1)) {
                process.state.borrow_mut().has_ended = true;
                self.table.ended(process.number);
            }
        }

        fn wait(&mut self, seconds: u64) {
            self.now += Duration::from_secs(seconds);
            for entry in self.table.iter() {
                let mut state = entry.instance.state.borrow_mut();
                if state.calls == 0 && self.now - state.last_used >= IDLE {
                    state.is_up = false;
                }
            }
        }

        fn check(&self) -> Result<(), TestCaseError> {
            let known: Vec<_> = self.table.iter().collect();
            for (at, entry) in known.iter().enumerate() {
                let others = &known[at + 1..];
                prop_assert!(others.iter().all(|other| other.key != entry.key));
                prop_assert!(others.iter().all(|other| other.number > entry.number));
                prop_assert!(!entry.instance.state.borrow().is_ending);
            }
            let alive: Vec<_> = self
                .all
                .iter()
                .filter(|process| process.is_alive())
                .collect();
            for (at, process) in alive.iter().enumerate() {
                let others = &alive[at + 1..];
                prop_assert!(others.iter().all(|other| other.place != process.place));
                prop_assert!(others.iter().all(|other| other.key != process.key));
            }
            let most = alive.last().map_or(0, |newest| newest.most);
            prop_assert!(alive.len() <= most, "there are too many processes");
            // Nothing leaks: a process that has not ended is known, or is stopping.
            let mut left = self.all.iter().filter(|process| !process.has_ended());
            let is_known = |process: &Rc<Process>| {
                known
                    .iter()
                    .any(|entry| Rc::ptr_eq(&entry.instance, process))
            };
            prop_assert!(left.all(|process| is_known(process) != process.is_ending()));
            Ok(())
        }
    }

    proptest! {
        #[test]
        fn calls_reach_processes_of_their_own_key(
            by_project in any::<bool>(), most in 1..6_usize, steps in steps()
        ) {
            let mut world = World::new(by_project, most);
            for step in steps {
                match step {
                    Step::Call(who) => world.call(who)?,
                    Step::End(at) => world.end(at),
                    Step::Crash(at) => world.crash(at),
                    Step::Leave(client) => world.leave(client),
                    Step::Ended(at) => world.ended(at),
                    Step::Wait(seconds) => world.wait(seconds),
                    Step::Limit(most) => world.most = most,
                }
                world.check()?;
            }
            // Idle processes end, and none is left when all clients have left.
            while !world.calls.is_empty() {
                world.end(0);
            }
            world.wait(IDLE.as_secs());
            prop_assert!(world.all.iter().all(|process| !process.state.borrow().is_up));
            for client in 0..6 {
                world.leave(client);
            }
            world.check()?;
            prop_assert!(by_project || world.table.iter().next().is_none());
        }
    }

    /// The number of these clients that get a process that stays in use.
    fn fill(world: &mut World, clients: std::ops::Range<u8>) -> usize {
        let before = world.calls.len();
        for client in clients {
            world.call(Who { client, project: 0 }).unwrap();
        }
        world.calls.len() - before
    }

    #[test]
    fn others_leave_half_to_the_owner() {
        let mut world = World::new(false, 3);
        assert_eq!(fill(&mut world, 2..6), 1);
        assert_eq!(fill(&mut world, 0..2), 2);
        let mut world = World::new(false, 3);
        assert_eq!(fill(&mut world, 0..2), 2);
        assert_eq!(fill(&mut world, 2..6), 1);
        let mut world = World::new(false, 1);
        assert_eq!(fill(&mut world, 2..6), 1);
    }

    #[test]
    fn stranger_does_not_stop_processes_of_tokens() {
        let mut world = World::new(false, 2);
        assert_eq!(fill(&mut world, 2..3), 1);
        world.end(0);
        assert_eq!(fill(&mut world, 4..5), 0);
        assert_eq!(fill(&mut world, 3..4), 1);
    }
}
