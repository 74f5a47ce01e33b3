//! A file that is appended to, and set aside when it is full.
//!
//! The file that is written has a fixed name, `eve.json`. When it is full it gets the time as part of
//! its name, `eve-20261122T182700Z.json`, and another one begins. All have the mode 0640: a group may be let in to read.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// The owner writes, the group reads.
const FILE_MODE: u32 = 0o640;
const FOLDER_MODE: u32 = 0o750;
/// Files set aside within one second.
const MOST_OF_A_SECOND: u32 = 1000;

/// A file that was set aside: ordered by when that was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Aside {
    /// Stamps of one length sort as times do.
    pub(super) stamp: String,
    pub(super) bytes: u64,
    pub(super) path: PathBuf,
}

impl Aside {
    /// When it was set aside.
    pub(super) fn time(&self) -> Option<SystemTime> {
        let part = |range| self.stamp.get(range);
        let [year, month, day] = [part(0..4)?, part(4..6)?, part(6..8)?];
        let [hour, minute, second] = [part(9..11)?, part(11..13)?, part(13..15)?];
        let text = format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z");
        humantime::parse_rfc3339(&text).ok()
    }
}

/// When a file is full.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) bytes: u64,
    pub(super) age: Duration,
}

/// One log: a file that is written and those set aside.
#[derive(Debug)]
pub(super) struct Log {
    folder: PathBuf,
    /// `eve` and `json` of `eve.json`.
    stem: &'static str,
    extension: &'static str,
    limits: Limits,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    length: u64,
    /// When it was begun.
    since: SystemTime,
    /// Whether anything was written since the disk was asked to hold it.
    dirty: bool,
}

impl Log {
    pub(super) fn new(
        folder: &Path,
        stem: &'static str,
        extension: &'static str,
        limits: Limits,
    ) -> Self {
        Self { folder: folder.to_owned(), stem, extension, limits, open: None }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(format!("{}.{}", self.stem, self.extension))
    }

    /// Makes the folder if it is not there.
    pub(super) fn prepare(folder: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)
    }

    /// Opens the file to append lines to it. A line that was cut off there is ended.
    pub(super) fn open_lines(&mut self, now: SystemTime) -> io::Result<()> {
        if self.open.is_some() {
            return Ok(());
        }
        let mut open = self.begin(now)?;
        if open.length > 0 {
            open.file.seek(SeekFrom::End(-1))?;
            let mut last = [0];
            open.file.read_exact(&mut last)?;
            if last != *b"\n" {
                open.file.write_all(b"\n")?;
                open.length += 1;
            }
        }
        self.open = Some(open);
        Ok(())
    }

    /// Opens an empty file; what stands there is set aside. True where it was opened just now.
    pub(super) fn open_empty(&mut self, now: SystemTime) -> io::Result<bool> {
        if self.open.is_some() {
            return Ok(false);
        }
        if fs::metadata(self.path()).is_ok_and(|it| it.len() > 0) {
            self.set_aside(now)?;
        }
        self.open = Some(self.begin(now)?);
        Ok(true)
    }

    fn begin(&self, now: SystemTime) -> io::Result<Open> {
        let path = self.path();
        let mut options = OpenOptions::new();
        // Appending, so that who empties the file from outside leaves no hole in it.
        let file = options.read(true).append(true).create(true).mode(FILE_MODE).open(&path)?;
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
        let length = file.metadata()?.len();
        let since = if length == 0 { now } else { first_written(&file).unwrap_or(now).min(now) };
        Ok(Open { file, length, since, dirty: false })
    }

    /// Writes all of it or, as far as the disk lets, none.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(open) = &mut self.open else {
            return Err(io::Error::other("the file is not open"));
        };
        if let Err(error) = open.file.write_all(bytes) {
            // Half a batch must not stay: what is counted as lost is not in the file.
            let _ = open.file.set_len(open.length);
            self.open = None;
            return Err(error);
        }
        open.length += bytes.len() as u64;
        open.dirty = true;
        Ok(())
    }

    /// Asks the disk to hold what was written.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if let Some(open) = &mut self.open
            && open.dirty
        {
            open.file.sync_data()?;
            open.dirty = false;
        }
        Ok(())
    }

    /// Sets the file aside if it is full; true where it was.
    pub(super) fn rotate(&mut self, now: SystemTime) -> io::Result<bool> {
        let full = self.open.as_ref().is_some_and(|it| {
            let age = now.duration_since(it.since).unwrap_or_default();
            it.length >= self.limits.bytes || it.length > 0 && age >= self.limits.age
        });
        if full {
            self.sync()?;
            self.open = None;
            self.set_aside(now)?;
        }
        Ok(full)
    }

    /// Gives the file its name for good.
    fn set_aside(&self, now: SystemTime) -> io::Result<()> {
        let time = stamp(now);
        for nth in 0..MOST_OF_A_SECOND {
            let nth = if nth == 0 { String::new() } else { format!("-{nth}") };
            let name = format!("{}-{time}{nth}.{}", self.stem, self.extension);
            let path = self.folder.join(name);
            if !path.try_exists()? {
                fs::rename(self.path(), path)?;
                return File::open(&self.folder)?.sync_all();
            }
        }
        Err(io::Error::other(format!("too many files of {time} in the folder")))
    }

    /// All that were set aside.
    pub(super) fn aside(&self) -> io::Result<Vec<Aside>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if let Some(stamp) = entry.file_name().to_str().and_then(|it| self.stamp_of(it)) {
                // Who else deletes it is welcome to.
                let bytes = entry.metadata().map_or(0, |it| it.len());
                files.push(Aside { stamp: stamp.to_owned(), bytes, path: entry.path() });
            }
        }
        Ok(files)
    }

    /// Bytes of the file that is written.
    pub(super) fn bytes(&self) -> u64 {
        self.open.as_ref().map_or(0, |it| it.length)
    }

    /// The time in the name of a file that this log set aside.
    fn stamp_of<'a>(&self, name: &'a str) -> Option<&'a str> {
        let inner = name.strip_prefix(self.stem)?.strip_prefix('-')?;
        let inner = inner.strip_suffix(self.extension)?.strip_suffix('.')?;
        let (stamp, nth) = inner.split_at_checked(STAMP.len())?;
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        let right = stamp.bytes().zip(STAMP.bytes()).all(|(is, form)| match form {
            b'0' => is.is_ascii_digit(),
            _ => is == form,
        });
        let nth = nth.is_empty() || nth.strip_prefix('-').is_some_and(digits);
        (right && nth).then_some(stamp)
    }
}

/// The form of a time in a file's name.
const STAMP: &str = "00000000T000000Z";

/// A time as part of a file's name, of UTC.
pub(super) fn stamp(at: SystemTime) -> String {
    let text = humantime::format_rfc3339_seconds(at).to_string();
    text.chars().filter(|c| !matches!(c, '-' | ':')).collect()
}

/// When a file was begun that is continued after a restart.
fn first_written(file: &File) -> io::Result<SystemTime> {
    let data = file.metadata()?;
    data.created().or_else(|_| data.modified())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    const LIMITS: Limits = Limits { bytes: 10, age: Duration::from_secs(3600) };

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_800_000_000 + seconds)
    }

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name());
        let mut names: Vec<String> = names.map(|it| it.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_full_file_is_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::new(folder.path(), "eve", "json", LIMITS);
        log.open_lines(at(0)).unwrap();
        log.write(b"123\n").unwrap();
        assert!(!log.rotate(at(1)).unwrap());
        log.write(b"456789\n").unwrap();
        assert!(log.rotate(at(2)).unwrap());
        log.open_lines(at(2)).unwrap();
        log.write(b"0123456789\n").unwrap();
        assert!(log.rotate(at(2)).unwrap());
        let aside = ["eve-20270115T080002Z-1.json", "eve-20270115T080002Z.json"];
        assert_eq!(names(folder.path()), aside);
        // What others put there stays.
        for name in ["eve-old.json", "eve-20200101T000000Z.json.gz", "other-20200101T000000Z.json"]
        {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let files = log.aside().unwrap();
        let mut found: Vec<_> = files.iter().map(|it| (it.bytes, it.time().unwrap())).collect();
        found.sort();
        assert_eq!(found, [(11, at(2)), (11, at(2))]);
        assert_eq!(log.bytes(), 0);
    }

    #[test]
    fn a_file_is_full_after_its_time_unless_nothing_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::new(folder.path(), "eve", "json", LIMITS);
        let now = SystemTime::now();
        log.open_lines(now).unwrap();
        assert!(!log.rotate(now + LIMITS.age).unwrap());
        log.write(b"1\n").unwrap();
        assert!(!log.rotate(now + Duration::from_secs(3599)).unwrap());
        assert!(log.rotate(now + LIMITS.age).unwrap());
    }

    #[test]
    fn a_line_that_was_cut_off_is_ended_and_does_not_spoil_the_next() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("eve.json"), "1\n2").unwrap();
        let mut log = Log::new(folder.path(), "eve", "json", LIMITS);
        log.open_lines(at(0)).unwrap();
        log.write(b"3\n").unwrap();
        assert_eq!(fs::read(folder.path().join("eve.json")).unwrap(), b"1\n2\n3\n");
    }

    #[test]
    fn a_file_of_messages_never_continues_another() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("flows.ipfix"), "cut").unwrap();
        let mut log = Log::new(folder.path(), "flows", "ipfix", LIMITS);
        assert!(log.open_empty(at(0)).unwrap());
        assert!(!log.open_empty(at(0)).unwrap());
        log.write(b"new").unwrap();
        assert_eq!(names(folder.path()), ["flows-20270115T080000Z.ipfix", "flows.ipfix"]);
        assert_eq!(fs::read(folder.path().join("flows.ipfix")).unwrap(), b"new");
    }

    #[test]
    fn the_group_may_read_and_others_may_not() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        Log::prepare(&inner).unwrap();
        // One that stands there with more than that is put right.
        fs::write(inner.join("eve.json"), "").unwrap();
        fs::set_permissions(inner.join("eve.json"), Permissions::from_mode(0o666)).unwrap();
        for (stem, extension) in [("eve", "json"), ("flows", "ipfix")] {
            let mut log = Log::new(&inner, stem, extension, LIMITS);
            log.open_lines(at(0)).unwrap();
            log.write(b"0123456789\n").unwrap();
            assert!(log.rotate(at(1)).unwrap());
        }
        for name in names(&inner) {
            let mode = fs::metadata(inner.join(&name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o640, "{name}");
        }
        assert_eq!(fs::metadata(&inner).unwrap().permissions().mode() & 0o027, 0);
    }
}
