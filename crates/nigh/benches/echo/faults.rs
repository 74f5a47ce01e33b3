//! From a fault to the UPDATE that withdraws, seen on the wire at the upstream's end of the link.
//!
//! ```text
//!   upstream (BIRD) eth0 ─── eth0 site (nigh) eth1 ─── eth0 users' router
//!     sniffer here     BGP only             pings and probes
//! ```
//!
//! The session does not go over the link that fails, as otherwise there would be nothing to send.

use crate::NIGH;
use datapath::socket::{Buffer, Receive, Socket};
use std::{
    error::Error,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};
use testbed::{Bird, End, Figures, Namespace, Nigh, Receiver, link, wait_until};

const PREFIX: &str = "50.0.0.0/8";

/// Times each fault is made.
const TURNS: usize = 10;

const BIRD: &str = "router id 192.0.2.1;\nprotocol device {}\n\
    protocol bgp site {\n local 192.0.2.1 as 4;\n neighbor 192.0.2.2 as 12;\n\
     ipv4 { import all; export none; };\n}\n";

const SITE: &str = r#"[echo]
interfaces = ["eth1"]
addresses = ["50.50.50.50"]

[anycast]
prefixes = ["50.0.0.0/8"]

[[anycast.upstream]]
name = "upstream"
type = "bgp"
peer = "192.0.2.1"
peer_as = 4
local_as = 12
local_address = "192.0.2.2"
"#;

struct Stage {
    upstream: Namespace,
    site: Namespace,
    users: Namespace,
}

/// A fault: its name, how it is made and how it is mended.
struct Fault {
    name: &'static str,
    make: fn(&Stage) -> Result<(), testbed::Error>,
    mend: fn(&Stage) -> Result<(), testbed::Error>,
}

const FAULTS: [Fault; 2] = [
    Fault {
        name: "a link lost",
        make: |stage| stage.users.check(&["ip", "link", "set", "eth0", "down"]).map(drop),
        mend: |stage| stage.users.check(&["ip", "link", "set", "eth0", "up"]).map(drop),
    },
    Fault {
        name: "probes no longer come back",
        make: |stage| stage.users.sysctl(&[("ipv4.ip_forward", "0")]),
        mend: |stage| stage.users.sysctl(&[("ipv4.ip_forward", "1")]),
    },
];

/// Does this frame carry a BGP UPDATE (RFC 4271 section 4.1: 16 bytes of ones, a length, type 2) that
/// withdraws routes (section 4.3: a length of withdrawn routes that is not 0)?
fn withdraws(frame: &[u8]) -> bool {
    let marker = [0xff; 16];
    frame
        .windows(marker.len() + 5)
        .any(|bytes| bytes.starts_with(&marker) && bytes[18] == 2 && bytes[19..21] != [0, 0])
}

/// Waits at the upstream for the UPDATE, while `fault` is made; the time between the two.
fn time(stage: &Stage, fault: &Fault) -> Result<Duration, Box<dyn Error>> {
    let ready = AtomicBool::new(false);
    thread::scope(|scope| {
        let sniffer = scope.spawn(|| {
            stage.upstream.enter(|| -> Result<Instant, String> {
                let index = nix::net::if_::if_nametoindex("eth0").map_err(|e| e.to_string())?;
                let socket = Socket::packet(index, Receive::Incoming).map_err(|e| e.to_string())?;
                socket.set_timeout(Duration::from_millis(100)).map_err(|e| e.to_string())?;
                let mut buffer = Buffer::new(2048);
                ready.store(true, Ordering::Release);
                let begin = Instant::now();
                while begin.elapsed() < Duration::from_secs(10) {
                    let mut frames = socket.receive(&mut buffer).map_err(|e| e.to_string())?;
                    if frames.any(|frame| withdraws(frame.bytes)) {
                        return Ok(Instant::now());
                    }
                }
                Err("no UPDATE within 10 seconds".to_owned())
            })
        });
        wait_until("the sniffer", Duration::from_secs(5), || {
            ready.load(Ordering::Acquire) || sniffer.is_finished()
        })?;
        let begin = Instant::now();
        (fault.make)(stage)?;
        let seen = sniffer.join().map_err(|_| "the sniffer panicked")??;
        Ok(seen.saturating_duration_since(begin))
    })
}

/// Measures each fault.
pub(crate) fn measure(figures: &mut Figures) -> Result<(), Box<dyn Error>> {
    println!("\nFrom a fault to the withdrawal on the wire, {TURNS} times each");
    let stage = Stage {
        upstream: Namespace::new("upstream")?,
        site: Namespace::new("site")?,
        users: Namespace::new("users")?,
    };
    link(
        End::new(&stage.upstream, "eth0").address("192.0.2.1/24"),
        End::new(&stage.site, "eth0").address("192.0.2.2/24"),
    )?;
    link(
        End::new(&stage.users, "eth0").address("198.51.100.1/24"),
        End::new(&stage.site, "eth1").address("198.51.100.2/24"),
    )?;
    stage.users.forward()?;
    stage.site.check(&["ip", "route", "add", "default", "via", "198.51.100.1"])?;
    let _receiver = Receiver::new(&stage.users, "eth0")?;
    let bird = Bird::start(&stage.upstream, BIRD)?;
    let _nigh = Nigh::start(&stage.site, Path::new(NIGH), "bench", SITE)?;
    let announced =
        || bird.query(&format!("show route {PREFIX}")).is_ok_and(|t| t.contains("unicast"));
    for fault in &FAULTS {
        let mut times = Vec::new();
        for _ in 0..TURNS {
            wait_until("the announcement", Duration::from_secs(30), announced)?;
            times.push(time(&stage, fault)?.as_secs_f64() * 1000.0);
            (fault.mend)(&stage)?;
        }
        times.sort_by(f64::total_cmp);
        let name = fault.name;
        figures.add(
            &format!("{name}: median"),
            times[TURNS / 2],
            "milliseconds",
            Some("under 200"),
        );
        figures.add(&format!("{name}: worst"), times[TURNS - 1], "milliseconds", Some("under 200"));
    }
    Ok(())
}
