//! Actors as people read them, and as decisions record them.

use std::fmt;

use switchboard_approvals::{Peer, Source};

use crate::audit::{Actor, PeerProcess};

/// The entrance through which a client reached the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// Any account of this machine can connect, so the token is required.
    Tcp,
    /// Only this user can connect.
    Socket,
}

/// The door of a client on a pipe, in records.
pub const PIPE: &str = "pipe";

impl Door {
    /// Its name in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Socket => "socket",
        }
    }
}

impl Actor {
    /// Returns `true` if the actor came through the gateway's own socket.
    pub fn is_at_socket(&self) -> bool {
        self.door == Door::Socket.as_str()
    }

    /// The actor as a decision records it.
    pub fn source(&self) -> Source {
        let peer = self.peer.as_ref().map(|peer| Peer {
            pid: peer.pid,
            program: peer.program.clone(),
        });
        Source {
            door: self.door.into(),
            peer,
        }
    }
}

/// `owner via socket (switchboard, pid 123)`.
impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let principal = self.principal.as_deref().unwrap_or("unknown");
        write!(f, "{principal} via {}", self.door)?;
        let Some(PeerProcess { pid, program }) = &self.peer else {
            return Ok(());
        };
        let program = program.as_deref().and_then(|path| path.rsplit('/').next());
        match program {
            Some(program) => write!(f, " ({program}, pid {pid})"),
            None => write!(f, " (pid {pid})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actor_names_door_program_and_process() {
        let mut actor = Actor {
            principal: Some("owner".into()),
            door: "console",
            peer: None,
        };
        assert_eq!(actor.to_string(), "owner via console");
        actor.door = "socket";
        actor.peer = Some(PeerProcess {
            pid: 123,
            program: Some("/usr/bin/switchboard".into()),
        });
        assert_eq!(actor.to_string(), "owner via socket (switchboard, pid 123)");
        actor.principal = Some("token ci".into());
        assert_eq!(
            actor.to_string(),
            "token ci via socket (switchboard, pid 123)"
        );
    }
}
