//! The user that a daemon becomes when root has started it.

pub use nix::unistd::User;

use caps::CapSet;
use nix::{
    sys::prctl,
    unistd::{geteuid, initgroups, setresgid, setresuid},
};
use std::{ffi::CString, fs, io, os::unix::fs::lchown, path::Path};

/// Whether this process runs as root.
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Whether this process runs as the user of this name.
pub fn is(name: &str) -> bool {
    User::from_uid(geteuid()).is_ok_and(|user| user.is_some_and(|user| user.name == name))
}

/// Makes this process that user's, for good: all user and group ids, the groups that the user is in. With `keep` its
/// capabilities stay, until [`capabilities::keep`](crate::capabilities::keep) gives them up; else they are gone.
/// There must be no other thread yet.
///
/// # Errors
/// When the system refuses; the process must end then.
pub fn become_user(user: &User, keep: bool) -> io::Result<()> {
    prctl::set_keepcaps(keep)?;
    initgroups(&CString::new(user.name.as_str())?, user.gid)?;
    setresgid(user.gid, user.gid, user.gid)?;
    setresuid(user.uid, user.uid, user.uid)?;
    if keep {
        // Those in effect went with the user id 0.
        let permitted = caps::read(None, CapSet::Permitted).map_err(io::Error::other)?;
        caps::set(None, CapSet::Effective, &permitted).map_err(io::Error::other)?;
        prctl::set_keepcaps(false)?;
    }
    Ok(())
}

/// Gives a folder to a user with all that is in it, but for what links in it point to.
///
/// # Errors
/// When the system refuses.
pub fn give(path: &Path, user: &User) -> io::Result<()> {
    lchown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw()))?;
    if fs::symlink_metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), user)?;
        }
    }
    Ok(())
}
