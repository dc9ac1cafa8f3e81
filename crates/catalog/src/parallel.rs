//! Distributes work to a few threads, because startup waits for all of it.

use std::thread;

/// The fewest pieces that are worth a thread.
const PIECES_PER_THREAD: usize = 8;
const THREADS_MAX: usize = 4;

/// Applies a function to each piece, and keeps the order.
pub(crate) fn map<T: Sync, R: Send>(pieces: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = (pieces.len() / PIECES_PER_THREAD).clamp(1, cores.min(THREADS_MAX));
    let (first, rest) = pieces.split_at(pieces.len().div_ceil(threads));
    let share = first.len().max(1);
    thread::scope(|scope| {
        let work = &work;
        let others: Vec<_> = rest
            .chunks(share)
            .map(|share| scope.spawn(move || share.iter().map(work).collect::<Vec<_>>()))
            .collect();
        let mut done: Vec<R> = first.iter().map(work).collect();
        for other in others {
            match other.join() {
                Ok(share) => done.extend(share),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_is_mapped_once_in_order() {
        for count in [0, 1, 7, 8, 9, 50, 1_000] {
            let pieces: Vec<usize> = (0..count).collect();
            let done = map(&pieces, |piece| piece * 2);
            assert_eq!(
                done,
                pieces.iter().map(|piece| piece * 2).collect::<Vec<_>>()
            );
        }
    }
}
