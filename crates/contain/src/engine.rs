//! Runs a command, such as that of a container engine, for a bounded time.

use std::{
    io::Read,
    process::{ChildStdout, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use crate::container::{ENGINE_TIME, Named};

/// Kills and removes a container, if the engine can be reached. Returns `true` if the engine reported
/// the removal.
pub(crate) fn end_container(container: &Named) -> bool {
    // A container that does not run cannot be killed, so only the removal counts.
    let _ = run(container.kill(), ENGINE_TIME);
    run(container.remove(), ENGINE_TIME).is_some()
}

/// Runs a command of an engine for at most `time`, and returns its output if it succeeds. Blocks.
pub(crate) fn run(command: Option<Command>, time: Duration) -> Option<String> {
    output_within(&mut command?, time, OUTPUT_BYTES)
}

/// Runs a command for at most `time`, and returns up to `most` bytes of its output if it succeeds.
/// Blocks.
pub fn output_within(command: &mut Command, time: Duration, most: u64) -> Option<String> {
    let until = Instant::now() + time;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let output = child.stdout.take().map(|stdout| read(stdout, most));
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < until => thread::sleep(LOOK_AGAIN),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    // A child of the command may keep its output open after the command has exited.
    let left = until.saturating_duration_since(Instant::now());
    let output = output?.recv_timeout(left).ok()?;
    status.success().then_some(output)
}

/// The most bytes that are read of an engine's output.
const OUTPUT_BYTES: u64 = 1024 * 1024;
/// Interval between checks for the end of a command.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

fn read(stdout: ChildStdout, most: u64) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut output = Vec::new();
        let _ = stdout.take(most).read_to_end(&mut output);
        // If the command took too long, the receiver is gone.
        let _ = sender.send(String::from_utf8_lossy(&output).into_owned());
    });
    receiver
}
