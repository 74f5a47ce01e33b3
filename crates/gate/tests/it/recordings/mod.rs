//! How well flows are recognised: the recordings of real clients in testdata/gate (made by
//! `scripts/record-clients`), and random flows of which nothing is file sharing.
//!
//! Run with `--nocapture` for the table and the flows that were not as they should be.

mod noise;
mod score;

use classify::{
    Engine, Settings, State,
    label::Classification,
    offline::{Classified, classify_capture},
    truth::{How, OTHER, Table, Truth},
};
use score::Score;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// Packets with payload that the shares are promised for.
const PACKETS: u64 = 8;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/gate")
}

/// What an engine calls the flows of a capture; flows without payload are skipped.
fn classify(engine: &mut Engine, path: &Path) -> Vec<Classified> {
    let file = std::fs::File::open(path).expect("a recording");
    let (mut flows, counts) = classify_capture(engine, file).expect("a whole recording");
    assert!(!counts.truncated && counts.damaged == 0, "{counts:?}");
    flows.retain(|flow| flow.with_payload > 0);
    flows
}

#[test]
fn real_clients_are_recognised_and_nothing_else_is_called_file_sharing() {
    let text = std::fs::read_to_string(folder().join("TRUTH")).expect("the table of truth");
    let table = Table::read(&text).expect("a good table");
    let mut names: Vec<_> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    names.dedup();
    let mut score = Score::default();
    for name in names {
        // Each capture is a network of its own.
        let mut engine = Engine::new(&Settings::default()).expect("libndpi 4.2");
        for flow in classify(&mut engine, &folder().join(name)) {
            let truth = table.of(name, &flow.flow);
            let truth =
                truth.unwrap_or_else(|| panic!("{name}: no label is given for {}", flow.flow));
            let in_time = flow.known_after.is_some_and(|packets| packets <= PACKETS);
            score.count(name, &flow.flow, truth, flow.label.as_ref(), in_time);
        }
    }
    println!("{score}");
    let plain = score.found(How::Plain);
    assert!(plain.of > 300 && plain.share() >= 0.99, "plain: {plain:?}");
    let hidden = score.found_application(How::Hidden, "bittorrent");
    assert!(hidden.of > 200 && hidden.share() >= 0.90, "hidden BitTorrent: {hidden:?}");
    // No kind drowns among the others.
    let mut kinds = BTreeMap::<_, u32>::new();
    for (capture, application, how, part) in score.kinds() {
        let least = if how == How::Plain { 0.97 } else { 0.85 };
        assert!(part.share() >= least, "{capture}, {application}, {how:?}: {part:?}");
        *kinds.entry((application, how)).or_default() += part.of;
    }
    for (application, how, least) in [
        ("bittorrent", How::Plain, 300),
        ("edonkey", How::Plain, 40),
        ("edonkey", How::Hidden, 20),
        ("directconnect", How::Plain, 25),
    ] {
        let of = kinds.get(&(application, how)).copied().unwrap_or_default();
        assert!(of >= least, "{application}, {how:?}: only {of} flows");
    }
    let (certain, likely) = (score.wrong_for_certain(), score.wrong_likely());
    assert!(certain.are == 0 && likely.share() <= 0.005, "others: {score}");
    // So many that a share of 1 in 1000 would have shown.
    let others = score.others_wrong_for_certain();
    assert!(others.at_most() <= 0.001, "others: {others:?}");
}

#[test]
fn random_bytes_are_not_called_file_sharing_even_from_hosts_that_share_files() {
    let mut engine = Engine::new(&Settings::default()).expect("libndpi 4.2");
    // Afterwards the engine knows 10.60.0.2 to .8 as peers of BitTorrent.
    classify(&mut engine, &folder().join("bt-hidden.pcap"));
    let mut score = Score::default();
    for (flow, packets) in noise::flows(20_000) {
        let mut state = State::new();
        for packet in &packets {
            let _ = engine.packet(&flow, &mut state, &packet.view());
        }
        let label = match engine.give_up(&flow, &mut state) {
            Classification::Known(label) => Some(label),
            _ => None,
        };
        let capture = if noise::shares(&flow) { "noise of peers" } else { "noise" };
        let truth = Truth { application: OTHER.to_owned(), how: How::Plain };
        score.count(capture, &flow, &truth, label.as_ref(), true);
    }
    println!("{score}");
    let (certain, likely) = (score.wrong_for_certain(), score.wrong_likely());
    assert!(certain.of == 20_000 && certain.at_most() <= 0.001, "noise: {score}");
    assert!(likely.at_most() <= 0.005, "noise: {score}");
}
