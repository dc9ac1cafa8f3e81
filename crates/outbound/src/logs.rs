//! Log files of servers: what each writes to standard error, in a file of bounded size.

use std::{
    collections::HashMap,
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::SystemTime,
};

use parking_lot::Mutex;
use switchboard_base::{log_marks::mark_of, scrub, time};
use switchboard_config::Home;
use switchboard_wire::visible;

use crate::{clock, stderr::Quota};

/// The length at which a file is rotated to `NAME.log.1`, and the previous one to `NAME.log.2`.
pub(crate) const FILE_BYTES: u64 = 5 * 1024 * 1024;
const FILES_KEPT: u32 = 2;
/// The longest line that is kept, in bytes; a longer one is cut.
pub const LINE_BYTES: usize = 8 * 1024;
/// The most lines that wait for the disk. A server that writes faster loses lines, not calls.
const DEPTH: usize = 4_096;
/// The most open files, because the files of servers that come and go would add up.
const OPEN_FILES: usize = 64;
/// The number of quotas above which unused ones are dropped.
const QUOTAS_KEPT: usize = 256;
/// Only the owner may read the files: servers write any text, including secrets.
const FILE_MODE: u32 = 0o600;

/// Takes lines, and writes them off the runtime.
#[derive(Debug)]
pub struct Logs {
    home: Arc<Home>,
    /// The writer thread, once there is something to write.
    writer: OnceLock<SyncSender<Order>>,
    /// The rates at which servers may add to their logs, kept across restarts.
    quotas: Mutex<HashMap<Arc<str>, Arc<Mutex<Quota>>>>,
}

enum Order {
    Line(Arc<str>, String),
    Flush(SyncSender<()>),
}

impl Logs {
    /// Creates the logs in the folder of this home.
    pub fn new(home: Arc<Home>) -> Self {
        Self {
            home,
            writer: OnceLock::new(),
            quotas: Mutex::default(),
        }
    }

    /// The rate at which this server may add to its log. Its instances share it.
    pub(crate) fn quota(&self, id: &str) -> Arc<Mutex<Quota>> {
        let (server, _) = parts(id);
        let mut quotas = self.quotas.lock();
        if quotas.len() >= QUOTAS_KEPT {
            let now = clock::now();
            quotas.retain(|_, quota| {
                let unused = quota.lock().is_unused(now);
                Arc::strong_count(quota) > 1 || !unused
            });
        }
        Arc::clone(quotas.entry(server.into()).or_default())
    }

    /// Writes a line of the output of an instance. If the server has several, the line begins with its number.
    pub(crate) fn line(&self, id: &Arc<str>, line: &str) {
        // Scrubbed before it is cut: half of a secret would not be found.
        let line = scrub::text(line);
        // Text of a server that the gateway repeats may contain a line break, which would start a new line.
        let line = visible(&line);
        let line = &line[..line.floor_char_boundary(LINE_BYTES)];
        let (server, number) = parts(id);
        let mark = number.map(mark_of).unwrap_or_default();
        let line = format!("{} {mark}{line}\n", time::format(SystemTime::now()));
        let server = match number {
            None => Arc::clone(id),
            Some(_) => server.into(),
        };
        self.write(Order::Line(server, line));
    }

    /// Writes a line of the gateway about an instance.
    pub(crate) fn note(&self, id: &Arc<str>, line: &str) {
        self.line(id, &format!("[switchboard] {line}"));
    }

    /// Writes a line about an instance that the server can cause at will, so it counts against the rate at
    /// which the server may add to its log.
    pub(crate) fn remark(&self, id: &Arc<str>, line: &str) {
        let quota = self.quota(id);
        let mut quota = quota.lock();
        if quota.take_line(clock::now(), line.len()) {
            self.note(id, line);
        }
    }

    /// Waits until the lines taken so far are written. Blocks.
    pub fn flush(&self) {
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
                tracing::error!(%error, "Cannot start the thread that writes the logs of servers.");
            }
            sender
        });
        // If the queue is full or the writer is gone, the line is lost; the caller never waits.
        let _ = writer.try_send(order);
    }
}

/// The name of the server, which has no slash, and the number of the instance.
fn parts(id: &str) -> (&str, Option<&str>) {
    match id.split_once('/') {
        None => (id, None),
        Some((server, number)) => (server, Some(number)),
    }
}

fn serve(home: &Home, orders: &Receiver<Order>) {
    let mut files = LogFiles::default();
    let mut troubled = false;
    while let Ok(order) = orders.recv() {
        match order {
            Order::Flush(done) => {
                let _ = done.try_send(());
            }
            Order::Line(server, line) => {
                let file = files.of(&server, || home.log_of(&server));
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

/// The most recently used files, by server.
#[derive(Default)]
struct LogFiles {
    files: HashMap<Arc<str>, LogFile>,
    /// Counts lines, to determine the least recently used file.
    lines: u64,
}

impl LogFiles {
    /// The file of a server. If too many are open, the least recently used one is closed.
    fn of(&mut self, server: &Arc<str>, path: impl FnOnce() -> PathBuf) -> &mut LogFile {
        self.lines += 1;
        if self.files.len() >= OPEN_FILES && !self.files.contains_key(server) {
            let oldest = self.files.iter().min_by_key(|(_, file)| file.used);
            if let Some(oldest) = oldest.map(|(name, _)| Arc::clone(name)) {
                self.files.remove(&oldest);
            }
        }
        let file = self
            .files
            .entry(Arc::clone(server))
            .or_insert_with(|| LogFile::new(path()));
        file.used = self.lines;
        file
    }
}

struct LogFile {
    path: PathBuf,
    open: Option<(File, u64)>,
    used: u64,
}

impl LogFile {
    fn new(path: PathBuf) -> Self {
        Self {
            path,
            open: None,
            used: 0,
        }
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
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent)?;
    }
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(FILE_MODE)
        .open(path)?;
    // An existing file may be readable by others.
    if file.metadata()?.permissions().mode() & 0o777 != FILE_MODE {
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    }
    Ok(file)
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
    fn full_log_is_rotated_and_three_files_kept() {
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

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn log_is_made_readable_by_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/a.log");
        LogFile::new(path.clone()).append(b"a\n").unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(&dir.path().join("new")), 0o700);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        LogFile::new(path.clone()).append(b"b\n").unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(fs::read_to_string(&path).unwrap(), "a\nb\n");
    }

    #[test]
    fn least_recently_used_file_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let mut files = LogFiles::default();
        let mut write = |n: usize| {
            let name: Arc<str> = n.to_string().into();
            let path = dir.path().join(format!("{n}.log"));
            files.of(&name, || path).append(b"x\n").unwrap();
            let mut open: Vec<usize> = files.files.keys().map(|n| n.parse().unwrap()).collect();
            open.sort_unstable();
            open
        };
        for n in 0..OPEN_FILES {
            write(n);
        }
        write(0);
        let open = write(OPEN_FILES);
        assert_eq!(open.len(), OPEN_FILES);
        assert_eq!(open[..2], [0, 2], "1 was not used for longest");
        assert_eq!(write(1)[..3], [0, 1, 3]);
        for (n, lines) in [(0, "x\nx\n"), (1, "x\nx\n"), (2, "x\n")] {
            let text = fs::read_to_string(dir.path().join(format!("{n}.log"))).unwrap();
            assert_eq!(text, lines, "{n}");
        }
    }

    #[test]
    fn line_cannot_start_another_line() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::locate(Some(dir.path()), None).unwrap();
        let path = home.log_of("h");
        let logs = Logs::new(Arc::new(home));
        let server: Arc<str> = "h".into();
        logs.note(&server, "failed: \x1b[31mRED\n2026 ERROR forged\r");
        logs.line(&server, "a\tb\u{2028}c");
        logs.flush();
        let text = fs::read_to_string(path).unwrap();
        let lines: Vec<_> = text.split('\n').filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(
            lines[0].ends_with(r"\u{1b}[31mRED\n2026 ERROR forged\r"),
            "{text}"
        );
        assert!(lines[1].ends_with("a\tb\\u{2028}c"), "{text}");
    }

    #[test]
    fn remarks_count_against_the_quota() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::locate(Some(dir.path()), None).unwrap();
        let path = home.log_of("h");
        let logs = Logs::new(Arc::new(home));
        let server: Arc<str> = "h".into();
        for _ in 0..3_000 {
            logs.remark(&server, &"x".repeat(1_000));
        }
        logs.flush();
        let length = fs::metadata(path).unwrap().len();
        assert!(length < 400 * 1024, "{length} bytes");
    }
}
