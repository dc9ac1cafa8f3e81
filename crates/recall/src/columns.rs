//! What a filter and a score look at: a column for each property, a place in each for every memory.

use crate::{
    Document,
    query::Filter,
    scopes::{NONE, Renumbered, Scopes},
};

/// The columns. What was removed keeps its place until the library is tidied.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub(crate) row: Vec<u64>,
    /// [`NONE`] for what was removed.
    pub(crate) scope: Vec<u32>,
    pub(crate) kind: Vec<u32>,
    pub(crate) importance: Vec<f32>,
    /// The first of all times if it is open.
    valid_from: Vec<i64>,
    /// The last of all times if it is open.
    valid_until: Vec<i64>,
    learned_at: Vec<i64>,
    /// The last of all times for the current version.
    learned_until: Vec<i64>,
    /// What was learned before it in the same scope, and what after it, in the order of the rows.
    before: Vec<Link>,
    after: Vec<Link>,
    /// By scope: what was learned last.
    last: Vec<u32>,
}

/// The place of a neighbour, or none, and whether both were learned in one go: in 32 bits, because a recall looks
/// at very many of them.
#[derive(Debug, Clone, Copy)]
struct Link(u32);

const FAR: u32 = 1 << 31;

/// The most places: what is above is a mark.
pub(crate) const PLACES: usize = FAR as usize - 1;

impl Link {
    const NONE: Self = Self(NONE);

    /// The neighbour's place, however far it is.
    fn place(self) -> u32 {
        if self.0 == NONE { NONE } else { self.0 & !FAR }
    }

    /// The neighbour's place if it is near.
    fn near(self) -> Option<u32> {
        (self.0 & FAR == 0).then_some(self.0)
    }
}

/// What passes a filter. It is numbered through in seats, so that everything that is counted for it takes room in
/// proportion to what passes and not to what there is.
pub(crate) struct Admitted {
    /// By place: the seat and 1 more; 0 for what does not pass.
    seats: Vec<u32>,
    /// By seat.
    pub(crate) places: Vec<u32>,
    /// By scope.
    pub(crate) scopes: Vec<bool>,
}

impl Admitted {
    /// The seat of the memory in a place, if it passes.
    pub(crate) fn seat(&self, at: u32) -> Option<usize> {
        (self.seats[at as usize] as usize).checked_sub(1)
    }

    /// How many pass.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }
}

/// Memories that were learned in one go belong together: no further apart than an hour, in microseconds.
const TOGETHER: i64 = 3_600_000_000;
/// So many neighbours on each side, each counting half of the one before.
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

    /// Puts a memory among its neighbours. Rows come in ascending order, so this is mostly the end.
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

    /// Takes a memory out.
    pub(crate) fn remove(&mut self, at: usize) {
        let scope = self.scope[at];
        self.join(self.before[at].place(), self.after[at].place(), scope);
        self.scope[at] = NONE;
    }

    /// Makes two places neighbours; either may be none.
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

    /// Makes a version one that was current until then.
    pub(crate) fn close(&mut self, at: usize, learned_until: i64) {
        // The last of all times is kept for what is current.
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

    /// Finds out what passes a filter.
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

    /// When a memory is from: since when it is true, or else when it was learned.
    pub(crate) fn moment(&self, at: usize) -> i64 {
        match self.valid_from[at] {
            i64::MIN => self.learned_at[at],
            from => from,
        }
    }

    /// Calls with the seats of a memory's neighbours and how much they count for each other: what was learned
    /// next to it, in exactly the same scope, in one go. A neighbour that does not pass ends the row.
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

/// Whether a time is before the end of something, which may have none.
fn before(time: i64, end: i64) -> bool {
    end == i64::MAX || time < end
}

fn keep<T: Copy>(column: &mut Vec<T>, places: &[u32]) {
    *column = places.iter().map(|at| column[*at as usize]).collect();
}
