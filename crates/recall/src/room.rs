//! Sparse arrays of numbers by seat.

/// The best number of each seat. It is allocated once for a recall, and emptied in time proportional to
/// its contents.
#[derive(Debug)]
pub(crate) struct Room {
    /// Best number of each seat; 0 if there is none.
    best: Vec<f32>,
    /// Seats with a number; in 32 bits, because there may be a great many.
    touched: Vec<u32>,
}

impl Room {
    pub(crate) fn new(seats: usize) -> Self {
        Self {
            best: vec![0.0; seats],
            touched: Vec::new(),
        }
    }

    /// Stores a positive number for a seat, if it is the best so far.
    pub(crate) fn put(&mut self, seat: usize, number: f32) {
        let best = &mut self.best[seat];
        if *best == 0.0 {
            self.touched.push(small(seat));
        }
        *best = best.max(number);
    }

    /// Passes all numbers to `take`, and empties this.
    pub(crate) fn collect(&mut self, mut take: impl FnMut(usize, f32)) {
        for seat in self.touched.drain(..) {
            let seat = seat as usize;
            take(seat, std::mem::take(&mut self.best[seat]));
        }
    }
}

/// A sum for each of a few seats out of many.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    /// Sum of each seat; 0 if there is none. Empty while nothing was added.
    sums: Vec<f32>,
    /// Seats that have a sum.
    seats: Vec<u32>,
}

impl Sums {
    pub(crate) fn new(seats: usize) -> Self {
        Self {
            sums: vec![0.0; seats],
            seats: Vec::new(),
        }
    }

    /// Returns the seats that have a sum, each once.
    pub(crate) fn seats(&self) -> impl Iterator<Item = usize> {
        self.seats.iter().map(|seat| *seat as usize)
    }

    /// Returns the sum of a seat, or 0 if it has none.
    pub(crate) fn get(&self, seat: usize) -> f32 {
        self.sums.get(seat).copied().unwrap_or(0.0)
    }

    /// Replaces the sum of a seat with another positive one.
    pub(crate) fn change(&mut self, seat: usize, with: impl FnOnce(f32) -> f32) {
        let sum = &mut self.sums[seat];
        if *sum == 0.0 {
            self.seats.push(small(seat));
        }
        *sum = with(*sum);
    }
}

/// There are at most as many seats as places, which fit 32 bits.
fn small(seat: usize) -> u32 {
    u32::try_from(seat).unwrap_or_default()
}
