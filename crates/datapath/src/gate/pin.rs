//! What stays when the process ends: maps and links in a folder of a BPF file system. Filters stay without
//! being pinned; see [`super::interfaces`].
//!
//! A process that finds them there takes them over: it loads its own programs with those maps and puts
//! them in the links' place, each at once. Maps of another size, form or meaning are not taken over: all
//! that was pinned is removed then, links first, and made again.
//!
//! Each network namespace has its folder, named by its cookie, which no other namespace has until the
//! machine restarts. Who uses a folder holds a lock on it (flock(2)), which ends with the process.

use super::OpenError;
use crate::link::{self, Filter, Hook};
use crate::user::{self, User};
use libbpf_rs::{MapCore, MapFlags, MapHandle, OpenMapMut};
use nix::fcntl::{Flock, FlockArg};
use nix::mount::{self, MsFlags};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use std::{
    fs::{self, File},
    io,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::fs::{MetadataExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

/// Where BPF file systems are mounted by convention.
const MOUNT: &str = "/sys/fs/bpf";
/// Where one may be mounted for a user who may not use that one.
const OWN_MOUNT: &str = "/run/nigh-bpf";
/// The gate's part of either.
const PART: &str = "nigh/gate";
/// The map of interfaces that have filters.
const FILTERED: &str = "gate_filtered";
/// What names the gate's filters.
pub(super) const OWNER: &str = "gate";

/// What has been pinned of a gate on one interface.
#[derive(Debug)]
pub(super) struct PinnedLink {
    pub(super) ifindex: u32,
    pub(super) point: String,
    pub(super) link: OwnedFd,
}

/// That nobody else uses a folder, for as long as this lives.
pub(super) type Lock = Flock<File>;

fn mounted(path: &Path) -> bool {
    statfs(path).is_ok_and(|found| found.filesystem_type() == BPF_FS_MAGIC)
}

/// Where gates are pinned: `/run/nigh-bpf` if a BPF file system is mounted there, else `/sys/fs/bpf`.
fn base() -> &'static str {
    if mounted(Path::new(OWN_MOUNT)) { OWN_MOUNT } else { MOUNT }
}

/// Mounts a BPF file system where gates are pinned, if there is none yet: that takes CAP_SYS_ADMIN, which
/// nothing else does. For a user that this process becomes it is at `/run/nigh-bpf` and belongs to that user.
pub fn mount(owner: Option<&User>) {
    let place = if owner.is_some() { OWN_MOUNT } else { base() };
    let mounted = match owner {
        Some(owner) => mount_for(owner),
        None => mount_at(Path::new(place)),
    };
    if let Err(error) = mounted {
        tracing::warn!("cannot mount a BPF file system at {place}: {error}");
    }
}

fn mount_for(owner: &User) -> io::Result<()> {
    let place = Path::new(OWN_MOUNT);
    fs::create_dir_all(place)?;
    mount_at(place)?;
    // What is the user's already stays untouched: it could put links in the way.
    if fs::metadata(place)?.uid() != owner.uid.as_raw() {
        fs::set_permissions(place, fs::Permissions::from_mode(0o700))?;
        user::give(place, owner)?;
    }
    // A gate that root has left cannot be taken over, and two would refuse packets.
    let left = Path::new(MOUNT).join(PART).join(cookie()?.to_string());
    if left.exists() {
        let _lock = lock(&left)?;
        remove(&left)?;
        tracing::warn!("removed the gate that a daemon of root had left in {}", left.display());
    }
    Ok(())
}

/// The folder of this thread's network namespace, where a gate of it is to be pinned: below
/// `/run/nigh-bpf` if a BPF file system is mounted there, else below `/sys/fs/bpf`.
///
/// # Errors
/// When the system does not say which namespace that is.
pub fn home() -> Result<PathBuf, OpenError> {
    let parent = Path::new(base()).join(PART);
    match cookie() {
        Ok(cookie) => Ok(parent.join(cookie.to_string())),
        Err(source) => Err(OpenError::Pin { path: parent.display().to_string(), source }),
    }
}

/// Mounts a BPF file system where none is; two processes do not mount one over the other's.
fn mount_at(path: &Path) -> io::Result<()> {
    if mounted(path) {
        return Ok(());
    }
    let locked = Flock::lock(File::open(path)?, FlockArg::LockExclusive);
    let _lock = locked.map_err(|(_, error)| error)?;
    if !mounted(path) {
        mount::mount(Some("bpf"), path, Some("bpf"), MsFlags::empty(), None::<&str>)?;
    }
    Ok(())
}

/// The namespace's number, which is never given again.
fn cookie() -> io::Result<u64> {
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::DGRAM, None)?;
    let mut cookie = 0_u64;
    let mut length = size_of_val(&cookie) as libc::socklen_t;
    // SAFETY: the kernel writes no more than `length` bytes, which `cookie` has.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    if result == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()) }
}

/// Removes what gates of network namespaces have left that are gone: folders without a living link, that
/// nobody uses.
pub fn purge() {
    for base in [OWN_MOUNT, MOUNT] {
        let folders = fs::read_dir(Path::new(base).join(PART)).into_iter().flatten().flatten();
        for folder in folders {
            let path = folder.path();
            if !is_dead(&path) {
                continue;
            }
            // Whoever makes or takes over what is there has it locked.
            let Ok(_lock) = lock(&path) else { continue };
            if is_dead(&path)
                && let Err(error) = remove(&path)
            {
                let path = path.display();
                tracing::warn!("cannot remove what a gate has left in {path}: {error}");
            }
        }
    }
}

/// Takes off what a gate of this thread's network namespace has left in force, and removes it: packets go
/// as if it had never been. Returns the interfaces that it was on; none if nothing was left.
///
/// # Errors
/// A process runs that gate, or what is left cannot be removed.
pub fn take_off() -> Result<Vec<u32>, OpenError> {
    let mut found = Vec::new();
    for base in [OWN_MOUNT, MOUNT] {
        let parent = Path::new(base).join(PART);
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |source| OpenError::Pin { path, source }
        };
        let path = parent.join(cookie().map_err(failed(&parent))?.to_string());
        if !path.exists() {
            continue;
        }
        let _lock = match lock(&path) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(OpenError::Held { path: path.display().to_string() });
            }
            Err(error) => return Err(failed(&path)(error)),
        };
        found.extend(links(&path).map_err(failed(&path))?.iter().map(|link| link.ifindex));
        if let Ok(map) = MapHandle::from_pinned_path(path.join(FILTERED)) {
            found.extend(filtered(&map).map(|(_, ifindex)| ifindex));
        }
        remove(&path).map_err(failed(&path))?;
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Whether something is pinned there, but nothing is at an interface.
fn is_dead(path: &Path) -> bool {
    let Ok(entries) = fs::read_dir(path) else { return false };
    // What cannot be opened may live.
    if path.join(FILTERED).exists()
        && MapHandle::from_pinned_path(path.join(FILTERED))
            .map_or(true, |map| filtered(&map).next().is_some())
    {
        return false;
    }
    let mut files = entries.flatten().map(|entry| entry.path()).peekable();
    files.peek().is_some()
        && !files.filter(|file| is_link(file)).any(|file| {
            // One that cannot be opened may live.
            link::open(&file).map_or(true, |link| link::interface(&link) != 0)
        })
}

fn is_link(file: &Path) -> bool {
    file.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("link-"))
}

fn lock(path: &Path) -> io::Result<Lock> {
    Flock::lock(File::open(path)?, FlockArg::LockExclusiveNonblock)
        .map_err(|(_, error)| error.into())
}

/// Makes the folder and sees that nobody else uses it; none if somebody does.
pub(super) fn folder(path: &Path) -> io::Result<Option<Lock>> {
    fs::create_dir_all(path)?;
    if !mounted(path) {
        let why = "this is not a folder of a BPF file system";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    match lock(path) {
        Ok(lock) => Ok(Some(lock)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the map that is pinned in a map's place, if there is one, has its form and size.
pub(super) fn fits(path: &Path, map: &OpenMapMut<'_>) -> bool {
    let file = path.join(map.name());
    if !file.exists() {
        return true;
    }
    let form = (map.map_type(), map.key_size(), map.value_size(), map.max_entries());
    MapHandle::from_pinned_path(file).is_ok_and(|there| {
        (there.map_type(), there.key_size(), there.value_size(), there.max_entries()) == form
    })
}

/// The first entry of a pinned map whose keys are numbers.
pub(super) fn first(path: &Path, map: &str) -> Option<Vec<u8>> {
    let there = MapHandle::from_pinned_path(path.join(map)).ok()?;
    there.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok()?
}

/// The name of a link's file.
pub(super) fn name(path: &Path, ifindex: u32, point: &str) -> PathBuf {
    path.join(format!("link-{ifindex}-{point}"))
}

/// All links that are pinned and whose interface is there; the others are removed.
pub(super) fn links(path: &Path) -> io::Result<Vec<PinnedLink>> {
    let mut links = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix("link-")) else {
            continue;
        };
        let Some((ifindex, point)) = rest.split_once('-') else { continue };
        let link = link::open(&entry.path())?;
        let found = link::interface(&link);
        if found != 0 && ifindex.parse() == Ok(found) {
            links.push(PinnedLink { ifindex: found, point: point.to_owned(), link });
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(links)
}

/// Removes all that is pinned in the folder, links and filters first, so that no packet meets half of it.
pub(super) fn clear(path: &Path) -> io::Result<()> {
    if let Ok(map) = MapHandle::from_pinned_path(path.join(FILTERED)) {
        remove_filters(&map)?;
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path)? {
        files.push(entry?.path());
    }
    files.sort_by_key(|path| !is_link(path));
    files.into_iter().try_for_each(fs::remove_file)
}

/// The same, and the folder.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    clear(path)?;
    fs::remove_dir(path)
}

/// The interfaces in a map `gate_filtered`, by their places.
pub(super) fn filtered(map: &impl MapCore) -> impl Iterator<Item = (u32, u32)> {
    (0..map.max_entries()).filter_map(|place| {
        let value = map.lookup(&place.to_ne_bytes(), MapFlags::ANY).ok()??;
        Some((place, u32::from_ne_bytes(*value.first_chunk()?)))
    })
}

/// Removes the filters that the processes before have left on these interfaces.
fn remove_filters(map: &impl MapCore) -> io::Result<()> {
    for (_, ifindex) in filtered(map) {
        for hook in [Hook::Ingress, Hook::Egress] {
            if let Some(filter) = Filter::find(ifindex, hook, OWNER)? {
                filter.remove();
            }
        }
    }
    Ok(())
}
