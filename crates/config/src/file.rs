//! Files that are replaced as a whole or not at all, and files that only their owner may use.
//!
//! The content goes to a temporary file in the same folder, is synchronized with the disk and gets
//! its name by rename(2); then the folder is synchronized, so that the name survives a loss of power
//! as well. A program that has the old file open keeps it.

use nix::fcntl::OFlag;
use std::{
    fs::{File, Permissions},
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt as _, PermissionsExt},
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;
use zeroize::Zeroizing;

/// The mode of a file that only its owner may use.
pub const PRIVATE: u32 = 0o600;

/// Prefix of the name of an unfinished file; a crash may leave one behind.
pub const DRAFT: &str = ".draft-";

/// The longest file with a secret, in bytes.
const LONGEST_PRIVATE: usize = 64 << 10;

/// A file with a secret cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PrivateError {
    /// The system refuses to read it.
    #[error("cannot open {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Users other than its owner have access.
    #[error(
        "others than its owner can use {0} (mode {mode:04o}): run `chmod 600 {0}` (640 if root owns it and \
         its group reads it), and replace the secret if somebody may have read it", path.display()
    )]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It is too long for a secret.
    #[error("{} has more than {LONGEST_PRIVATE} bytes: give a file with nothing but the secret", .0.display())]
    TooLong(PathBuf),
}

/// Opens a regular file to be read. Anything else is refused: an open of a FIFO would wait until somebody writes to it.
///
/// # Errors
/// When it cannot be opened, or is something else.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// Reads a file that only its owner may use, or that is root's and that root lets a group read (mode 0640), such as
/// the daemon's. What is read is wiped from memory when dropped.
///
/// # Errors
/// When the file cannot be read, users other than its owner have access, or it has more than 64 KiB.
pub fn read_private(path: &Path) -> Result<Zeroizing<Vec<u8>>, PrivateError> {
    let error = |source| PrivateError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(error)?;
    // From the open file: another file may have its name by now.
    let metadata = file.metadata().map_err(error)?;
    let mode = metadata.permissions().mode() & 0o7777;
    let others = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    if mode & others != 0 {
        return Err(PrivateError::Mode { path: path.to_owned(), mode });
    }
    // Room for all at once: a vector that grows leaves copies that are not wiped.
    let mut content = Zeroizing::new(Vec::with_capacity(LONGEST_PRIVATE + 1));
    file.take(LONGEST_PRIVATE as u64 + 1).read_to_end(&mut content).map_err(error)?;
    if content.len() > LONGEST_PRIVATE {
        return Err(PrivateError::TooLong(path.to_owned()));
    }
    Ok(content)
}

/// Writes a file that only its owner may use (mode 0600), or replaces it.
///
/// # Errors
/// The system's error. Nothing has changed then.
pub fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(path, PRIVATE, |file| file.write_all(content))
}

/// Writes a new file that only its owner may use (mode 0600).
///
/// # Errors
/// When a file of this name exists, or the system's error. Nothing has changed then.
pub fn create_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = folder_of(path);
    let file = draft(folder, PRIVATE, |file| file.write_all(content))?;
    file.persist_noclobber(path).map_err(|error| match error.error.kind() {
        ErrorKind::AlreadyExists => {
            let what = "it exists; remove it or choose another name";
            io::Error::new(ErrorKind::AlreadyExists, what)
        }
        _ => error.error,
    })?;
    File::open(folder)?.sync_all()
}

/// Replaces a file by one with what `write` writes and with this mode, less the umask.
///
/// # Errors
/// The error of `write` or of the system. Nothing has changed then.
pub fn replace(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let folder = folder_of(path);
    let file = draft(folder, mode, write)?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

/// A temporary file with the whole content on the disk; removed when dropped.
fn draft(
    folder: &Path,
    mode: u32,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<NamedTempFile> {
    let permissions = Permissions::from_mode(mode);
    let mut builder = tempfile::Builder::new();
    let mut file = builder.prefix(DRAFT).permissions(permissions).tempfile_in(folder)?;
    write(file.as_file_mut())?;
    file.as_file().sync_all()?;
    Ok(file)
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_private_file_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let mut old = File::open(&path).unwrap();
        write_private(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, PRIVATE);
        assert_eq!(io::read_to_string(&mut old).unwrap(), "old");
        assert_eq!(names(folder.path()), ["key"]);
    }

    #[test]
    fn a_new_file_takes_the_name_of_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        create_private(&path, b"first").unwrap();
        let error = create_private(&path, b"second").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(error.to_string(), "it exists; remove it or choose another name");
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, PRIVATE);
        assert_eq!(names(folder.path()), ["key"]);
    }

    #[test]
    fn a_private_file_is_read_unless_others_may_use_it_or_it_is_too_long() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let read = |length: usize, mode: u32| {
            fs::write(&path, vec![7; length]).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            read_private(&path).map(|content| content.len()).map_err(|error| error.to_string())
        };
        let missing = read_private(&path).unwrap_err().to_string();
        assert!(missing.contains(path.to_str().unwrap()), "{missing}");
        for mode in [0o600, 0o400] {
            assert_eq!(read(LONGEST_PRIVATE, mode), Ok(LONGEST_PRIVATE));
        }
        let is_root = fs::metadata(&path).unwrap().uid() == 0;
        assert_eq!(read(1, 0o640).is_ok(), is_root, "root may share it with a group");
        for mode in [0o604, 0o620, 0o601, 0o644] {
            let error = read(1, mode).unwrap_err();
            assert!(error.contains(&format!("mode {mode:04o}")), "{error}");
            assert!(error.contains(&format!("`chmod 600 {}`", path.display())), "{error}");
        }
        let error = read(LONGEST_PRIVATE + 1, 0o600).unwrap_err();
        assert!(error.contains("more than 65536 bytes"), "{error}");
    }

    #[test]
    fn what_fails_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write_private(&path, b"old").unwrap();
        let full = |_: &mut File| Err(io::ErrorKind::StorageFull.into());
        assert_eq!(replace(&path, 0o644, full).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(
            (fs::read(&path).unwrap(), names(folder.path())),
            (b"old".into(), vec!["file".into()])
        );
        assert!(write_private(&folder.path().join("none/file"), b"").is_err());
    }
}
