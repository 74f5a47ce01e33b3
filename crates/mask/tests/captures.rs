//! The project's recordings of real programs, masked by each policy: nothing of the original stays, and
//! tshark finds nothing wrong that was not wrong before.

use mask::{
    check::{HostsBy, Mapping, Report, TimesKept, Trace, check},
    file::Job,
    machine::MappingName,
    policy::{Policy, SHIPPED},
};
use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use zeroize::Zeroizing;

/// Captures of the gate's clients, which are small.
fn recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/gate");
    let files =
        fs::read_dir(folder).expect("testdata/gate").map(|entry| entry.expect("a file").path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|it| it == "pcap")).collect();
    files.sort();
    assert!(files.len() > 10);
    files
}

/// A policy that looks into all that is above the transport.
const ABOVE: &str = r#"
about = "all parts of messages"
[fields]
"ipv4.source" = "prefix"
"ipv4.destination" = "prefix"
"tcp.*" = "keep"
"udp.*" = "keep"
"dns.*" = "hash"
"dns.address" = "prefix"
"dhcp.*" = "hash"
"radius.*" = "hash"
"snmp.*" = "hash"
"http.*" = "hash"
"sip.*" = "hash"
"#;

fn masked(capture: &[u8], policy: &str) -> Vec<u8> {
    let key = Zeroizing::new(std::array::from_fn(|n| n as u8));
    let text = SHIPPED.iter().find(|(name, _)| *name == policy).map_or(policy, |(_, text)| text);
    let policy = Policy::read(text).expect("a policy");
    let job = Job::new(&policy, key, MappingName::CryptoPan).expect("a job");
    let mut out = Vec::new();
    let counts = job.run(capture, &mut out, 2).expect("masked");
    assert_eq!(counts.frames, counts.masked);
    out
}

/// Frames that tshark calls malformed, or whose checksums it calls wrong, with what it says.
fn faults(capture: &Path) -> HashSet<String> {
    let filter = "_ws.malformed || ip.checksum.status == \"Bad\" || tcp.checksum.status == \"Bad\" || \
        udp.checksum.status == \"Bad\" || icmp.checksum.status == \"Bad\" || icmpv6.checksum.status == \"Bad\"";
    let run = Command::new("tshark")
        .args(["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"])
        .args(["-o", "udp.check_checksum:TRUE", "-Y", filter, "-T", "fields", "-e", "frame.number"])
        .arg("-r")
        .arg(capture)
        .output()
        .expect("tshark is installed by scripts/setup test");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8_lossy(&run.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn tshark_finds_nothing_wrong_that_was_not_wrong_before() {
    let folder = tempfile::tempdir().expect("a folder");
    for path in recordings() {
        let before = faults(&path);
        let original = fs::read(&path).expect("a capture");
        for policy in SHIPPED.map(|(name, _)| name).into_iter().chain([ABOVE]) {
            let out = folder.path().join("masked.pcapng");
            fs::write(&out, masked(&original, policy)).expect("written");
            let new: Vec<String> = faults(&out).difference(&before).cloned().collect();
            assert!(new.is_empty(), "{} by {policy}: frames {new:?}", path.display());
        }
    }
}

#[test]
fn nothing_of_a_recording_stays() {
    for path in recordings() {
        let original = fs::read(&path).expect("a capture");
        for (policy, _) in SHIPPED {
            let report = check(&original[..], &masked(&original, policy)[..]).expect("a report");
            assert_eq!(report.packets, report.masked);
            assert!(report.ipv4 + report.ipv6 > 1 && report.runs > 0);
            assert!(!report.leaks, "{} by {policy}: {:#?}", path.display(), report.findings);
            says_what_the_policy_leaves(&report, policy);
        }
    }
}

/// What is said of the result is what its policy does.
fn says_what_the_policy_leaves(report: &Report, policy: &str) {
    let Report { anonymity, injection, .. } = report;
    assert_eq!(injection.pairs as u64, report.packets);
    let by = (policy != "strict").then_some(HostsBy::Address);
    assert_eq!(anonymity.hosts_by, by, "{policy}: {report}");
    let mapping = match policy {
        "strict" => Mapping::Removed,
        "flows" => Mapping::OneToOne,
        _ => Mapping::KeepsPrefixes,
    };
    for family in &injection.families {
        assert_eq!(family.mapping, mapping, "{policy}: {report}");
    }
    assert!(!injection.families.is_empty());
    let times = injection.times.expect("packets in pairs").kept;
    let keeps_times = matches!(policy, "research" | "debug");
    assert_eq!(times, if keeps_times { TimesKept::All } else { TimesKept::Intervals });
    let has = |trace| report.fingerprints.iter().any(|found| found.trace == trace);
    assert!(has(Trace::Times));
    assert_eq!(has(Trace::Ports), keeps_times, "{policy}: {report}");
    assert!(policy == "debug" || !has(Trace::TcpTimestamps), "{policy}: {report}");
    assert!(policy == "debug" || !has(Trace::IpIdentification), "{policy}: {report}");
    assert!(keeps_times || !has(Trace::TcpOptions), "{policy}: {report}");
}

/// What is looked into stays a message: tshark sees as many questions, answers and heads as before, and none
/// of their names.
#[test]
fn messages_above_the_transport_stay_messages() {
    // A message that the capture has cut is removed.
    let fields = |path: &Path, field: &str, filter: &str| -> Vec<String> {
        let run = Command::new("tshark")
            .args(["-Y", filter, "-T", "fields", "-e", field, "-r"])
            .arg(path)
            .output()
            .expect("tshark is installed by scripts/setup test");
        let lines = String::from_utf8_lossy(&run.stdout);
        lines.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("masked.pcapng");
    let (mut questions, mut hosts) = (0, 0);
    for path in recordings() {
        let original = fs::read(&path).expect("a capture");
        fs::write(&out, masked(&original, ABOVE)).expect("written");
        for (field, count) in [("dns.qry.name", &mut questions), ("http.host", &mut hosts)] {
            let before = fields(&path, field, "frame.len == frame.cap_len");
            let after = fields(&out, field, "frame");
            if field == "dns.qry.name" {
                assert_eq!(before.len(), after.len(), "{} {field}", path.display());
            }
            assert!(
                after.iter().all(|name| !before.contains(name)),
                "{} {after:?}",
                path.display()
            );
            *count += after.len();
        }
    }
    assert!(questions > 0 && hosts > 0, "{questions} questions, {hosts} hosts");
}
