//! The project's recordings of real programs, masked by each policy: nothing of the original stays, and
//! tshark finds nothing wrong that was not wrong before.

use capture::pcapng::{self, Medium, Record};
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
use wire::{IpProtocol, checksum};
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

/// A policy that masks all protocols of the application layer.
const APPLICATION: &str = r#"
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
        for policy in SHIPPED.map(|(name, _)| name).into_iter().chain([APPLICATION]) {
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

/// The report on the result is what its policy does.
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

/// Fields of the frames for which a filter holds, as tshark reads them: a line for each frame.
fn fields(path: &Path, fields: &[&str], filter: &str) -> Vec<String> {
    let run = Command::new("tshark")
        .args(["-Y", filter, "-T", "fields", "-r"])
        .arg(path)
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .output()
        .expect("tshark is installed by scripts/setup test");
    let lines = String::from_utf8_lossy(&run.stdout);
    lines.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// What is looked into stays a message: tshark sees as many questions, answers and heads as before, and none
/// of their names.
#[test]
fn messages_above_the_transport_stay_messages() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("masked.pcapng");
    let (mut questions, mut hosts) = (0, 0);
    for path in recordings() {
        let original = fs::read(&path).expect("a capture");
        fs::write(&out, masked(&original, APPLICATION)).expect("written");
        for (field, count) in [("dns.qry.name", &mut questions), ("http.host", &mut hosts)] {
            // A message that the capture has cut is removed.
            let before = fields(&path, &[field], "frame.len == frame.cap_len");
            let after = fields(&out, &[field], "frame");
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

fn option(code: u16, content: &[u8]) -> Vec<u8> {
    [&code.to_be_bytes()[..], &(content.len() as u16).to_be_bytes(), content].concat()
}

/// Messages of DHCP for IPv6 with each option of which something is known, and with others.
fn dhcpv6_messages() -> Vec<Vec<u8>> {
    let mac = [2, 0x1b, 0x3c, 0x4d, 0x5e, 0x6f];
    let address = [&[0x20, 1, 0x0d, 0xb8][..], &[0x5a; 12]].concat();
    let two = [&address[..], &address].concat();
    let (times, name) = ([0, 0, 14, 16, 0, 0, 28, 32], &b"\x05alice\x07example\x03org\0"[..]);
    let client = option(1, &[&[0, 1, 0, 1, 0x33, 0x33, 0x33, 0x33][..], &mac].concat());
    let server = option(2, &[&[0, 3, 0, 1][..], &mac].concat());
    let others = [
        option(1, &[&[0, 2, 0, 0, 0, 9][..], b"serial"].concat()),
        option(1, &[&[0, 4][..], &[0x44; 16]].concat()),
        option(2, &[0, 3, 0, 6, 1, 2, 3, 4, 5, 6, 7, 8]),
    ];
    let association =
        |code: u16, inner: Vec<u8>| option(code, &[&mac[2..], &times, &inner].concat());
    let leased = option(5, &[&address, &times[..], &option(13, b"\0\0yes")].concat());
    let delegated = option(26, &[&times[..], &[56], &address].concat());
    let temporary = option(4, &[&mac[2..], &leased[..]].concat());
    let names = [21, 24, 33].map(|code| option(code, &[name, name].concat())).concat();
    let name_of = [29, 30, 64].map(|code| option(code, name)).concat();
    let servers = [22, 23, 27, 28, 31, 34].map(|code| option(code, &two)).concat();
    let texts = [38, 41, 42, 59, 103].map(|code| option(code, b"https://alice.example/")).concat();
    let all = [
        client.clone(),
        server.clone(),
        association(3, leased),
        association(25, delegated),
        temporary,
        option(6, &[0, 23, 0, 24, 0, 39]),
        option(7, &[255]),
        option(8, &[0, 100]),
        option(11, &[&[3, 1, 0][..], &[7; 8], &[2], &[9; 16]].concat()),
        option(12, &address),
        option(14, &[]),
        option(15, b"\0\x05alice"),
        option(16, b"\0\0\x01\x37\0\x05alice"),
        option(17, &[&[0, 0, 0x0d, 0xe9][..], &option(2, b"alice!!")].concat()),
        option(20, &[]),
        option(32, &[0, 1, 0x51, 0x80]),
        option(39, &[&[1], name].concat()),
        option(56, &[option(1, &address), option(3, name)].concat()),
        option(82, &[0, 0, 14, 16]),
        option(83, &[0, 0, 14, 16]),
        names,
        name_of,
        servers,
        texts,
    ];
    let message = |kind: u8, options: &[u8]| [&[kind, 9, 8, 7][..], options].concat();
    let solicit = message(1, &[client.clone(), option(61, &[0, 7])].concat());
    let relayed = |kind: u8, options: &[Vec<u8>]| {
        [&[kind, 0][..], &address, &address, &options.concat()].concat()
    };
    let line = [option(18, b"ge-0/0/1"), option(37, &[&[0, 0, 0, 9][..], b"alice"].concat())];
    let seen = option(79, &[&[0, 1][..], &mac].concat());
    let forward = relayed(12, &[line.concat(), seen, option(9, &solicit)]);
    let reply = relayed(13, &[option(18, b"ge-0/0/1"), option(9, &message(7, &all.concat()))]);
    [
        solicit,
        message(10, &[client, server, option(19, &[5])].concat()),
        message(11, &others.concat()),
        relayed(12, &[option(9, &forward)]),
        forward,
        reply,
        message(7, &all.concat()),
    ]
    .to_vec()
}

/// A capture of these messages, between ports of DHCP for IPv6.
fn over_udp(messages: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    pcapng::section(&mut out, "test", None);
    pcapng::interface(&mut out, None, Medium::Ethernet, 0);
    for (time, message) in (0..).zip(messages) {
        let length = (8 + message.len()) as u16;
        let (from, to) = ("fe80::1".parse().expect("one"), "ff02::1:2".parse().expect("one"));
        let udp = [546_u16, 547, length, 0].map(u16::to_be_bytes).concat();
        let mut udp = [&udp[..], message].concat();
        let sum = checksum::pseudo_v6(from, to, length.into(), IpProtocol::UDP).bytes(&udp);
        udp[6..8].copy_from_slice(&(!sum.fold()).to_be_bytes());
        let start = [0x60, 0, 0, 0, (length >> 8) as u8, length as u8, 17, 64];
        let frame = [&[2; 12][..], &[0x86, 0xdd], &start, &from.octets(), &to.octets(), &udp];
        let frame = frame.concat();
        let (bytes, length) = (&frame[..], frame.len() as u32);
        let (interface, direction, medium) = (0, None, Medium::Ethernet);
        let record = Record { interface, time, direction, medium, length, bytes, comment: None };
        pcapng::packet(&mut out, record);
    }
    out
}

#[test]
fn messages_of_dhcp_for_ipv6_stay_messages() {
    let folder = tempfile::tempdir().expect("a folder");
    let [original, out] = ["original", "masked"].map(|name| folder.path().join(name));
    let messages = dhcpv6_messages();
    fs::write(&original, over_udp(&messages)).expect("written");
    assert_eq!(faults(&original), HashSet::new());
    for lines in [
        "\"dhcp.*\" = \"keep\"",
        "\"dhcp.*\" = \"hash\"",
        "\"dhcp.id\" = \"keep\"",
        "\"dhcp.address\" = \"prefix\"\n\"dhcp.mac\" = \"encrypt\"",
    ] {
        let policy = format!("about = \"\"\n[fields]\n\"udp.*\" = \"keep\"\n{lines}");
        fs::write(&out, masked(&over_udp(&messages), &policy)).expect("written");
        assert_eq!(faults(&out), HashSet::new(), "{lines}");
        let read = |names: &[&str]| [&original, &out].map(|path| fields(path, names, "dhcpv6"));
        let [before, after] =
            read(&["dhcpv6.msgtype", "dhcpv6.option.type", "dhcpv6.option.length"]);
        assert_eq!((before.len(), &before), (messages.len(), &after), "{lines}");
        let secrets = [
            "dhcpv6.linkaddr",
            "dhcpv6.iaaddr.ip",
            "dhcpv6.iaprefix.pref_addr",
            "dhcpv6.dns_server",
            "dhcpv6.duidllt.link_layer_addr",
            "dhcpv6.duiden.identifier",
            "dhcpv6.iaid",
            "dhcpv6.client_domain",
        ];
        let [before, after] = read(&secrets);
        for (n, secret) in secrets.into_iter().enumerate() {
            let of = |lines: &[String]| {
                let values = lines.iter().filter_map(|line| line.split('\t').nth(n));
                values.filter(|value| !value.is_empty()).map(str::to_owned).collect::<Vec<_>>()
            };
            let [before, after] = [&before, &after].map(|lines| of(lines));
            assert_eq!(before.len(), after.len(), "{secret} by {lines}");
            let is_kept = lines.contains("*\" = \"keep");
            assert!(!before.is_empty() && (before == after) == is_kept, "{secret} by {lines}");
        }
    }
}
