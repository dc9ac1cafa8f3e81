//! The instances of a server that belong to single callers: which exist, and which one makes room for another.
//!
//! This is a table without clocks and tasks: starting and stopping instances is left to its user.

use std::{fmt, sync::Arc, time::Instant};

use switchboard_base::caller::{Caller, Realm};

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
        /// The directory that the client works in. A client over HTTP may work in several.
        project: Option<Arc<str>>,
    },
}

impl Key {
    /// Tests if the instance serves this caller.
    pub fn serves(&self, caller: &Caller) -> bool {
        match self {
            Self::Project(project) => caller.project() == Some(project),
            Self::Client {
                realm,
                person,
                project,
            } => {
                *realm == caller.realm
                    && *person == caller.person
                    && project.as_ref() == caller.project()
            }
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

/// Something that may be in use.
pub(crate) trait InUse {
    /// The time since when it has not been used; `None` while it is in use.
    fn idle_since(&self) -> Option<Instant>;
}

/// The instances of one server.
#[derive(Debug)]
pub(crate) struct Instances<T> {
    entries: Vec<Entry<T>>,
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
    /// The owner has used it.
    is_owners: bool,
    pub(crate) instance: T,
}

/// An instance that is about to be created.
#[derive(Debug)]
pub(crate) struct Vacancy<T> {
    pub(crate) number: u64,
    /// The least number that no other instance has at the moment.
    pub(crate) place: usize,
    /// The instance that makes room. It has to end first.
    pub(crate) replaced: Option<T>,
}

/// There is no room, and all instances that could make some are in use.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl<T> Default for Instances<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            last: 0,
        }
    }
}

impl<T: InUse + Clone> Instances<T> {
    /// The instance of a key. If there is none, `start` creates it; beyond `most`, the one that has been idle
    /// longest makes room.
    ///
    /// Callers other than the owner have at most half of the places, and no instance that the owner uses makes room
    /// for theirs: a client with a token cannot keep the owner from the server, or stop its processes.
    pub(crate) fn find_or_start(
        &mut self,
        key: &Key,
        is_owner: bool,
        most: usize,
        start: impl FnOnce(Vacancy<T>) -> T,
    ) -> Result<T, Full> {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.key == *key) {
            entry.is_owners |= is_owner;
            return Ok(entry.instance.clone());
        }
        let others = self.entries.iter().filter(|entry| !entry.is_owners).count();
        let has_room = self.entries.len() < most && (is_owner || others < most.div_ceil(2));
        let replaced = if has_room {
            None
        } else {
            let candidates = self.entries.iter().enumerate();
            let candidates = candidates.filter(|(_, entry)| is_owner || !entry.is_owners);
            let idle = candidates.filter_map(|(at, entry)| {
                let since = entry.instance.idle_since()?;
                Some((since, entry.number, at))
            });
            let (_, _, at) = idle.min().ok_or(Full)?;
            Some(self.entries.remove(at).instance)
        };
        let (number, place) = self.vacant();
        let instance = start(Vacancy {
            number,
            place,
            replaced,
        });
        self.entries.push(Entry {
            key: key.clone(),
            number,
            place,
            is_owners: is_owner,
            instance: instance.clone(),
        });
        Ok(instance)
    }

    /// Takes in an instance that exists already.
    pub(crate) fn adopt(&mut self, key: Key, is_owner: bool, instance: T) {
        let (number, place) = self.vacant();
        self.entries.push(Entry {
            key,
            number,
            place,
            is_owners: is_owner,
            instance,
        });
    }

    fn vacant(&mut self) -> (u64, usize) {
        self.last += 1;
        let is_free = |place: &usize| self.entries.iter().all(|entry| entry.place != *place);
        // One of these is free: there are fewer entries than numbers.
        let place = (1..=self.entries.len() + 1).find(is_free);
        (self.last, place.unwrap_or(1))
    }

    /// Removes the instances for which this holds.
    pub(crate) fn remove(&mut self, is_it: impl Fn(&Entry<T>) -> bool) -> Vec<T> {
        let removed = self.entries.extract_if(.., |entry| is_it(entry));
        removed.map(|entry| entry.instance).collect()
    }

    /// All instances, oldest first.
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
        state: RefCell<State>,
    }

    #[derive(Debug)]
    struct State {
        calls: u32,
        last_used: Instant,
        is_up: bool,
        has_ended: bool,
    }

    impl InUse for Rc<Process> {
        fn idle_since(&self) -> Option<Instant> {
            let state = self.state.borrow();
            (state.calls == 0).then_some(state.last_used)
        }
    }

    /// The callers: two clients of the owner and two of others, in two projects or in none.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    struct Who {
        client: u8,
        project: u8,
    }

    impl Who {
        fn is_owner(self) -> bool {
            self.client < 3
        }

        fn key(self, by_project: bool) -> Key {
            let project = format!("/p{}", self.project).into();
            if by_project {
                return Key::Project(project);
            }
            let principal = if self.is_owner() {
                switchboard_base::caller::Principal::Owner
            } else {
                switchboard_base::caller::Principal::Anyone
            };
            Key::Client {
                realm: principal.into(),
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
        fn call(&mut self, who: Who) -> Result<(), TestCaseError> {
            let key = who.key(self.by_project);
            let before: BTreeMap<u64, Rc<Process>> = self
                .table
                .iter()
                .map(|entry| (entry.number, Rc::clone(&entry.instance)))
                .collect();
            let owners: Vec<u64> = self
                .table
                .iter()
                .filter(|entry| entry.is_owners)
                .map(|entry| entry.number)
                .collect();
            let (now, mut replaced) = (self.now, None);
            let found = self
                .table
                .find_or_start(&key, who.is_owner(), self.most, |vacancy| {
                    replaced = vacancy.replaced;
                    Rc::new(Process {
                        key: key.clone(),
                        number: vacancy.number,
                        state: RefCell::new(State {
                            calls: 0,
                            last_used: now,
                            is_up: false,
                            has_ended: false,
                        }),
                    })
                });
            if let Some(replaced) = replaced {
                let mut state = replaced.state.borrow_mut();
                prop_assert_eq!(state.calls, 0, "a process in use was replaced");
                prop_assert!(who.is_owner() || !owners.contains(&replaced.number));
                let is_older = |other: &&Rc<Process>| {
                    let other = other.state.borrow();
                    other.calls == 0 && other.last_used < state.last_used
                };
                let others = before
                    .values()
                    .filter(|other| !Rc::ptr_eq(other, &replaced));
                let may = |other: &&Rc<Process>| who.is_owner() || !owners.contains(&other.number);
                prop_assert_eq!(others.filter(may).filter(is_older).count(), 0);
                (state.is_up, state.has_ended) = (false, true);
            }
            let Ok(process) = found else {
                let has = before.values().any(|process| process.key == key);
                prop_assert!(!has, "an existing process was refused");
                let may_go = before.values().filter(|process| {
                    let may = who.is_owner() || !owners.contains(&process.number);
                    may && process.state.borrow().calls == 0
                });
                prop_assert_eq!(may_go.count(), 0, "an idle process could have made room");
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
            prop_assert!(!state.has_ended, "a call reached a process that has ended");
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

        /// Ends the processes of a client, with its calls.
        fn leave(&mut self, client: u8) {
            let principal = Who { client, project: 0 }.key(false);
            let Key::Client { realm, person, .. } = principal else {
                return;
            };
            let caller = Caller {
                person,
                ..Caller::new(0, "c".into(), realm)
            };
            for left in self.table.remove(|entry| entry.key.is_of(&caller)) {
                self.calls
                    .retain(|(_, process)| !Rc::ptr_eq(process, &left));
                let mut state = left.state.borrow_mut();
                (state.calls, state.is_up, state.has_ended) = (0, false, true);
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
                prop_assert!(others.iter().all(|other| other.place != entry.place));
                prop_assert!(!entry.instance.state.borrow().has_ended);
            }
            // A process that is not in the table has ended: nothing leaks.
            for process in &self.all {
                let is_known = known
                    .iter()
                    .any(|entry| Rc::ptr_eq(&entry.instance, process));
                let state = process.state.borrow();
                prop_assert_eq!(is_known, !state.has_ended);
                prop_assert!(is_known || state.calls == 0);
            }
            Ok(())
        }
    }

    proptest! {
        #[test]
        fn calls_reach_processes_of_their_own_key(
            by_project in any::<bool>(), most in 1..6_usize, steps in steps()
        ) {
            let mut world = World {
                table: Instances::default(),
                by_project,
                most,
                now: Instant::now(),
                calls: Vec::new(),
                all: Vec::new(),
            };
            for step in steps {
                match step {
                    Step::Call(who) => world.call(who)?,
                    Step::End(at) => world.end(at),
                    Step::Crash(at) => world.crash(at),
                    Step::Leave(client) => world.leave(client),
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

    fn fill(
        table: &mut Instances<Rc<Process>>,
        clients: std::ops::Range<u8>,
        most: usize,
    ) -> usize {
        let now = Instant::now();
        let started = clients.filter(|client| {
            let who = Who {
                client: *client,
                project: 0,
            };
            let key = who.key(false);
            let make = |vacancy: Vacancy<Rc<Process>>| {
                assert!(vacancy.replaced.is_none());
                let state = State {
                    calls: 1,
                    last_used: now,
                    is_up: true,
                    has_ended: false,
                };
                Rc::new(Process {
                    key: key.clone(),
                    number: vacancy.number,
                    state: state.into(),
                })
            };
            table
                .find_or_start(&key, who.is_owner(), most, make)
                .is_ok()
        });
        started.count()
    }

    #[test]
    fn others_leave_half_to_the_owner() {
        let mut table = Instances::default();
        assert_eq!(fill(&mut table, 3..6, 4), 2);
        assert_eq!(fill(&mut table, 0..3, 4), 2);
        let mut table = Instances::default();
        assert_eq!(fill(&mut table, 0..3, 4), 3);
        assert_eq!(fill(&mut table, 3..6, 4), 1);
    }
}
