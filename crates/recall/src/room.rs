//! The best number for each of a few seats out of many.

/// Room for a number a seat. It is made once for a recall, and emptied in proportion to what was put in.
#[derive(Debug)]
pub(crate) struct Room {
    /// By seat; 0 for nothing.
    best: Vec<f32>,
    /// In 32 bits, because there may be very many.
    touched: Vec<u32>,
}

impl Room {
    pub(crate) fn new(seats: usize) -> Self {
        Self {
            best: vec![0.0; seats],
            touched: Vec::new(),
        }
    }

    /// Keeps a number above 0 for a seat, if it is the best so far.
    pub(crate) fn put(&mut self, seat: usize, number: f32) {
        let best = &mut self.best[seat];
        if *best == 0.0 {
            self.touched.push(small(seat));
        }
        *best = best.max(number);
    }

    /// Takes everything out.
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
    /// By seat; 0 for nothing. Empty as long as nothing was counted.
    sums: Vec<f32>,
    /// Where there is something.
    seats: Vec<u32>,
}

impl Sums {
    pub(crate) fn new(seats: usize) -> Self {
        Self {
            sums: vec![0.0; seats],
            seats: Vec::new(),
        }
    }

    /// The seats that have a sum, each once.
    pub(crate) fn seats(&self) -> impl Iterator<Item = usize> {
        self.seats.iter().map(|seat| *seat as usize)
    }

    /// The sum of a seat; 0 if there is none.
    pub(crate) fn get(&self, seat: usize) -> f32 {
        self.sums.get(seat).copied().unwrap_or(0.0)
    }

    /// Changes the sum of a seat to another above 0.
    pub(crate) fn change(&mut self, seat: usize, with: impl FnOnce(f32) -> f32) {
        let sum = &mut self.sums[seat];
        if *sum == 0.0 {
            self.seats.push(small(seat));
        }
        *sum = with(*sum);
    }
}

/// There are as many seats as places at most, and these have 32 bits.
fn small(seat: usize) -> u32 {
    u32::try_from(seat).unwrap_or_default()
}
