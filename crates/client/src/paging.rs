//! [`Pages`]: a paginated list of the server as one stream.

use std::{
    collections::VecDeque,
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;
use switchboard_wire::Raw;

use crate::{
    CacheHints, Call, Error, Lossless, call::Answering, connection::Handle, model::Listed,
};

/// A list of the server as a stream. Pages are fetched as they are needed.
///
/// An optional member of an item that is invalid counts as absent. An item that is not an object, or lacks a
/// required member such as its name, is left out with a warning; the other items are not affected.
#[must_use = "a list is only fetched when it is polled"]
pub struct Pages<T> {
    handle: Handle,
    page: Option<Answering<Raw>>,
    items: VecDeque<Lossless<T>>,
    next: Next,
    /// The cursor of the page that is being fetched.
    asked: Option<Raw>,
    fetched: usize,
    hints: Option<CacheHints>,
}

enum Next {
    First,
    After(Raw),
    Nothing,
}

/// The most pages of one list. A server that returns more is assumed to loop.
const PAGES_MAX: usize = 10_000;

impl<T: Listed> Pages<T> {
    pub(crate) fn new(handle: Handle) -> Self {
        Self {
            handle,
            page: None,
            items: VecDeque::new(),
            next: Next::First,
            asked: None,
            fetched: 0,
            hints: None,
        }
    }

    /// Returns the caching hints for the pages fetched so far, if the server sent any.
    pub fn hints(&self) -> Option<CacheHints> {
        self.hints
    }

    /// Returns the next item. With `StreamExt` of the `futures` crates in scope, all of its methods work,
    /// too.
    pub async fn next(&mut self) -> Option<Result<Lossless<T>, Error>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Fetches the whole list.
    pub async fn all(mut self) -> Result<Vec<Lossless<T>>, Error> {
        let mut all = Vec::new();
        while let Some(item) = self.next().await {
            all.push(item?);
        }
        Ok(all)
    }

    fn ask(&mut self) -> Result<Option<Answering<Raw>>, Error> {
        let params = match std::mem::replace(&mut self.next, Next::Nothing) {
            Next::Nothing => return Ok(None),
            Next::First => None,
            Next::After(cursor) => {
                self.asked = Some(cursor.clone());
                Some(Raw::object([("cursor", cursor)]))
            }
        };
        self.fetched += 1;
        if self.fetched > PAGES_MAX {
            return Err(endless::<T>("the server returned too many pages"));
        }
        let call = Call::of(&self.handle, T::METHOD, Ok(params));
        Ok(Some(call.into_future()))
    }

    fn take_in(&mut self, page: &Raw) -> Result<(), Error> {
        let Some(items) = page.member(T::MEMBER).and_then(|items| items.elements()) else {
            let what = format!("it has no list `{}`", T::MEMBER);
            return Err(Error::unexpected(T::METHOD, what));
        };
        let shared = &self.handle.shared;
        let usable = |(name, schema): (&str, &Raw)| shared.learn_param_headers(name, schema);
        for item in items {
            match Lossless::<T>::read(item) {
                Ok(item) if item.schema().is_none_or(usable) => self.items.push_back(item),
                Ok(_) => {}
                Err(error) => {
                    shared.left_out.report(|missed| {
                        tracing::warn!(target: "switchboard::list", method = T::METHOD, %error, missed, "Ignored an invalid item.");
                    });
                }
            }
        }
        let hints = CacheHints::of(page);
        self.hints = match (self.hints, hints) {
            (Some(known), Some(hints)) => Some(known.and(hints)),
            (known, hints) => known.or(hints),
        };
        // An empty cursor is valid; only an absent or null cursor ends the list.
        self.next = match page.member("nextCursor") {
            Some(cursor) if cursor.as_str() != "null" => Next::After(cursor),
            _ => Next::Nothing,
        };
        match &self.next {
            Next::After(cursor) if self.asked.as_ref() == Some(cursor) => {
                self.next = Next::Nothing;
                Err(endless::<T>("the server keeps returning the same page"))
            }
            _ => Ok(()),
        }
    }
}

impl<T: Listed> Stream for Pages<T> {
    type Item = Result<Lossless<T>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Poll::Ready(Some(Ok(item)));
            }
            if self.page.is_none() {
                match self.ask() {
                    Ok(Some(page)) => self.page = Some(page),
                    Ok(None) => return Poll::Ready(None),
                    Err(error) => return Poll::Ready(Some(Err(error))),
                }
            }
            let Some(page) = &mut self.page else {
                return Poll::Ready(None);
            };
            let answer = std::task::ready!(Pin::new(page).poll(cx));
            self.page = None;
            if let Err(error) = answer.and_then(|answer| self.take_in(&answer)) {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

impl<T> fmt::Debug for Pages<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages")
            .field("fetched", &self.fetched)
            .finish_non_exhaustive()
    }
}

fn endless<T: Listed>(reason: &'static str) -> Error {
    Error::Endless {
        method: T::METHOD.to_owned(),
        reason,
    }
}
