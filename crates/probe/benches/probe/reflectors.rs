//! How many packets a second are reflected: in the driver, and at a socket, over the same link with the same
//! generator inside the kernel.

use datapath::stamp::{AttachMode, Generator, Limit, StampProgram};
use probe::{
    delay::{Config, Delays},
    interval::MaximumError,
    stamp::reflector::{Rate, SessionConfig},
};
use std::{
    error::Error,
    net::{IpAddr, SocketAddr, SocketAddrV4},
    time::{Duration, Instant},
};
use testbed::{Figures, Namespace, Receiver, wait_until};

// Those of `testbed::pair`.
const FROM: ([u8; 6], &str) = ([2, 0, 0, 0, 0, 1], "192.0.2.1:5000");
const TO: ([u8; 6], &str) = ([2, 0, 0, 0, 0, 2], "192.0.2.2:862");
const SSID: u16 = 7;
const TIME: Duration = Duration::from_secs(4);
/// Packets of one call: few, so that a socket's buffer is not filled at once and then idle.
const BURST: u32 = 256;
/// No limit that matters here.
const RATE: u32 = 100_000_000;

fn mac(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Replies a second while packets are sent for so long as fast as can be.
fn replies(here: &Namespace, packets: u32) -> Result<f64, Box<dyn Error + Send + Sync>> {
    here.enter(|| {
        let index = nix::net::if_::if_nametoindex("eth0")?;
        let address = |at: &str| at.parse::<SocketAddrV4>();
        let (from, to) = ((FROM.0, address(FROM.1)?), (TO.0, address(TO.1)?));
        let generator = Generator::attach(index, from, to, SSID)?;
        generator.send(packets)?;
        let (begin, before) = (Instant::now(), generator.replies());
        while begin.elapsed() < TIME {
            generator.send(packets)?;
        }
        let replies = generator.replies() - before;
        Ok(replies as f64 / begin.elapsed().as_secs_f64())
    })
}

pub(crate) fn measure(figures: &mut Figures) -> Result<(), Box<dyn Error>> {
    println!("\nreflectors, 44-byte test packets over a veth");
    let (here, there) = testbed::pair()?;
    // The socket's reflector does not wait for the other's address.
    let neighbour = ["ip", "neighbour", "add", "192.0.2.1", "lladdr", &mac(FROM.0), "dev", "eth0"];
    there.check(&neighbour)?;
    let to: SocketAddr = TO.1.parse()?;
    let sender: IpAddr = FROM.1.parse::<SocketAddr>()?.ip();

    let socket = {
        let _receiver = Receiver::new(&there, "eth0")?;
        let config = Config {
            sender: "192.0.2.2:0".parse()?,
            reflector: Some(to),
            gather: Duration::ZERO,
            ..Config::default()
        };
        let known = |_| MaximumError::known(1_000_000);
        let reflector = there.enter(|| Delays::start(&config, known, |_, _| {}))?;
        let admitted = reflector.admit(SessionConfig {
            address: sender,
            port: None,
            ssid: Some(SSID),
            key: None,
            extensions: false,
            rate: Rate { per_second: RATE, burst: RATE },
        });
        admitted.blocking_recv()?;
        wait_until("the session", Duration::from_secs(10), || {
            reflector.counters().reflector_sessions == 1
        })?;
        // What the socket cannot take is dropped; of several paces, the one at which it does best.
        let mut best: f64 = 0.0;
        for burst in [64, BURST, 4096] {
            best = best.max(replies(&here, burst).map_err(|error| error.to_string())?);
        }
        best
    };
    figures.add("reflected at a socket", socket, "packets a second", None);

    let program = StampProgram::load(0x9409)?;
    program.serve(to)?;
    program.admit(sender, SSID, Limit { rate: RATE.into(), burst: RATE.into() })?;
    let index = there.enter(|| nix::net::if_::if_nametoindex("eth0"))?;
    let _attachment = there.enter(|| program.attach(index, AttachMode::Native))?;
    let driver = replies(&here, 1 << 16).map_err(|error| error.to_string())?;
    figures.add("reflected in the driver", driver, "packets a second", None);
    figures.add("driver to socket", driver / socket, "times", Some("at least 5"));
    Ok(())
}
