//! Which files are deleted: the old ones, and the oldest where all together are too large.

use super::log::{Aside, stamp};
use job::retention;
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// The file beside the logs that has the time up to which they were looked through.
const MARK: &str = ".retained";

#[derive(Debug)]
pub(super) struct Retention {
    folder: PathBuf,
    /// Zero is for ever.
    keep: Duration,
    /// Bytes of all files.
    most: u64,
    /// The time by which age was counted last, and when that was.
    counted: Option<(Duration, Instant)>,
}

impl Retention {
    pub(super) fn new(folder: &Path, keep: Duration, most: u64) -> Self {
        Self { folder: folder.to_owned(), keep, most, counted: None }
    }

    /// Deletes what has to go of the files that were set aside, beside which there are so many bytes; gives
    /// how many files.
    pub(super) fn delete(
        &mut self,
        mut files: Vec<Aside>,
        open: u64,
        clock: SystemTime,
    ) -> io::Result<usize> {
        files.sort();
        let (now, marked) = self.now(files.last(), clock);
        let oldest = now.checked_sub(self.keep);
        let oldest = oldest.filter(|_| !self.keep.is_zero()).map(|it| stamp(UNIX_EPOCH + it));
        let mut bytes = files.iter().fold(open, |sum, file| sum.saturating_add(file.bytes));
        let (mut deleted, mut refused) = (0, None);
        for file in files {
            // One of a time that cannot be is of a clock that was wrong.
            let is_dated = file.time().map(since_1970).is_some_and(retention::is_plausible);
            let is_old = is_dated && oldest.as_ref().is_some_and(|it| file.stamp < *it);
            if !is_old && bytes <= self.most {
                continue;
            }
            // One that stays must not keep the others.
            match fs::remove_file(&file.path) {
                Ok(()) => {
                    deleted += 1;
                    bytes = bytes.saturating_sub(file.bytes);
                }
                Err(error) => refused = Some(error),
            }
        }
        // On a full disk the mark can be written when something is deleted.
        refused.map_or(marked.map(|()| deleted), Err)
    }

    /// The time by which age is counted, since 1970, and whether that was written down. Where no process has
    /// counted it before, it is not later than the last file.
    fn now(&mut self, last: Option<&Aside>, clock: SystemTime) -> (Duration, io::Result<()>) {
        let path = self.folder.join(MARK);
        let (before, elapsed) = match self.counted {
            Some((before, at)) => (Some(before), at.elapsed()),
            None => {
                let mark = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
                let before =
                    mark.map(Duration::from_secs).filter(|it| retention::is_plausible(*it));
                (before.or_else(|| last?.time().map(since_1970)), Duration::ZERO)
            }
        };
        let now = retention::now(since_1970(clock), before, elapsed);
        self.counted = Some((now, Instant::now()));
        let new = self.folder.join(format!("{MARK}.new"));
        let written = fs::write(&new, format!("{}\n", now.as_secs()));
        (now, written.and_then(|()| fs::rename(&new, &path)))
    }
}

fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn today() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_800_000_000)
    }

    /// Files of ten bytes, so many days old.
    fn files(folder: &Path, days: &[u32]) -> Vec<Aside> {
        let file = |days: &u32| {
            let stamp = stamp(today() - *days * DAY);
            let path = folder.join(format!("eve-{stamp}.json"));
            fs::write(&path, "0123456789").unwrap();
            Aside { stamp, bytes: 10, path }
        };
        days.iter().map(file).collect()
    }

    #[test]
    fn what_is_old_goes_and_what_is_too_much() {
        for (keep, most, expected) in [
            // The last file is a day old: so far age has been counted.
            (30 * DAY, 1000, 1),
            (Duration::ZERO, 1000, 0),
            // Ten bytes more are in files that are written.
            (Duration::ZERO, 39, 3),
            (Duration::ZERO, 40, 2),
            (30 * DAY, 5, 5),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let files = files(folder.path(), &[1, 40, 2, 31, 3]);
            let mut left: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
            let mut retention = Retention::new(folder.path(), keep, most);
            let deleted = retention.delete(files, 10, today()).unwrap();
            assert_eq!(deleted, expected, "{keep:?} {most}");
            left.sort();
            let there: Vec<bool> = left.iter().map(|path| path.exists()).collect();
            assert_eq!(there, [0, 1, 2, 3, 4].map(|nth| nth >= expected), "the oldest go");
        }
    }

    #[test]
    fn where_nothing_can_be_written_files_go_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".retained.new")).unwrap();
        let files = files(folder.path(), &[1, 2, 3]);
        let oldest = files[2].path.clone();
        let mut retention = Retention::new(folder.path(), 30 * DAY, 20);
        assert!(retention.delete(files, 0, today()).is_err());
        assert!(!oldest.exists());
    }

    #[test]
    fn a_file_of_a_clock_that_cannot_be_is_not_old() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = files(folder.path(), &[1, 40]);
        let path = folder.path().join("eve-19700101T000007Z.json");
        fs::write(&path, "0123456789").unwrap();
        files.push(Aside { stamp: "19700101T000007Z".into(), bytes: 10, path: path.clone() });
        let mut retention = Retention::new(folder.path(), 30 * DAY, 1000);
        assert_eq!(retention.delete(files, 0, today()).unwrap(), 1);
        assert!(path.exists());
    }

    #[test]
    fn a_clock_that_is_ahead_deletes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let days = [1, 2, 29];
        let retention = || Retention::new(folder.path(), 30 * DAY, 1000);
        // The first start of all is already wrong.
        let mut wrong = retention();
        assert_eq!(wrong.delete(files(folder.path(), &days), 0, today() + 31 * DAY).unwrap(), 0);
        assert_eq!(wrong.delete(files(folder.path(), &days), 0, today() + 31 * DAY).unwrap(), 0);
        // So is the next, after a file of the wrong time was set aside.
        let mut all = files(folder.path(), &days);
        all.push(Aside { stamp: stamp(today() + 31 * DAY), bytes: 10, path: PathBuf::new() });
        assert_eq!(retention().delete(all, 0, today() + 31 * DAY).unwrap(), 0);
        // A clock of 1970 stops nothing.
        let mut right = retention();
        assert_eq!(right.delete(files(folder.path(), &days), 0, UNIX_EPOCH).unwrap(), 0);
        right.counted = right.counted.map(|(now, at)| (now + 3 * DAY, at));
        assert_eq!(right.delete(files(folder.path(), &days), 0, today() + 3 * DAY).unwrap(), 1);
    }
}
