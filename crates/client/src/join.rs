//! Waiting for several futures at a time.

use std::{
    future::{Future, poll_fn},
    task::Poll,
};

/// Runs all futures concurrently and returns their results in order.
pub(crate) async fn join_all<T>(
    futures: impl IntoIterator<Item = impl Future<Output = T>>,
) -> Vec<T> {
    let mut running: Vec<_> = futures
        .into_iter()
        .map(|future| (Box::pin(future), None))
        .collect();
    poll_fn(|cx| {
        for (future, done) in &mut running {
            if done.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(cx)
            {
                *done = Some(value);
            }
        }
        if running.iter().any(|(_, done)| done.is_none()) {
            return Poll::Pending;
        }
        Poll::Ready(
            running
                .iter_mut()
                .filter_map(|(_, done)| done.take())
                .collect(),
        )
    })
    .await
}
