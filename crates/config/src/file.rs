//! Files that are there as a whole or not at all.
//!
//! The content goes to a temporary file in the same folder, is synchronized with the disk and gets
//! its name by rename(2); then the folder is synchronized, so that the name outlasts a loss of power
//! as well. Who has an old file open keeps it.

use std::{
    fs::{File, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
};
use tempfile::NamedTempFile;

/// The mode of a file that only its owner may use.
pub const PRIVATE: u32 = 0o600;

/// Writes a file that only its owner may use (mode 0600) in place of one that may be there.
///
/// # Errors
/// The system's error. Nothing has changed then.
pub fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(path, PRIVATE, |file| file.write_all(content))
}

/// Writes a new file that only its owner may use (mode 0600).
///
/// # Errors
/// When there is a file of this name already, or what the system says. Nothing has changed then.
pub fn create_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = folder_of(path);
    let file = draft(folder, PRIVATE, |file| file.write_all(content))?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

/// Replaces a file by one with what `write` writes and this mode, less what the umask takes.
///
/// # Errors
/// What `write` or the system says. Nothing has changed then.
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

/// A temporary file with the whole content on the disk; it goes when dropped.
fn draft(
    folder: &Path,
    mode: u32,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<NamedTempFile> {
    let permissions = Permissions::from_mode(mode);
    let mut file = tempfile::Builder::new().permissions(permissions).tempfile_in(folder)?;
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
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, PRIVATE);
        assert_eq!(names(folder.path()), ["key"]);
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
