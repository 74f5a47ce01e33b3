//! What the responder costs a packet, in nanoseconds, by BPF_PROG_TEST_RUN: `bpf/bench.bpf.c`.
//!
//! All programs run on the same 60-byte frame, which each makes a request again with the same code, in
//! turns of some hundred thousand repetitions; of each program's turns the fastest counts, as what
//! disturbs a turn can only make it longer. The kernel's own loop around the program is in every
//! figure, the baseline's too.

use crate::echo::{self, Limit, LoadError, Settings, SourceLimit};
use crate::load::{Object, undisturbed};
use crate::run::{RunError, Verdict, once, repeat};
use crate::xdp_link;
use libbpf_rs::libbpf_sys;
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::{io, time::Duration};

#[allow(unreachable_pub, missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]
#[allow(clippy::multiple_unsafe_ops_per_block)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/bench.skel.rs"));
}

/// What is loaded.
const OBJECT: Object = Object { name: "benchmark" };

/// Repetitions in a turn.
const REPETITIONS: u32 = 200_000;

/// Turns of each program.
const TURNS: usize = 25;

const SERVICE: [u8; 4] = [50, 50, 50, 50];

/// The benchmark could not be run.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The programs could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A program could not be attached.
    #[error("attaching the least responder: {0}")]
    Attach(io::Error),
    /// A program could not be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A program did something else than answer, so its figure would mean nothing.
    #[error(
        "the program \"{name}\" gave the verdict {verdict:?} instead of answering; this is a defect, please report it"
    )]
    NotAnswered {
        /// What was run.
        name: &'static str,
        /// Its error.
        verdict: Verdict,
    },
}

/// One program's figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// What was run.
    pub name: &'static str,
    /// Nanoseconds a packet.
    pub ns: f64,
}

fn settings(limited: bool, verify: bool) -> Settings {
    let limit = Limit { rate: 1_000_000_000, burst: 1_000_000_000 };
    Settings {
        addresses: vec![IpAddr::from(SERVICE)],
        verify,
        source: SourceLimit {
            limit: if limited { limit } else { Limit::NONE },
            ..Settings::default().source
        },
        node: Limit::NONE,
        ..Settings::default()
    }
}

/// An echo request with 18 bytes of payload, the smallest Ethernet frame.
fn request() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 7, 8, 0];
    let mut header =
        vec![0x45, 0, 0, 46, 0x12, 0x34, 0x40, 0, 57, 1, 0, 0, 192, 0, 2, 7, 50, 50, 50, 50];
    let sum = wire::checksum::checksum(&header).to_be_bytes();
    header[10..12].copy_from_slice(&sum);
    let mut message = vec![8, 0, 0, 0, 0x43, 0x21, 0, 1];
    message.extend(1..=18);
    let sum = wire::checksum::checksum(&message).to_be_bytes();
    message[2..4].copy_from_slice(&sum);
    frame.extend(header);
    frame.extend(message);
    frame
}

/// Measures, in this order: an empty program, one that only makes the request again, a bare swap of
/// MAC addresses, the responder with verification off, which takes the slow path, with
/// verification on as it is by default, and with a limit for each source as well. Takes about a second.
pub fn nanoseconds_a_packet() -> Result<Vec<Cost>, BenchError> {
    let tick = echo::prepare()?;
    let storage = Box::leak(Box::new(MaybeUninit::uninit()));
    let mut open =
        skeleton::BenchSkelBuilder::default().open(storage).map_err(|error| OBJECT.error(error))?;
    if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
        rodata.echo_tick = tick;
        rodata.echo_secret.multiplier = [[0x9e37_79b9_7f4a_7c15; 4]; 2];
        rodata.echo_secret.offset = [1, 2];
    }
    let mut loaded = undisturbed(|| open.load()).map_err(|error| OBJECT.error(error))?;
    let frame = request();
    let data = loaded.maps.bss_data.take().expect("the skeleton maps .bss");
    let word = |at: usize| u64::from_ne_bytes(frame[at..at + 8].try_into().expect("eight bytes"));
    data.bench_head = skeleton::types::bench_head {
        macs: word(0),
        macs_end: word(8) as u32,
        r#type: word(12) as u32,
        ip0: word(14),
        ip8: word(22),
        ip16: word(30) as u32,
        icmp: word(34),
        ..Default::default()
    };
    let programs = &loaded.progs;
    let plan = [
        ("empty", &programs.bench_empty, false, false),
        ("request made again", &programs.bench_remake, false, false),
        ("bare MAC swap", &programs.bench_bare, false, false),
        ("responder, the slow path (verify off)", &programs.bench_echo, false, false),
        ("responder without limits", &programs.bench_echo, false, true),
        ("responder with limits", &programs.bench_echo, true, true),
    ];
    let mut best = [Duration::MAX; 6];
    for _ in 0..TURNS {
        for ((name, program, limited, verify), best) in plan.iter().zip(&mut best) {
            echo::put_alone(&mut data.echo_configs[0], &settings(*limited, *verify));
            *best = repeat(program, &frame, REPETITIONS)?.min(*best);
            // What was measured is answering, and still is at the end of the turn.
            let (verdict, _) = once(program, None, &frame)?;
            if verdict != Verdict::Tx {
                return Err(BenchError::NotAnswered { name, verdict });
            }
        }
    }
    let cost = |(name, best): (&'static str, Duration)| Cost {
        name,
        ns: best.as_secs_f64() * 1e9 / f64::from(REPETITIONS),
    };
    Ok(plan.iter().map(|line| line.0).zip(best).map(cost).collect())
}

/// The least that answers an IPv4 echo request, on an interface until this is dropped: it asks nothing,
/// counts nothing and answers everybody. What a path carries with it is what a path can carry.
pub struct Turn {
    _link: OwnedFd,
    _loaded: skeleton::BenchSkel<'static>,
}

impl Turn {
    /// Attaches it natively to an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// When the kernel refuses the program or the driver has no native XDP.
    pub fn attach(interface: u32) -> Result<Self, BenchError> {
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let open = skeleton::BenchSkelBuilder::default()
            .open(storage)
            .map_err(|error| OBJECT.error(error))?;
        let loaded = undisturbed(|| open.load()).map_err(|error| OBJECT.error(error))?;
        let program = loaded.progs.bench_turn.as_fd();
        let link = xdp_link::attach(program, interface, libbpf_sys::XDP_FLAGS_DRV_MODE)
            .map_err(BenchError::Attach)?;
        Ok(Self { _link: link, _loaded: loaded })
    }
}
