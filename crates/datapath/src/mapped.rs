//! A file in memory, read only: pages are read on first access.

use nix::{
    libc,
    sys::mman::{MapFlags, ProtFlags, mmap, munmap},
};
use std::{
    ffi::c_void, fs::File, io, num::NonZeroUsize, ops::Deref, os::fd::AsFd, path::Path,
    ptr::NonNull,
};

/// The bytes of a file. Private to this process: what others write to the file later may be seen or
/// not, and a file that is cut short kills the process that looks behind its end (SIGBUS). So files
/// that are mapped are replaced by renaming a new one over them, never written in place.
#[derive(Debug)]
pub struct Mapped {
    /// Where the bytes begin; dangling when the file is empty.
    begin: NonNull<c_void>,
    length: usize,
}

// SAFETY: the mapping is only ever read and belongs to the whole process.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// Maps the whole file.
    ///
    /// # Errors
    /// When it cannot be opened or mapped, as what is no file of bytes cannot.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is not a regular file"));
        }
        let length = usize::try_from(metadata.len())
            .map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
        let Some(size) = NonZeroUsize::new(length) else {
            return Ok(Self { begin: NonNull::dangling(), length: 0 });
        };
        // SAFETY: the kernel chooses a free range, and the mapping is not writable.
        let begin = unsafe {
            mmap(None, size, ProtFlags::PROT_READ, MapFlags::MAP_PRIVATE, file.as_fd(), 0)
        }?;
        Ok(Self { begin, length })
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `length` readable bytes begin there until this is dropped (none when dangling).
        // That nobody cuts the file short or writes into it is asked of whoever makes such files.
        unsafe { std::slice::from_raw_parts(self.begin.as_ptr().cast(), self.length) }
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: nobody can have a reference into the mapping any more.
            let _ = unsafe { munmap(self.begin, self.length) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_seen_as_it_is() {
        let mapped = Mapped::open(Path::new(file!()).strip_prefix("crates/datapath").unwrap());
        let mapped = mapped.unwrap();
        assert!(mapped.starts_with(b"//! A file in memory"));
        assert!(mapped.ends_with(b"}\n"));
    }

    #[test]
    fn an_empty_file_has_no_bytes_and_a_folder_is_refused() {
        let empty = tempfile::NamedTempFile::new().unwrap();
        assert!(Mapped::open(empty.path()).unwrap().is_empty());
        assert_eq!(Mapped::open(Path::new("/")).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(Mapped::open(Path::new("/none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
