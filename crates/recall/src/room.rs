//! The best number for each of a few places out of many.

/// Room for a number a place. It is made once for a recall, and emptied in proportion to what was put in.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// By place; 0 for nothing.
    best: Vec<f32>,
    touched: Vec<u32>,
}

impl Room {
    pub(crate) fn new(places: usize) -> Self {
        Self {
            best: vec![0.0; places],
            touched: Vec::new(),
        }
    }

    /// Keeps a number above 0 for a place, if it is the best so far.
    pub(crate) fn put(&mut self, at: u32, number: f32) {
        let best = &mut self.best[at as usize];
        if *best == 0.0 {
            self.touched.push(at);
        }
        *best = best.max(number);
    }

    /// Takes everything out.
    pub(crate) fn collect(&mut self, mut take: impl FnMut(u32, f32)) {
        for at in self.touched.drain(..) {
            take(at, std::mem::take(&mut self.best[at as usize]));
        }
    }
}
