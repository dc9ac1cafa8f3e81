//! The properties that filters and scores read: one column per property, and one place in each for every
//! memory.

use crate::{
    Document,
    query::Filter,
    scopes::{NONE, Renumbered, Scopes},
};

/// The columns. A removed memory keeps its place until the library is compacted.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub(crate) row: Vec<u64>,
    /// Scope of each memory; [`NONE`] for removed ones.
    pub(crate) scope: Vec<u32>,
    pub(crate) kind: Vec<u32>,
    pub(crate) importance: Vec<f32>,
    /// `i64::MIN` if unbounded.
    valid_from: Vec<i64>,
    /// `i64::MAX` if unbounded.
    valid_until: Vec<i64>,
    learned_at: Vec<i64>,
    /// `i64::MAX` for the current version.
    learned_until: Vec<i64>,
    /// Memories learned before and after each one in the same scope, in row order.
    before: Vec<Link>,
    after: Vec<Link>,
    /// The last memory of each scope.
    last: Vec<u32>,
}

/// The place of a neighbour, or none, and a flag that tells if both were learned together: in 32 bits,
/// because a recall reads a great many of them.
#[derive(Debug, Clone, Copy)]
struct Link(u32);

const FAR: u32 = 1 << 31;

/// The most places: the highest bit of a [`Link`] is a flag.
pub(crate) const PLACES: usize = FAR as usize - 1;

impl Link {
    const NONE: Self = Self(NONE);

    /// Returns the neighbour's place, near or far.
    fn place(self) -> u32 {
        if self.0 == NONE { NONE } else { self.0 & !FAR }
    }

    /// Returns the neighbour's place if it is near.
    fn near(self) -> Option<u32> {
        (self.0 & FAR == 0).then_some(self.0)
    }
}

/// The memories that pass a filter, numbered as seats, so that scores take space in proportion to the
/// memories that pass and not to all of them.
pub(crate) struct Admitted {
    /// Seat of each place, plus 1; 0 if it does not pass.
    seats: Vec<u32>,
    /// Place of each seat.
    pub(crate) places: Vec<u32>,
    /// For each scope, `true` if it passes.
    pub(crate) scopes: Vec<bool>,
}

impl Admitted {
    /// Returns the seat of the memory in a place, if it passes.
    pub(crate) fn seat(&self, at: u32) -> Option<usize> {
        (self.seats[at as usize] as usize).checked_sub(1)
    }

    /// Number of memories that pass.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }
}

/// Memories learned together are at most an hour apart, in microseconds.
const TOGETHER: i64 = 3_600_000_000;
/// The number of neighbours on each side; each counts half of the one before.
const NEIGHBOURS: usize = 2;
const NEXT: f32 = 0.5;

impl Columns {
    pub(crate) fn len(&self) -> usize {
        self.row.len()
    }

    /// Adds a memory in the next place.
    pub(crate) fn push(&mut self, document: &Document<'_>, scopes: &mut Scopes) {
        let scope = scopes.enter(document.scope);
        self.row.push(document.row);
        self.scope.push(scope);
        self.kind.push(scopes.enter_name(document.kind));
        self.importance.push(document.importance);
        let (from, until) = (document.valid_from, document.valid_until);
        self.valid_from.push(from.unwrap_or(i64::MIN));
        self.valid_until.push(until.unwrap_or(i64::MAX));
        self.learned_at.push(document.learned_at);
        self.learned_until.push(i64::MAX);
        if let Some(until) = document.learned_until {
            self.close(self.len() - 1, until);
        }
        self.before.push(Link::NONE);
        self.after.push(Link::NONE);
        self.link(u32::try_from(self.len() - 1).unwrap_or(NONE), scope);
    }

    /// Links a memory to its neighbours. Rows usually arrive in ascending order, so this is mostly at the
    /// end.
    fn link(&mut self, at: u32, scope: u32) {
        if self.last.len() <= scope as usize {
            self.last.resize(scope as usize + 1, NONE);
        }
        let row = self.row[at as usize];
        let mut before = self.last[scope as usize];
        let mut after = NONE;
        while before != NONE && self.row[before as usize] > row {
            after = before;
            before = self.before[before as usize].place();
        }
        self.join(before, at, scope);
        self.join(at, after, scope);
    }

    /// Unlinks a memory and marks it as removed.
    pub(crate) fn remove(&mut self, at: usize) {
        let scope = self.scope[at];
        self.join(self.before[at].place(), self.after[at].place(), scope);
        self.scope[at] = NONE;
    }

    /// Makes two places neighbours; either may be [`NONE`].
    fn join(&mut self, before: u32, after: u32, scope: u32) {
        let is_near = before != NONE && after != NONE && self.is_near(before, after);
        let link = |place: u32| Link(if is_near { place } else { place | FAR });
        if before != NONE {
            self.after[before as usize] = link(after);
        }
        if after == NONE {
            self.last[scope as usize] = before;
        } else {
            self.before[after as usize] = link(before);
        }
    }

    /// Marks a version as current only until this time.
    pub(crate) fn close(&mut self, at: usize, learned_until: i64) {
        // `i64::MAX` is reserved for current versions.
        self.learned_until[at] = learned_until.min(i64::MAX - 1);
    }

    /// Keeps only these places, in this order, which is that of their rows.
    pub(crate) fn keep(&mut self, places: &[u32], renumbered: &Renumbered) {
        keep(&mut self.row, places);
        keep(&mut self.scope, places);
        keep(&mut self.kind, places);
        keep(&mut self.importance, places);
        keep(&mut self.valid_from, places);
        keep(&mut self.valid_until, places);
        keep(&mut self.learned_at, places);
        keep(&mut self.learned_until, places);
        for scope in &mut self.scope {
            *scope = renumbered.scopes[*scope as usize];
        }
        for kind in &mut self.kind {
            *kind = renumbered.names[*kind as usize];
        }
        self.before = vec![Link::NONE; places.len()];
        self.after = vec![Link::NONE; places.len()];
        self.last.clear();
        for at in (0..).take(places.len()) {
            self.link(at, self.scope[at as usize]);
        }
    }

    /// Returns the memories that pass a filter.
    pub(crate) fn admitted(&self, filter: &Filter<'_>, scopes: &Scopes) -> Admitted {
        let kind = filter.kind.map(|kind| scopes.name(kind));
        let scopes = scopes.admitted(filter);
        let mut seats = vec![0; self.len()];
        let mut places = Vec::new();
        for (at, scope) in (0_u32..).zip(&self.scope) {
            let is_in_scope = scopes.get(*scope as usize).copied().unwrap_or(false);
            if is_in_scope && self.passes(at as usize, filter, kind) {
                places.push(at);
                seats[at as usize] = u32::try_from(places.len()).unwrap_or_default();
            }
        }
        Admitted {
            seats,
            places,
            scopes,
        }
    }

    fn passes(&self, at: usize, filter: &Filter<'_>, kind: Option<u32>) -> bool {
        if kind.is_some_and(|kind| kind != self.kind[at]) {
            return false;
        }
        let is_known = match filter.known_at {
            Some(then) => self.learned_at[at] <= then && before(then, self.learned_until[at]),
            None => self.is_current(at),
        };
        is_known
            && match filter.as_of {
                Some(then) => self.valid_from[at] <= then && before(then, self.valid_until[at]),
                None => filter.ended || !self.has_ended(at, filter.now),
            }
    }

    pub(crate) fn is_current(&self, at: usize) -> bool {
        self.learned_until[at] == i64::MAX
    }

    pub(crate) fn has_ended(&self, at: usize, now: i64) -> bool {
        !before(now, self.valid_until[at])
    }

    /// Returns the time of a memory: the time from which it is true, or else the time at which it was
    /// learned.
    pub(crate) fn moment(&self, at: usize) -> i64 {
        match self.valid_from[at] {
            i64::MIN => self.learned_at[at],
            from => from,
        }
    }

    /// Calls `call` with the seat and weight of each neighbour of a memory: the memories learned just before
    /// and after it, in exactly the same scope, at about the same time. A neighbour that does not pass ends
    /// the walk in its direction.
    pub(crate) fn each_neighbour(
        &self,
        at: u32,
        admitted: &Admitted,
        mut call: impl FnMut(usize, f32),
    ) {
        for links in [&self.before, &self.after] {
            let mut here = at as usize;
            let mut share = 1.0;
            for _ in 0..NEIGHBOURS {
                let Some(next) = links[here].near() else {
                    break;
                };
                let Some(seat) = admitted.seat(next) else {
                    break;
                };
                share *= NEXT;
                call(seat, share);
                here = next as usize;
            }
        }
    }

    fn is_near(&self, one: u32, other: u32) -> bool {
        let (one, other) = (one as usize, other as usize);
        let (valid_one, valid_other) = (self.valid_from[one], self.valid_from[other]);
        let apart = if valid_one == i64::MIN || valid_other == i64::MIN {
            self.learned_at[one].abs_diff(self.learned_at[other])
        } else {
            valid_one.abs_diff(valid_other)
        };
        apart <= TOGETHER.unsigned_abs()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.row.capacity() * (8 + 3 * 4 + 4 * 8 + 2 * 4) + self.last.capacity() * 4
    }
}

/// Returns `true` if a time is before an end, which may be unbounded.
fn before(time: i64, end: i64) -> bool {
    end == i64::MAX || time < end
}

fn keep<T: Copy>(column: &mut Vec<T>, places: &[u32]) {
    *column = places.iter().map(|at| column[*at as usize]).collect();
}
