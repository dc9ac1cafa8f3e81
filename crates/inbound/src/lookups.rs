//! The lookups of peers, which read `/proc` outside the runtime.

use std::{collections::HashMap, mem, sync::Arc};

use parking_lot::Mutex;
use switchboard_contain::{Containment, Ticks};
use tokio::{
    sync::{Semaphore, oneshot},
    task::spawn_blocking,
};

use crate::peer::{self, Ends, Peer, Stranger};

/// The most peers on the socket that are looked up at a time.
const ON_SOCKET: usize = 4;

/// Looks up the peers of connections. One door does not delay the other.
#[derive(Debug)]
pub(crate) struct Lookups {
    containment: Containment,
    on_socket: Arc<Semaphore>,
    on_tcp: Arc<Mutex<Queue>>,
    /// The one pass over all processes at a time.
    pass: Arc<Semaphore>,
}

/// The connections over TCP that wait for the next pass.
#[derive(Debug, Default)]
struct Queue {
    waiting: HashMap<u64, Waiting>,
    last: u64,
}

/// Removes a connection that no longer waits, so that clients that leave do not fill the queue.
struct Place {
    queue: Arc<Mutex<Queue>>,
    number: u64,
}

impl Place {
    fn take(queue: &Arc<Mutex<Queue>>, waiting: Waiting) -> Self {
        let mut locked = queue.lock();
        locked.last += 1;
        let number = locked.last;
        locked.waiting.insert(number, waiting);
        Self {
            queue: Arc::clone(queue),
            number,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.queue.lock().waiting.remove(&self.number);
    }
}

/// A connection over TCP that waits for the next pass.
#[derive(Debug)]
struct Waiting {
    ends: Ends,
    peer: oneshot::Sender<Peer>,
}

impl Lookups {
    pub(crate) fn new(containment: Containment) -> Self {
        Self {
            containment,
            on_socket: Arc::new(Semaphore::new(ON_SOCKET)),
            on_tcp: Arc::default(),
            pass: Arc::new(Semaphore::new(1)),
        }
    }

    /// The peer on the socket; see [`peer::on_socket`].
    pub(crate) async fn on_socket(&self, uid: u32, pid: Option<i32>, accepted: Ticks) -> Peer {
        // The semaphores are never closed.
        let turn = Arc::clone(&self.on_socket).acquire_owned().await.ok();
        let containment = self.containment.clone();
        let looked_up = spawn_blocking(move || {
            // Held until the lookup ends, even if the connection is closed in the meantime.
            let _turn = turn;
            peer::on_socket(&containment, uid, pid, accepted)
        });
        looked_up.await.unwrap_or(Peer::Refused(Stranger::Unknown))
    }

    /// The peer on TCP; see [`peer::on_tcp`].
    ///
    /// A pass over all processes takes milliseconds, so it serves every connection that waits. Clients that
    /// return all at once, after a restart of the gateway, wait for two passes at most.
    pub(crate) async fn on_tcp(&self, ends: Ends) -> Peer {
        let (sender, mut peer) = oneshot::channel();
        let _place = Place::take(&self.on_tcp, Waiting { ends, peer: sender });
        let turn = Arc::clone(&self.pass).acquire_owned().await.ok();
        // The pass of another connection may have served this one as well.
        if let Ok(peer) = peer.try_recv() {
            return peer;
        }
        let (containment, on_tcp) = (self.containment.clone(), Arc::clone(&self.on_tcp));
        spawn_blocking(move || {
            let _turn = turn;
            let waiting: Vec<_> = mem::take(&mut on_tcp.lock().waiting)
                .into_values()
                .collect();
            let ends: Vec<_> = waiting.iter().map(|waiting| waiting.ends).collect();
            for (waiting, peer) in waiting.into_iter().zip(peer::on_tcp(&containment, &ends)) {
                // The connection may have been closed in the meantime.
                let _ = waiting.peer.send(peer);
            }
        });
        peer.await.unwrap_or(Peer::Refused(Stranger::Unknown))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn connections_that_wait_together_get_their_own_peers() {
        let folder = tempfile::tempdir().unwrap();
        let containment = Containment::new(folder.path(), "test".parse().unwrap()).unwrap();
        let lookups = Lookups::new(containment);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = listener.local_addr().unwrap();
        let mut clients = Vec::new();
        let mut accepted = Vec::new();
        for _ in 0..32 {
            clients.push(Some(TcpStream::connect(ours).unwrap()));
            accepted.push(listener.accept().unwrap());
        }
        let ends = accepted.iter().map(|(stream, theirs)| Ends {
            theirs: *theirs,
            ours,
            inode: rustix::fs::fstat(stream).unwrap().st_ino,
        });
        let ends: Vec<_> = ends.collect();
        for closed in clients.iter_mut().step_by(2) {
            *closed = None;
        }
        let peers = join_all(ends.into_iter().map(|ends| lookups.on_tcp(ends))).await;
        for (client, peer) in clients.iter().zip(peers) {
            let is_welcome =
                matches!(peer, Peer::Welcome(Some(found)) if found.pid == std::process::id());
            assert_eq!(is_welcome, client.is_some());
        }
        assert!(lookups.on_tcp.lock().waiting.is_empty());
    }
}
