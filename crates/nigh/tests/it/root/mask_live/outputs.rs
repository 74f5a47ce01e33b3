//! What other programs see: TUN as the interface, a pipe, a TAP device and files under keys that rotate.

use super::*;

by_both_engines! {
    packets_without_ethernet_are_masked_as_their_capture_would_be,
    who_reads_the_pipe_sees_masked_packets_and_the_id_of_the_periods_key,
    a_tap_and_files_have_masked_packets_and_each_file_names_its_key,
}

/// Packets written to a TUN device: with answers from a port that nobody has, of IPv6, and cut short.
const TUNNEL: &str = r#"
import fcntl, socket, struct, time
tun = open("/dev/net/tun", "r+b", buffering=0)
fcntl.ioctl(tun, 0x400454ca, struct.pack("16sH", b"tun0", 0x1001))
# What the kernel sends before it is running (IFF_RUNNING) is seen by the mask and then dropped.
while not struct.unpack("16sH", fcntl.ioctl(socket.socket(), 0x8913, struct.pack("16sH14x", b"tun0", 0))[:18])[1] & 0x40:
    time.sleep(0.01)
def ipv4(protocol, rest):
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(rest), 7, 0, 64, protocol, 0)
    head += bytes([192, 0, 2, 10, 192, 0, 2, 9])
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xffff) + (total >> 16)
    return head[:10] + struct.pack("!H", 0xffff - total) + head[12:] + rest
udp = lambda rest: struct.pack("!HHHH", 4000, 9, 8 + len(rest), 0) + rest
ipv6 = struct.pack("!IHBB", 6 << 28, 8 + 6, 17, 64) + bytes(range(32)) + udp(b"secret")
for packet in [ipv4(17, udp(b"secret" * n)) for n in range(9)] + [
    ipv6,
    ipv4(4, ipv4(17, udp(b"inner secret"))),
    ipv4(41, ipv6),
    ipv6[:30],
    ipv4(6, b"\x12\x34\x00\x50" + bytes(8) + b"\x50\x02" + bytes(6)),
]:
    tun.write(packet)
"#;

fn packets_without_ethernet_are_masked_as_their_capture_would_be(engine: &str) {
    let (host, _) = hosts();
    let folder = tempfile::tempdir().expect("a folder");
    let name = |name: &str| folder.path().join(name).to_str().expect("a name").to_owned();
    let [key, raw, masked, again] = ["key", "raw.pcap", "live.pcapng", "file.pcapng"].map(name);
    nigh(&host, &["key", &key]);
    for words in [
        &["ip", "tuntap", "add", "dev", "tun0", "mode", "tun"][..],
        &["ip", "address", "add", "192.0.2.9/30", "dev", "tun0"],
        &["ip", "link", "set", "tun0", "up"],
    ] {
        host.check(words).expect("a device");
    }
    let dump = dump(&host, "tun0", &raw);
    let process = live_on(
        &host,
        engine,
        &["tun0", "--policy", "research", "--key", &key, "--write", &masked],
    );
    host.check(&["python3", "-c", TUNNEL]).expect("packets");
    let summary = end(process);
    let seen = summary["seen"].as_u64().expect("a number");
    wait_until("tcpdump", LIMIT, || packets(Path::new(&raw)).len() as u64 == seen).expect("it");
    dump.signal(Signal::SIGINT).expect("it runs");
    dump.finish(LIMIT).expect("an end");
    nigh(&host, &["file", "--policy", "research", "--key", &key, &raw, &again]);
    let live = packets(Path::new(&masked));
    assert_eq!(live, packets(Path::new(&again)));
    assert_eq!(summary["output"]["packets"], live.len());
    // Both families behind a link-layer stand-in, and answers.
    let of = |version: u8| live.iter().filter(|(_, bytes)| bytes[4] >> 4 == version).count();
    assert!(of(4) > 12 && of(6) == 2, "{live:02x?}");
    let checked = nigh(&host, &["check", &masked, "--against", &raw]);
    assert!(checked.contains("nothing was found"), "{checked}");
}

/// What tshark reads of a capture: a line for each packet, with these fields.
fn fields(host: &Namespace, capture: &str, fields: &[&str]) -> Vec<String> {
    let fields = fields.iter().flat_map(|field| ["-e", field]);
    let words: Vec<&str> =
        ["tshark", "-n", "-r", capture, "-T", "fields"].into_iter().chain(fields).collect();
    host.check(&words).expect("tshark").lines().map(str::to_owned).collect()
}

const ADDRESSES: [&str; 4] = ["frame.len", "ip.src", "ip.dst", "icmp.seq"];

/// tshark reads the pipe while packets come, twice: both streams name their key, and have masked
/// packets only.
fn who_reads_the_pipe_sees_masked_packets_and_the_id_of_the_periods_key(engine: &str) {
    let (host, other) = hosts();
    let folder = tempfile::tempdir().expect("a folder");
    let name = |name: &str| folder.path().join(name).to_str().expect("a name").to_owned();
    let [key, raw, pipe, again] = ["key", "raw.pcap", "pipe", "file.pcapng"].map(name);
    nigh(&host, &["key", &key]);
    let dump = dump(&host, "eth0", &raw);
    let under = ["--policy", "research", "--key", &key, "--rotate", "hour"];
    let process = live(&host, engine, &[&under[..], &["--fifo", &pipe]].concat());
    let mut read = Vec::new();
    for reader in 0..2 {
        let fields = ADDRESSES.iter().chain(&["frame.comment"]).flat_map(|field| ["-e", field]);
        let words = ["tshark", "-n", "-l", "-r", &pipe, "-c", "6", "-T", "fields"];
        let words: Vec<&str> = words.into_iter().chain(fields).collect();
        let mut tshark = host.spawn(&words).expect("tshark");
        wait_until("tshark", LIMIT, || {
            other.check(&["ping", "-c", "1", "-W", "1", "192.0.2.1"]).expect("an answer");
            tshark.ended().is_some()
        })
        .unwrap_or_else(|error| panic!("reader {reader}: {error}: {}", tshark.stderr()));
        read.push(tshark.stdout());
    }
    let summary = end(process);
    let seen = summary["seen"].as_u64().expect("a number") as usize;
    wait_until("tcpdump", LIMIT, || packets(Path::new(&raw)).len() >= seen).expect("packets");
    dump.signal(Signal::SIGINT).expect("it runs");
    dump.finish(LIMIT).expect("an end");
    nigh(&host, &[&["file"][..], &under, &[&raw, &again]].concat());
    let masked = fields(&host, &again, &ADDRESSES);
    let comments = fields(&host, &again, &["frame.comment"]);
    let printed =
        comments.iter().find(|comment| comment.contains("from here on key")).expect("a key");
    for stream in read {
        assert!(stream.lines().count() >= 4 && stream.contains(printed), "{printed}: {stream}");
        for line in stream.lines() {
            let packet: Vec<&str> = line.split('\t').take(ADDRESSES.len()).collect();
            assert!(masked.contains(&packet.join("\t")), "{line}: {masked:?}");
            assert!(!line.contains("192.0.2."), "{line}");
        }
    }
}

fn a_tap_and_files_have_masked_packets_and_each_file_names_its_key(engine: &str) {
    let (host, other) = hosts();
    let folder = tempfile::tempdir().expect("a folder");
    let name = |name: &str| folder.path().join(name).to_str().expect("a name").to_owned();
    let [key, raw, seen, again] = ["key", "raw.pcap", "seen.pcap", "file.pcapng"].map(name);
    nigh(&host, &["key", &key]);
    let under = ["--policy", "research", "--key", &key, "--rotate", "day"];
    let process = live(&host, engine, &[&under[..], &["--tap", "mask0"]].concat());
    let out = name("out.pcapng");
    let rotated = ["--write", &out, "--rotate-size", "1K", "--rotate-interval", "1s"];
    let files = live(&host, engine, &[&under[..], &rotated].concat());
    let dumps = [dump(&host, "eth0", &raw), dump(&host, "mask0", &seen)];
    other.check(&["ping", "-c", "20", "-i", "0.15", "192.0.2.1"]).expect("answers");
    let in_files = end(files);
    let count = in_files["seen"].as_u64().expect("a number") as usize;
    for file in [&raw, &seen] {
        wait_until("tcpdump", LIMIT, || packets(Path::new(file)).len() >= count).expect("packets");
    }
    end(process);
    for dump in dumps {
        dump.signal(Signal::SIGINT).expect("it runs");
        dump.finish(LIMIT).expect("an end");
    }
    nigh(&host, &[&["file"][..], &under, &[&raw, &again]].concat());
    let masked = packets(Path::new(&again));
    // A frame has no other length on the device than what is left of it.
    let on_tap = packets(Path::new(&seen));
    let same = masked.iter().zip(&on_tap).all(|((_, wanted), (_, seen))| wanted == seen);
    assert!(count > 40 && same, "{on_tap:02x?}");
    let comments = fields(&host, &again, &["frame.comment"]);
    let printed = &comments[0];
    assert!(printed.starts_with("from here on key "), "{comments:?}");
    let mut files: Vec<_> = fs::read_dir(folder.path())
        .expect("a folder")
        .map(|it| it.expect("a file").path())
        .filter(|it| it.to_string_lossy().contains("/out-"))
        .collect();
    files.sort();
    // The last one may have begun with the last second, and have no packet.
    files.pop_if(|file| packets(file).is_empty());
    // New ones by their size in the same second, and by the time: pings take three seconds.
    let by_size = files.iter().filter(|it| it.to_string_lossy().ends_with("_002.pcapng")).count();
    assert!(by_size >= 1 && files.len() - by_size >= 3, "{files:?}");
    let all: Vec<_> = files.iter().flat_map(|file| packets(file)).collect();
    assert!(all.len() == count && masked.starts_with(&all), "{all:02x?}");
    for file in &files {
        assert!(fs::metadata(file).expect("a file").len() <= 1000, "{file:?}");
        let comments = fields(&host, file.to_str().expect("a name"), &["frame.comment"]);
        assert_eq!(comments.first(), Some(printed), "{file:?}: {comments:?}");
        assert!(comments[1..].iter().all(|comment| comment.is_empty()), "{file:?}: {comments:?}");
    }
}
