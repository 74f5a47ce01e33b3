//! What stays when the process ends: maps and links in a folder of a BPF file system.
//!
//! A process that finds them there takes them over: it loads its own programs with those maps and puts
//! them in the links' place, each at once. Maps of another size or form are not taken over: all that
//! was pinned is removed then, links first, and made anew.

use super::link;
use libbpf_rs::{MapCore as _, MapHandle, OpenMapMut};
use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use std::{
    fs, io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

/// Where BPF file systems are mounted by convention.
const MOUNT: &str = "/sys/fs/bpf";

/// What has been pinned of a gate on one interface.
#[derive(Debug)]
pub(super) struct PinnedLink {
    pub(super) ifindex: u32,
    pub(super) place: String,
    pub(super) link: OwnedFd,
}

/// Makes the folder, and mounts the file system that it needs if the usual one is not mounted.
pub(super) fn folder(path: &Path) -> io::Result<()> {
    let mounted = |at: &Path| statfs(at).is_ok_and(|found| found.filesystem_type() == BPF_FS_MAGIC);
    if path.starts_with(MOUNT) && !mounted(Path::new(MOUNT)) {
        mount(Some("bpf"), MOUNT, Some("bpf"), MsFlags::empty(), None::<&str>)?;
    }
    fs::create_dir_all(path)?;
    if mounted(path) {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::Unsupported, "this is no folder of a BPF file system"))
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

/// The name of a link's file.
pub(super) fn name(path: &Path, ifindex: u32, place: &str) -> PathBuf {
    path.join(format!("link-{ifindex}-{place}"))
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
        let Some((ifindex, place)) = rest.split_once('-') else { continue };
        let link = link::open(&entry.path())?;
        let found = link::interface(&link);
        if found != 0 && ifindex.parse() == Ok(found) {
            links.push(PinnedLink { ifindex: found, place: place.to_owned(), link });
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(links)
}

/// Removes all that is pinned in the folder, links first, so that no packet meets half of it; then the
/// folder.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(path)? {
        files.push(entry?.path());
    }
    let is_link = |path: &PathBuf| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with("link-"))
    };
    files.sort_by_key(|path| !is_link(path));
    for file in files {
        fs::remove_file(file)?;
    }
    fs::remove_dir(path)
}
