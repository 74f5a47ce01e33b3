//! Records what real clients say, for the truth set in testdata/gate.
//!
//! `scripts/record-clients [SCENE...]` runs it. Each scene has a bridge, hosts on it and one capture
//! of all that crosses the bridge; since nothing else runs there, the truth about every flow follows
//! from its addresses and ports, and is written to the table TRUTH beside the captures. Of each flow
//! only the beginning is kept, see [`cut`].

mod bittorrent;
mod cut;
mod directconnect;
mod edonkey;
mod lan;
mod other;
mod programs;

use lan::Lan;
use std::{error::Error as StdError, fmt::Write as _, path::Path};
use testbed::Error;

/// One capture: how it comes about, and the truth about it.
struct Scene {
    /// The capture's name without `.pcap`.
    name: &'static str,
    /// What is known of its flows: transport, client, server, application, plain or hidden; the first line that fits counts.
    truth: &'static [&'static str],
    /// Fewer flows than these are no recording: the clients did not find each other.
    least: usize,
    /// How much of its flows is kept.
    keep: cut::Keep,
    /// Plays it; everything that it starts ends with it.
    play: fn(&mut Lan) -> Result<(), Error>,
}

const FOLDER: &str = "testdata/gate";

const HEAD: &str = "\
# What the flows of the captures beside this file are; written by scripts/record-clients.
# CAPTURE TRANSPORT CLIENT SERVER APPLICATION HOW; the first line that fits counts.
";

fn main() -> Result<(), Box<dyn StdError>> {
    let wanted: Vec<_> = std::env::args().skip(1).collect();
    let scenes: Vec<_> = [
        bittorrent::SCENES,
        edonkey::SCENES,
        directconnect::SCENES,
        other::SCENES,
        programs::SCENES,
    ]
    .into_iter()
    .flatten()
    .collect();
    if let Some(name) = wanted.iter().find(|name| !scenes.iter().any(|scene| scene.name == *name)) {
        let known: Vec<_> = scenes.iter().map(|scene| scene.name).collect();
        return Err(format!("there is no scene {name}; known are {}", known.join(", ")).into());
    }
    let folder = Path::new(FOLDER);
    std::fs::create_dir_all(folder)?;
    let mut table = HEAD.to_owned();
    for scene in &scenes {
        for line in scene.truth {
            writeln!(table, "{}.pcap {line}", scene.name)?;
        }
    }
    std::fs::write(folder.join("TRUTH"), table)?;
    for scene in scenes {
        if wanted.is_empty() || wanted.iter().any(|name| name == scene.name) {
            record(scene, &folder.join(format!("{}.pcap", scene.name)))?;
        }
    }
    Ok(())
}

/// Plays a scene and keeps the beginnings of its flows.
fn record(scene: &Scene, to: &Path) -> Result<(), Box<dyn StdError>> {
    let mut lan = Lan::new()?;
    let scratch = tempfile::tempdir()?;
    let whole = scratch.path().join("whole.pcap");
    let capture = lan.capture(&whole)?;
    (scene.play)(&mut lan).map_err(|error| format!("scene {}: {error}", scene.name))?;
    capture.stop()?;
    drop(lan);
    let (bytes, kept) = cut::cut(&std::fs::read(&whole)?, scene.keep)?;
    if kept < scene.least {
        let (name, least) = (scene.name, scene.least);
        return Err(format!("scene {name}: {kept} flows, at least {least} were expected").into());
    }
    std::fs::write(to, &bytes)?;
    println!("{}: {} flows, {} bytes", to.display(), kept, bytes.len());
    Ok(())
}
