//! Least privilege: as which user the daemon runs, which Linux capabilities it keeps, and when the rest goes.
//!
//! Started by root, the daemon becomes the user `nigh` ([`change`]) before it opens or starts anything. Each job
//! names the capabilities that it needs to start and while it runs. [`limit`] runs before any thread: it drops
//! everything that the start does not need, empties the bounding and ambient sets (no command that the daemon
//! starts ever has a capability) and sets no_new_privs. [`settle`] runs when programs and sockets are open and
//! drops what only the start needed. The measurements behind the lists are in docs/decisions/050-capabilities.md.

use crate::config::NodeConfig;
use datapath::{
    capabilities,
    user::{self, User},
};
use job::{Capability, Configured};
use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::Path,
};
use tracing::{info, warn};

/// The user that the daemon becomes when root starts it, unless `--user` names another.
pub const USER: &str = "nigh";
/// The folders that are the daemon's own, on every machine.
const OWN: [&str; 3] = ["/run/nigh", "/var/lib/nigh", "/var/log/nigh"];

/// Privileges could not be dropped.
#[derive(Debug, thiserror::Error)]
pub enum PrivilegeError {
    /// Capabilities.
    #[error("cannot drop capabilities: {0}")]
    Capabilities(#[from] io::Error),
    /// There is no such user.
    #[error(
        "there is no user {0}, which the daemon becomes: \
         `systemd-sysusers contrib/nigh.sysusers` makes the user {USER}; --user names another, \
         and `--user root` stays root"
    )]
    NoUser(String),
    /// The system refuses the change of the user.
    #[error(
        "cannot become the user {name}: {source}; this takes root, and `--user root` stays root"
    )]
    Change {
        /// The user.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// A folder cannot be made or given to the user.
    #[error("cannot give {path} to the user {name}: {source}")]
    Give {
        /// The folder.
        path: String,
        /// The user.
        name: String,
        /// The system's error.
        source: io::Error,
    },
}

/// The user that this process is to become: none where it is not root's, or stays so.
///
/// # Errors
///
/// There is no user of this name.
pub fn user(name: &str) -> Result<Option<User>, PrivilegeError> {
    if !user::is_root() {
        return Ok(None);
    }
    let user = User::from_name(name).map_err(io::Error::from)?;
    let user = user.ok_or_else(|| PrivilegeError::NoUser(name.to_owned()))?;
    Ok(Some(user).filter(|user| !user.uid.is_root()))
}

/// The user that the daemon runs as, for a check of what that user may do; none where this process is its.
///
/// # Errors
///
/// There is no such user, or this process may not become it.
pub fn user_of_daemon(name: &str) -> Result<Option<User>, PrivilegeError> {
    match user(name)? {
        None if !user::is_root() && !user::is(name) => {
            let source = io::ErrorKind::PermissionDenied.into();
            Err(PrivilegeError::Change { name: name.to_owned(), source })
        }
        user => Ok(user),
    }
}

/// Becomes this user and keeps the capabilities, for [`limit`]. Folders that are missing are made and given to the
/// user, and so are those that are nigh's own and that an earlier daemon used as root.
///
/// # Errors
///
/// See [`PrivilegeError`].
pub fn change(user: &User, node: &NodeConfig, file: &Path) -> Result<(), PrivilegeError> {
    let name = || user.name.clone();
    let folders = OWN.iter().map(Path::new).filter(|path| path.exists());
    for path in folders.chain([node.state.as_path()]).chain(node.control.parent()) {
        let given = prepare(path, user);
        let path = || path.display().to_string();
        given.map_err(|source| PrivilegeError::Give { path: path(), name: name(), source })?;
    }
    user::become_user(user, true)
        // The change has undone it.
        .and_then(|()| capabilities::conceal())
        .map_err(|source| PrivilegeError::Change { name: name(), source })?;
    info!(user = user.name, "runs as this user");
    if let Err(error) = File::open(file) {
        warn!(
            "the user {} cannot read {}, so it cannot be reloaded: {error}",
            user.name,
            file.display()
        );
    }
    Ok(())
}

/// Makes a folder that is missing; one of nigh's own that belongs to root is given to the user.
fn prepare(path: &Path, user: &User) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(path.parent().unwrap_or(path))?;
            let mode = if path.starts_with("/run") { 0o755 } else { 0o750 };
            DirBuilder::new().mode(mode).create(path)?;
            user::give(path, user)
        }
        Ok(folder) if folder.uid() == 0 && OWN.iter().any(|own| path == Path::new(own)) => {
            user::give(path, user)
        }
        result => result.map(drop),
    }
}

/// Drops every capability except those that `jobs` need to start, and the node needs to listen on a port
/// below 1024, for this thread and those that it starts.
///
/// # Errors
///
/// See [`PrivilegeError`].
pub fn limit(jobs: &Configured) -> Result<(), PrivilegeError> {
    let mut start = jobs.start_capabilities();
    start.push(Capability::CAP_NET_BIND_SERVICE);
    Ok(capabilities::keep(&start)?)
}

/// Drops what only the start needed: `kept` is left.
///
/// # Errors
///
/// See [`PrivilegeError`].
pub fn settle(kept: &[Capability]) -> Result<(), PrivilegeError> {
    Ok(capabilities::keep(kept)?)
}
