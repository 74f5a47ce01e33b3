//! Each format: the result of its sample, and the reports on bad lines.

mod ases;
mod json;
mod routers;
mod topologies;
mod traces;
mod warts;

use super::{Format, ImportOptions, ImportReport, Importer};
use crate::{LinkId, Nanos, Network, NodeId, RouteMode, RoutePolicy, Router};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// A sample.
fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/lab").join(name)
}

/// The network of these samples, each of which must be recognised.
fn import(names: &[&str]) -> (Network, ImportReport) {
    let mut importer = Importer::new();
    for name in names {
        importer.file(&sample(name), None, &mut |_| ()).unwrap();
    }
    importer.finish(&ImportOptions::default()).unwrap()
}

/// The network of a text.
fn import_text(format: Format, text: &str) -> (Network, ImportReport) {
    let mut importer = Importer::new();
    let name = Path::new("some.txt");
    importer.read(text.as_bytes(), name, Some(format), &mut |_| ()).unwrap();
    importer.finish(&ImportOptions::default()).unwrap()
}

/// What is bad in a text of which something is taken: the lines and the reports on them.
fn bad(format: Format, text: &str) -> Vec<(u64, &'static str)> {
    let (_, report) = import_text(format, text);
    let each = report
        .bad
        .iter()
        .flat_map(|count| count.examples.iter().map(|example| (example.line, count.what)));
    let mut bad: Vec<_> = each.collect();
    bad.sort_unstable();
    assert_eq!(report.bad_count(), bad.len() as u64);
    assert_eq!(report.files[0].bad, bad.len() as u64);
    bad
}

/// The links on which a packet to that address goes from the node.
fn path(network: &Network, from: &str, to: &str) -> Vec<LinkId> {
    let from = network.find(from).unwrap();
    let address: IpAddr = to.parse().unwrap();
    let owner = network.owner(address).unwrap();
    let policy = RoutePolicy { mode: RouteMode::Shortest, ecmp: false };
    let mut links = Vec::new();
    Router::new(policy, 1 << 20).path(network, from, owner.node(), address, 0, &mut links).unwrap();
    links
}

/// What the nodes on the path are called, and the delays of the links to them in microseconds.
fn hops(network: &Network, from: &str, to: &str) -> Vec<(String, u64)> {
    let hop = |link: LinkId| {
        let delay = network.settings(link).delay.0 / 1_000;
        (network.name(network.to(link)).into_owned(), delay)
    };
    path(network, from, to).into_iter().map(hop).collect()
}

/// The address with which each hop says that a packet's time is up: that of the interface by which it
/// came.
fn answers(network: &Network, from: &str, to: &str) -> Vec<Option<IpAddr>> {
    let family = |link: LinkId| -> Option<IpAddr> {
        let back = network.reverse(link).unwrap();
        match network.interface4(back) {
            Some(address) => Some(address.into()),
            None => network.interface6(back).map(IpAddr::V6),
        }
    };
    path(network, from, to).into_iter().map(family).collect()
}

fn named(hops: &[(&str, u64)]) -> Vec<(String, u64)> {
    hops.iter().map(|&(name, delay)| (name.to_owned(), delay)).collect()
}

#[test]
fn a_network_is_the_same_after_it_was_written() {
    let (network, _) = import(&["berlin.txt", "tracert.txt", "six.txt"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traces.nigh");
    network.save(&path).unwrap();
    let again = Network::open(&path).unwrap();
    assert_eq!(again.nodes(), network.nodes());
    let far = |network: &Network| hops(network, "berlin", "203.0.113.9");
    assert_eq!(far(&again), far(&network));
    assert!(far(&again).len() > 3);
}

#[test]
fn packed_files_are_read_and_a_cut_one_is_read_as_far_as_it_goes() {
    use std::io::Write;
    let text = std::fs::read(sample("berlin.txt")).unwrap();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&text).unwrap();
    let gz = gz.finish().unwrap();
    let mut bz = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bz.write_all(&text).unwrap();
    let bz = bz.finish().unwrap();
    let read = |bytes: &[u8]| {
        let mut importer = Importer::new();
        let mut count = 0;
        importer.read(bytes, Path::new("berlin.gz"), None, &mut |read| count += read).unwrap();
        assert_eq!(count, bytes.len() as u64);
        importer.finish(&ImportOptions::default()).unwrap()
    };
    for packed in [&gz, &bz] {
        let (network, report) = read(packed);
        assert_eq!((report.bad_count(), report.files[0].taken), (0, 2));
        assert_eq!(hops(&network, "berlin", "203.0.113.9").len(), 6);
    }
    // The end of a gzip stream is its checksum: all lines are there.
    let (_, report) = read(&gz[..gz.len() - 4]);
    assert_eq!(report.bad[0].what, "the file cannot be read to its end");
    assert_eq!(report.files[0].taken, 2);
}

#[test]
fn what_is_nothing_is_refused_with_the_first_reason() {
    let mut importer = Importer::new();
    let mut read = |text: &str, format| {
        let error = importer.read(text.as_bytes(), Path::new("x"), format, &mut |_| ());
        error.unwrap_err().to_string()
    };
    assert_eq!(read("hello\n", None), "x has an unknown format: give it with --format");
    assert_eq!(
        read("hello\n", Some(Format::AsRelations)),
        "nothing in x can be taken as as-relations: this is not a relation of two ASes (x:1: hello)"
    );
    let (network, _) = importer.finish(&ImportOptions::default()).unwrap();
    assert_eq!(network.nodes(), 0);
}

#[test]
fn delays_are_rounded_to_few_values() {
    let rounded = |us: u64| super::assemble::rounded(Nanos(us * 1_000)).0 / 1_000;
    assert_eq!([0, 4, 5, 994, 996].map(rounded), [0, 0, 10, 990, 1_000]);
    assert_eq!([1_234, 2_345, 5_678, 12_345].map(rounded), [1_230, 2_340, 5_700, 12_300]);
    let values: std::collections::BTreeSet<_> = (0..60_000_000).step_by(97).map(rounded).collect();
    assert!(values.len() < 2_000, "{}", values.len());
    for us in (0..5_000_000).step_by(101) {
        let error = rounded(us).abs_diff(us);
        assert!(error <= 5 || error * 200 <= us, "{us}: {}", rounded(us));
    }
}

#[test]
fn every_node_has_a_name_of_its_own() {
    let (network, _) = import(&["berlin.txt", "tracert.txt", "six.txt", "itdk.nodes"]);
    for node in (0..network.nodes()).map(NodeId) {
        let name = network.name(node);
        if name.parse::<IpAddr>().is_err() {
            assert_eq!(network.find(&name), Some(node), "{name}");
        }
    }
}

#[test]
fn the_command_orders_files_writes_the_network_and_says_what_it_did() {
    use super::command::{ImportArgs, run};
    use clap::{Args, FromArgMatches};
    let folder = tempfile::tempdir().unwrap();
    let network = folder.path().join("itdk.nigh");
    let run = |more: &[&str]| {
        // Links are named before the nodes that they join.
        let files = ["itdk.links", "itdk.nodes"].map(|name| sample(name).display().to_string());
        let command = ImportArgs::augment_args(clap::Command::new("import"));
        let words = ["import", &files[0], &files[1], "-o", network.to_str().unwrap()];
        let matches = command.get_matches_from(words.iter().chain(more));
        run(&ImportArgs::from_arg_matches(&matches).unwrap()).unwrap()
    };
    let text = run(&["--link", "delay=2ms rate=1Gbit"]);
    assert!(text.contains("itdk.nigh: 4 nodes, 6 directed links (kinds: 1), 0 prefixes"), "{text}");
    assert!(text.contains("Assumed\n"), "{text}");
    let made = Network::open(&network).unwrap();
    let settings = made.settings(LinkId(0));
    assert_eq!((settings.delay, settings.rate), (Nanos(2_000_000), Some(1_000_000_000)));

    let json: serde_json::Value = serde_json::from_str(&run(&["--json"])).unwrap();
    assert_eq!(json["nodes"], 4);
    assert_eq!(json["files"][0]["format"], "nodes");
    assert!(json["bad"].as_array().unwrap().is_empty());
}
