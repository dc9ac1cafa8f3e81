//! Renewals in a process of their own.
//!
//! From the moment at which an authorization server accepts a refresh token until the next one is stored, the sign-in is
//! only in the memory of a process. The gateway may be killed at any time, so it runs this program again for each renewal:
//! a process that outlives it, holds the lock of the credential, and ends once the tokens are stored. The order and the
//! answer pass through pipes, because they contain secrets.

use std::{
    ffi::OsString,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{ExitCode, Stdio},
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use switchboard_client::auth::{Credential, Error as AuthError, Renewal, Renewed};
use switchboard_contain::detach;
use switchboard_secrets::{KEY_VARIABLE, KeySource, SECRET_BYTES, Vault};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
    runtime,
    signal::unix::{SignalKind, signal},
    time::timeout,
};
use zeroize::Zeroizing;

use super::credential::Kept;

/// The first argument of a process that renews tokens.
///
/// A program with a gateway calls [`renewal_main`] if its first argument is this one, before it does anything else: no
/// runtime, no thread, no file.
pub const RENEWAL_ARGUMENT: &str = "__renew";

/// The time limit of the process, for faults of the system. All that it waits for has a limit of its own: the lock, two
/// responses, and the disk.
const LIMIT: Duration = Duration::from_mins(3);

/// The longest time that the gateway waits for it.
const PATIENCE: Duration = Duration::from_secs(LIMIT.as_secs() + 10);

/// The longest order, and the longest answer: a credential, with its settings.
const BYTES: u64 = 4 * SECRET_BYTES as u64;

/// The beginning of the answer. Without it, no tokens have changed.
const BEGUN: &[u8] = b"begun\n";

/// The work of the process.
#[derive(Deserialize, Serialize)]
struct Order {
    /// The name of the entry.
    server: String,
    /// The directory of the vault.
    vault: OsString,
    key: Key,
    renewal: Renewal,
}

/// The place of the vault's key.
#[derive(Deserialize, Serialize)]
enum Key {
    Variable(Zeroizing<String>),
    File(OsString),
}

/// Has a process renew the tokens of a server. `None`: it has not begun.
pub(super) async fn delegate(
    program: PathBuf,
    vault: Arc<Vault>,
    server: Arc<str>,
    renewal: Renewal,
) -> Option<Renewed> {
    let known = renewal.credential().clone();
    let order = Order {
        server: server.to_string(),
        vault: vault.dir().into(),
        key: match vault.source() {
            KeySource::Variable(value) => Key::Variable(value.clone()),
            KeySource::File(path) => Key::File(path.into()),
        },
        renewal,
    };
    match timeout(PATIENCE, ask(&program, &order)).await {
        Ok(Ok(answer)) => {
            let Some(answer) = answer.strip_prefix(BEGUN) else {
                tracing::warn!(%server, "The process that renews the sign-in did not start, so the gateway renews it itself.");
                return None;
            };
            let renewed = serde_json::from_slice(answer);
            // The error of the parser may quote the credential.
            Some(renewed.unwrap_or_else(|_| failed(known, "ended without a result")))
        }
        Ok(Err(error)) => {
            tracing::warn!(%server, %error, "Cannot start a process that renews the sign-in, so the gateway renews it itself.");
            None
        }
        Err(_) => Some(failed(known, "does not end")),
    }
}

/// The outcome of a renewal that may have taken place. The next one begins with the stored credential.
fn failed(known: Credential, fault: &str) -> Renewed {
    Renewed {
        credential: Some(Box::new(known)),
        outcome: Err(AuthError::Unreachable {
            document: "token".into(),
            reason: format!("the process that renews it {fault}"),
        }),
        unsaved: None,
    }
}

/// Starts the process, and returns its answer. The process goes on if this future is dropped.
async fn ask(program: &Path, order: &Order) -> io::Result<Zeroizing<Vec<u8>>> {
    let text = Zeroizing::new(serde_json::to_vec(order)?);
    // It has the gateway's environment, for proxies and certificates, but for the key, which is in the order.
    let mut process = Command::new(program)
        .arg0("switchboard")
        .args([RENEWAL_ARGUMENT, &order.server.replace('\0', " ")])
        .env_remove(KEY_VARIABLE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (input, output) = (process.stdin.take(), process.stdout.take());
    let (Some(mut input), Some(output)) = (input, output) else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    // A process that does not read it gives no answer.
    let _ = input.write_all(&text).await;
    drop(input);
    let mut answer = Zeroizing::new(Vec::new());
    let _ = output.take(BYTES).read_to_end(&mut answer).await;
    // Collects the process.
    let _ = process.wait().await;
    Ok(answer)
}

/// Runs as a process that renews the tokens of one server.
pub fn renewal_main() -> ExitCode {
    if detach(c"switchboard-rnw").is_err() {
        return ExitCode::FAILURE;
    }
    let mut text = Zeroizing::new(Vec::new());
    let read = io::stdin().take(BYTES).read_to_end(&mut text);
    let order = read.and_then(|_| Ok(serde_json::from_slice::<Order>(&text)?));
    let Ok(order) = order else {
        let _ = writeln!(
            io::stderr(),
            "error: `{RENEWAL_ARGUMENT}` is for internal use only"
        );
        return ExitCode::from(2);
    };
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else {
        return ExitCode::FAILURE;
    };
    let done = runtime.block_on(async { timeout(LIMIT, carry_out(order)).await });
    // A name server or a disk that hangs is not waited for.
    runtime.shutdown_background();
    match done {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(_)) | Err(_) => ExitCode::FAILURE,
    }
}

async fn carry_out(order: Order) -> io::Result<()> {
    // A service manager sends these to all processes of a service that it stops. The time limits still apply.
    let kinds = [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
        SignalKind::quit(),
    ];
    let _ignored = kinds.map(signal);
    // Without a gateway, there is no need to begin.
    io::stdout().write_all(BEGUN)?;
    let key = match order.key {
        Key::Variable(value) => KeySource::Variable(value),
        Key::File(path) => KeySource::File(path.into()),
    };
    let vault = Arc::new(Vault::new(order.vault.into(), key));
    let kept = Kept::new(vault, &order.server.into(), None);
    let renewed = order.renewal.run(kept).await;
    let answer = Zeroizing::new(serde_json::to_vec(&renewed)?);
    let mut output = io::stdout();
    output.write_all(&answer)?;
    output.flush()
}
