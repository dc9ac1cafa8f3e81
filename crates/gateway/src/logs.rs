//! What each server writes to standard error, in a file of its own that never grows without end.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::SystemTime,
};

use switchboard_config::Home;

use crate::time;

/// A file this long is put aside as `NAME.log.1`, the one before as `NAME.log.2`.
pub(crate) const FILE_BYTES: u64 = 5 * 1024 * 1024;
const FILES_KEPT: u32 = 2;
/// The longest line that is kept; the rest of a longer one is cut.
pub(crate) const LINE_BYTES: usize = 8 * 1024;
/// Lines that wait for the disk. A server that writes faster loses lines, not calls.
const DEPTH: usize = 4_096;

/// Takes lines, and writes them away from the runtime.
#[derive(Debug)]
pub(crate) struct Logs {
    home: Arc<Home>,
    /// The writer, once there is something to write.
    writer: OnceLock<SyncSender<Order>>,
}

enum Order {
    Line(Arc<str>, String),
    Flush(SyncSender<()>),
}

impl Logs {
    pub(crate) fn new(home: Arc<Home>) -> Self {
        Self {
            home,
            writer: OnceLock::new(),
        }
    }

    /// A line that the server wrote.
    pub(crate) fn line(&self, server: &Arc<str>, line: &str) {
        let line = &line[..line.floor_char_boundary(LINE_BYTES)];
        let line = format!("{} {line}\n", time::format(SystemTime::now()));
        self.write(Order::Line(Arc::clone(server), line));
    }

    /// A line about the server, by the gateway.
    pub(crate) fn note(&self, server: &Arc<str>, line: &str) {
        self.line(server, &format!("[switchboard] {line}"));
    }

    /// Waits until what was taken is written. Blocks.
    pub(crate) fn flush(&self) {
        if self.writer.get().is_some() {
            let (done, flushed) = sync_channel(1);
            self.write(Order::Flush(done));
            let _ = flushed.recv_timeout(std::time::Duration::from_secs(1));
        }
    }

    fn write(&self, order: Order) {
        let writer = self.writer.get_or_init(|| {
            let (sender, orders) = sync_channel(DEPTH);
            let home = Arc::clone(&self.home);
            let spawned = thread::Builder::new()
                .name("switchboard-logs".to_owned())
                .spawn(move || serve(&home, &orders));
            if let Err(error) = spawned {
                tracing::error!(%error, "Cannot keep the logs of servers.");
            }
            sender
        });
        // Full or gone: the line is lost, and nobody waits.
        let _ = writer.try_send(order);
    }
}

fn serve(home: &Home, orders: &Receiver<Order>) {
    let mut files: HashMap<Arc<str>, LogFile> = HashMap::new();
    let mut troubled = false;
    while let Ok(order) = orders.recv() {
        match order {
            Order::Flush(done) => {
                let _ = done.try_send(());
            }
            Order::Line(server, line) => {
                let file = files
                    .entry(Arc::clone(&server))
                    .or_insert_with(|| LogFile::new(home.log_of(&server)));
                match file.append(line.as_bytes()) {
                    Ok(()) => troubled = false,
                    Err(error) if !troubled => {
                        troubled = true;
                        tracing::warn!(%error, server = %server, "Cannot write the log of a server.");
                    }
                    Err(_) => {}
                }
            }
        }
    }
}

struct LogFile {
    path: PathBuf,
    open: Option<(File, u64)>,
}

impl LogFile {
    fn new(path: PathBuf) -> Self {
        Self { path, open: None }
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let (mut file, length) = match self.open.take() {
            Some((file, length)) if length < FILE_BYTES => (file, length),
            Some(_) => {
                rotate(&self.path)?;
                (open(&self.path)?, 0)
            }
            None => {
                let file = open(&self.path)?;
                let length = file.metadata()?.len();
                if length >= FILE_BYTES {
                    rotate(&self.path)?;
                    (open(&self.path)?, 0)
                } else {
                    (file, length)
                }
            }
        };
        file.write_all(line)?;
        self.open = Some((file, length + line.len() as u64));
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    OpenOptions::new().create(true).append(true).open(path)
}

fn rotate(path: &Path) -> io::Result<()> {
    let aside = |n: u32| PathBuf::from(format!("{}.{n}", path.display()));
    for n in (1..FILES_KEPT).rev() {
        match fs::rename(aside(n), aside(n + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::rename(path, aside(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_put_aside_when_it_is_full_and_never_more_than_three_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let mut log = LogFile::new(path.clone());
        let line = vec![b'x'; 1024 * 1024];
        for _ in 0..25 {
            log.append(&line).unwrap();
        }
        let mut names: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["a.log", "a.log.1", "a.log.2"]);
        assert!(fs::metadata(&path).unwrap().len() <= FILE_BYTES + line.len() as u64);
    }
}
