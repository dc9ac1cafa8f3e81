//! The protocol eras that a server supports, and its connection in the era that the first one is not in.
//!
//! A server that supports both eras is called in the era of the client, so that its requests during a call
//! reach a client of the same era unchanged. The first connection is opened in the era of the first call. A
//! second one is opened when a client of the other era makes a call and can be asked, and is closed with the
//! server. It is an [`Instance`] of its own, with a task that starts, judges and stops it; the concurrency
//! limit, questions and subscriptions are shared with the server.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU8, Ordering::Relaxed},
    },
    time::Instant,
};

use switchboard_catalog::Kind;
use switchboard_client::{Era, Revision};
use switchboard_config::Transport;

use super::{Instance, Known};
use crate::{clock, live::Live};

/// The eras that a server does not support, and the era that the first waiting call prefers.
#[derive(Debug, Default)]
pub(super) struct Eras {
    /// The eras that the server has been shown not to support.
    refuted: [AtomicBool; 2],
    /// The eras in which it could not be reached. That may have other reasons, so they are tried again in its
    /// next run.
    unreached: [AtomicBool; 2],
    /// 0 is none.
    wished: AtomicU8,
}

impl Eras {
    pub(super) fn new(known: Option<Era>) -> Self {
        let eras = Self::default();
        // A server that is known as legacy has been probed.
        eras.set_refuted(Era::Modern, known == Some(Era::Legacy));
        eras
    }

    /// Tests if the server has been shown not to support this era.
    pub(super) fn is_refuted(&self, era: Era) -> bool {
        self.refuted[era as usize].load(Relaxed)
    }

    pub(super) fn set_refuted(&self, era: Era, is_refuted: bool) {
        self.refuted[era as usize].store(is_refuted, Relaxed);
    }

    /// Tests if the server is not to be contacted in this era during its present run.
    pub(super) fn is_ruled_out(&self, era: Era) -> bool {
        self.is_refuted(era) || self.unreached[era as usize].load(Relaxed)
    }

    pub(super) fn set_unreached(&self, era: Era) {
        self.unreached[era as usize].store(true, Relaxed);
    }

    /// Forgets everything.
    pub(super) fn forget(&self) {
        for era in [Era::Legacy, Era::Modern] {
            self.set_refuted(era, false);
        }
        self.forget_unreached();
    }

    /// Begins a new run, in which both eras may be reached.
    pub(super) fn forget_unreached(&self) {
        for era in &self.unreached {
            era.store(false, Relaxed);
        }
    }

    pub(super) fn wish(&self, era: Option<Era>) {
        let wished = era.map_or(0, |era| era as u8 + 1);
        self.wished.store(wished, Relaxed);
    }

    pub(super) fn wished(&self) -> Option<Era> {
        let wished = self.wished.load(Relaxed);
        [Era::Legacy, Era::Modern]
            .into_iter()
            .find(|era| *era as u8 + 1 == wished)
    }
}

impl Instance {
    /// The connection to use for a call in this era, if it is not the first one. Without a connection in that
    /// era, the first one is used, with translation; `is_wanted` tells if that would lose something.
    pub fn other_for(
        self: &Arc<Self>,
        era: Era,
        is_wanted: impl FnOnce() -> bool,
    ) -> Option<Arc<Self>> {
        let first = self.live.load().as_ref().map(|live| live.era());
        if first == Some(era) || !self.may_speak(era) {
            return None;
        }
        let other = self.other().filter(|other| other.era == Some(era));
        // If there is no connection at all, the first one is opened in this era.
        if first.is_none() {
            return other.filter(|other| other.live().is_some());
        }
        // A client that does not need it stays with the process that it has started to work with.
        if !is_wanted() {
            return None;
        }
        other.or_else(|| self.open_other(era))
    }

    /// Tests if a connection in this era is possible.
    pub fn may_speak(&self, era: Era) -> bool {
        let settings = self.common.settings.load();
        settings.revision.is_none()
            && settings.transport != Transport::BuiltIn
            && !self.eras.is_ruled_out(era)
    }

    /// Tests if this is a second connection in an era in which the server is not to be contacted.
    pub(super) fn is_ruled_out(&self) -> bool {
        let first = self.of.as_ref().and_then(Weak::upgrade);
        let ruled_out = |first: Arc<Self>| self.era.is_some_and(|era| first.eras.is_ruled_out(era));
        first.is_some_and(ruled_out)
    }

    /// Reports that a list of this second connection has not arrived, and since when it was waited for. If it
    /// has never arrived within the time for lists, it is not waited for again: the first connection is used
    /// for the rest of the server's run.
    pub(super) fn doubt_lists(&self, live: &Live, kind: Kind, since: Instant) {
        let first = self.of.as_ref().and_then(Weak::upgrade);
        let (Some(first), Some(era)) = (first, self.era) else {
            return;
        };
        let is_late = clock::now() >= since + self.deps.wait() && !live.judgements.has_been(kind);
        if is_late && !first.eras.is_ruled_out(era) {
            first.eras.set_unreached(era);
            let revision = self.newest_revision().map_or("", Revision::as_str);
            let line = format!(
                "did not send its lists in revision {revision}; calls use its other revision"
            );
            self.deps.logs.note(&self.id, &line);
        }
    }

    /// The ready connections of the server.
    pub fn lives(&self) -> impl Iterator<Item = Arc<Live>> {
        let other = self.other().and_then(|other| other.live());
        self.live().into_iter().chain(other)
    }

    /// The server of this second connection, or else itself.
    pub(super) fn first(self: &Arc<Self>) -> Option<Arc<Self>> {
        match &self.of {
            None => Some(Arc::clone(self)),
            Some(first) => first.upgrade(),
        }
    }

    /// The newest revision to offer, if it is fixed.
    pub(super) fn newest_revision(&self) -> Option<Revision> {
        let of_era = self.era.map(|era| match era {
            Era::Legacy => Revision::LATEST_LEGACY,
            Era::Modern => Revision::LATEST,
        });
        of_era.or(self.common.settings.load().revision)
    }

    pub(super) fn other(&self) -> Option<Arc<Self>> {
        self.other.lock().clone()
    }

    /// Detaches the second connection, if it is of this era or `era` is `None`. Its calls in flight are
    /// answered.
    pub(super) fn close_other(&self, era: Option<Era>) -> Option<Arc<Self>> {
        let mut other = self.other.lock();
        other.take_if(|other| era.is_none() || other.era == era)
    }

    /// Opens the second connection; `None` if the server is stopping.
    fn open_other(self: &Arc<Self>, era: Era) -> Option<Arc<Self>> {
        let mut other = self.other.lock();
        if self.ending.load(Relaxed) {
            return None;
        }
        if let Some(other) = other.as_ref().filter(|other| other.era == Some(era)) {
            return Some(Arc::clone(other));
        }
        let known = Known {
            offers: true,
            era: Some(era),
        };
        let opened = Self::spawn(
            self.second(era),
            Arc::clone(&self.deps),
            known,
            other.take().into_iter().collect(),
        );
        *other = Some(Arc::clone(&opened));
        Some(opened)
    }
}
