//! The format `oracle.conf`: a main file and a file for each router, as in *The P2P-Oracle Server*
//! (section 4.6, figures 10 and 11).
//!
//! The main file: `configdir FOLDER`, `routers MOST`, `threads NUMBER`, `router ADDRESS NICS`,
//! `snetwork PREFIX ROUTER NIC` for a network of the operator's own, `enetwork PREFIX ROUTER NIC AS
//! DISTANCE` for one beyond an exit. `routers` and `threads` are checked and else without effect:
//! nothing here has a fixed number of routers, and threads are chosen elsewhere.
//!
//! A router's file is in the folder `configdir` and has the router's address as its name: `nic NIC
//! LOCAL PEER UP|DOWN`, `link NIC BANDWIDTH LATENCY CONGESTION WEIGHT`, `route NIC ROUTER`. Two network
//! cards are joined if each has as its peer what the other has as local address, and both are up; a
//! card's `link` line has the properties of its direction, and without one there is no link in that
//! direction. `route` is an explicit next hop. A router without a file is not connected to anything.
//!
//! Empty lines, and lines that begin with `#`, are skipped in both. A relative `configdir` begins at
//! the folder of the main file.
//!
//! Limits: lines of 4,096 bytes, a million routers, router files of 16 MiB each. Networks are handed
//! on as they are read, and not kept.

mod connect;
mod line;

use super::{About, LoadError, Notices, Out, Progress};
use crate::{change::Change, path::ExternalPath, value::RouterId};
use config::file::open_regular;
use ipnet::IpNet;
use line::{Line, Lines, words};
use std::{
    collections::BTreeMap,
    fs,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

/// Most routers.
const ROUTERS: usize = 1_000_000;
/// Largest file of a router, in bytes.
const ROUTER_FILE: u64 = 16 << 20;
/// Most notices of undeclared routers.
const UNDECLARED: usize = 100;

/// The content of a router's file, and the file's path; `None` if there is none.
pub type RouterFile<'a> = dyn FnMut(&Path, RouterId) -> (PathBuf, io::Result<Option<Vec<u8>>>) + 'a;

/// Loads a main file and the files of its routers.
///
/// `configdir`, if given, is taken instead of the main file's own.
pub fn load(
    path: &Path,
    configdir: Option<&Path>,
    each: &mut dyn FnMut(Change),
    progress: &mut dyn FnMut(Progress),
) -> Result<Notices, LoadError> {
    let unread = |error| LoadError::Read { path: path.to_owned(), error };
    let file = open_regular(path).map_err(unread)?;
    let of = file.metadata().ok().map(|metadata| metadata.len());
    let so_far = Progress { of, ..Progress::default() };
    let mut out = Out { each, progress, so_far };
    let beside = path.parent().unwrap_or(Path::new(""));
    let mut router_file = |folder: &Path, id: RouterId| {
        let folder = configdir.map_or_else(|| beside.join(folder), Path::to_owned);
        let path = folder.join(id.to_string());
        let text = limited(&path);
        (path, text)
    };
    read(BufReader::new(file), path, configdir.is_some(), &mut router_file, &mut out)
}

/// The contents of a router's file, if there is one.
fn limited(path: &Path) -> io::Result<Option<Vec<u8>>> {
    if fs::metadata(path).is_ok_and(|metadata| metadata.len() > ROUTER_FILE) {
        return Err(io::Error::other("the file is larger than 16 MiB"));
    }
    let file = match open_regular(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    file.take(ROUTER_FILE).read_to_end(&mut text)?;
    Ok(Some(text))
}

/// Reads a main file that is already in memory; `router_file` gives those of its routers.
pub fn parse(
    main: &[u8],
    name: &Path,
    router_file: &mut RouterFile<'_>,
    each: &mut dyn FnMut(Change),
) -> Result<Notices, LoadError> {
    let mut out = Out { each, progress: &mut |_| (), so_far: Progress::default() };
    read(main, name, true, router_file, &mut out)
}

/// The routers of the main file.
#[derive(Default)]
struct Main {
    configdir: Option<PathBuf>,
    /// Network cards of each router.
    routers: BTreeMap<RouterId, u32>,
    /// The limit of routers in the file, if any, and its line.
    most: Option<(usize, usize)>,
    /// Routers that have networks, and the first line that names them.
    used: BTreeMap<RouterId, usize>,
}

fn read(
    main: impl BufRead,
    name: &Path,
    has_folder: bool,
    router_file: &mut RouterFile<'_>,
    out: &mut Out<'_>,
) -> Result<Notices, LoadError> {
    let mut notices = Notices::default();
    let mut about = About { file: name, notices: &mut notices };
    let mut known = Main::default();
    let mut lines = Lines::new(main);
    while let Some(line) =
        lines.next(&mut about).map_err(|error| LoadError::Read { path: name.to_owned(), error })?
    {
        out.so_far.read = lines.read();
        if let Err(message) = known.line(&line, &mut about, out) {
            about.error(line.number, line.keyword(), message);
        }
    }
    known.check(&mut about);
    if known.configdir.is_none() && !has_folder && !known.routers.is_empty() {
        about.warn(0, "configdir", "is not set: no router is connected");
    } else {
        let folder = known.configdir.clone().unwrap_or_default();
        let mut files = Vec::new();
        let mut missing = Vec::new();
        for id in known.routers.keys() {
            let (path, text) = router_file(&folder, *id);
            match text {
                Ok(Some(text)) => {
                    files.push(connect::RouterFile::parse(*id, path, &text, &mut notices))
                }
                Ok(None) => missing.push((*id, path)),
                Err(error) => {
                    About { file: &path, notices: &mut notices }.error(0, "", error.to_string());
                }
            }
        }
        if let Some((first, path)) = missing.first() {
            let (count, of) = (missing.len(), known.routers.len());
            About { file: path, notices: &mut notices }.warn(
                0,
                "",
                format!("there is no such file: router {first} is not connected ({count} of {of} have no file)"),
            );
        }
        // What does not fit after a mistake would only be its consequence.
        if notices.errors == 0 {
            connect::connect(&files, &known.routers, &mut notices, out);
        }
    }
    (out.progress)(out.so_far);
    if notices.errors > 0 { Err(LoadError::Bad(notices)) } else { Ok(notices) }
}

impl Main {
    /// Takes one line.
    ///
    /// # Errors
    /// What is wrong with it.
    fn line(
        &mut self,
        line: &Line,
        about: &mut About<'_>,
        out: &mut Out<'_>,
    ) -> Result<(), String> {
        match line.keyword() {
            "configdir" => {
                let [folder] = words(line, ["FOLDER"])?;
                self.configdir = Some(folder.into());
            }
            "routers" => {
                let [most] = words(line, ["MOST"])?;
                self.most = Some((line::number(most, "MOST")?, line.number));
            }
            "threads" => {
                let [threads] = words(line, ["NUMBER"])?;
                line::number::<u32>(threads, "NUMBER")?;
            }
            "router" => {
                let [id, cards] = words(line, ["ADDRESS", "NICS"])?;
                let id = line::router(id, "ADDRESS")?;
                let cards = line::number(cards, "NICS")?;
                if self.routers.len() == ROUTERS {
                    return Err(format!("there are more than {ROUTERS} routers"));
                }
                if self.routers.insert(id, cards).is_some() {
                    return Err(format!("router {id} is defined twice"));
                }
                out.change(Change::Router { id, name: None });
            }
            "snetwork" => {
                let [prefix, router, card] = words(line, ["PREFIX", "ROUTER", "NIC"])?;
                let prefix = self.network(prefix, line, about)?;
                let router = self.used(router, line)?;
                line::number::<u32>(card, "NIC")?;
                out.change(Change::Internal { prefix, router });
            }
            "enetwork" => {
                let [prefix, router, card, as_number, as_distance] =
                    words(line, ["PREFIX", "ROUTER", "NIC", "AS", "DISTANCE"])?;
                let prefix = self.network(prefix, line, about)?;
                let exit = self.used(router, line)?;
                line::number::<u32>(card, "NIC")?;
                let path = ExternalPath {
                    as_number: line::number(as_number, "AS")?,
                    as_distance: line::number(as_distance, "DISTANCE")?,
                };
                out.change(Change::Route { prefix, exit, path });
            }
            _ => {
                return Err(
                    "is not a keyword; the keywords are configdir, routers, threads, router, \
                            snetwork, enetwork"
                        .into(),
                );
            }
        }
        Ok(())
    }

    fn network(&self, text: &str, line: &Line, about: &mut About<'_>) -> Result<IpNet, String> {
        let prefix: IpNet =
            text.parse().map_err(|_| format!("`{text}` is not a prefix such as 192.0.2.0/24"))?;
        if prefix != prefix.trunc() {
            let message = format!("{prefix} has host bits set; write {}", prefix.trunc());
            about.warn(line.number, line.keyword(), message);
        }
        Ok(prefix.trunc())
    }

    fn used(&mut self, text: &str, line: &Line) -> Result<RouterId, String> {
        let id = line::router(text, "ROUTER")?;
        if self.used.len() < ROUTERS {
            self.used.entry(id).or_insert(line.number);
        }
        Ok(id)
    }

    /// What can only be checked at the end.
    fn check(&self, about: &mut About<'_>) {
        let undeclared = self.used.iter().filter(|(id, _)| !self.routers.contains_key(id));
        for (id, line) in undeclared.take(UNDECLARED) {
            let message =
                format!("is not declared: its networks wait for it; add `router {id} 15`");
            about.warn(*line, &format!("router {id}"), message);
        }
        if let Some((most, line)) = self.most
            && self.routers.len() > most
        {
            let message = format!("{most} are allowed, but there are {}", self.routers.len());
            about.warn(line, "routers", message);
        }
    }
}
