//! How many instructions the running kernel's verifier looks at before it takes a program: each object of
//! `bpf/` is loaded as user space loads it. Other compilers and kernels look at more, and the limit is a
//! million, so half of that is the most here. `--nocapture` shows the table.

use super::blast::request;
use datapath::ask::{Asker, REQUESTS, Replies};
use datapath::blast::{PassGuard, Receiver, Sender, Transmissions};
use datapath::mask::{Engine, Header, KINDS, Link, Mapping, Mask, SNAP};
use datapath::{bench, echo, gate, kernel, mask, oracle, stamp, xsk};
use libbpf_rs::query::ProgInfoIter;
use std::any::Any;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::net::SocketAddrV4;
use std::path::Path;

/// What the verifier may look at.
const MOST: u32 = 500_000;

/// The kernel keeps so much of a program's name.
const NAME: usize = 15;

type Loaded = Result<Box<dyn Any>, Box<dyn Error>>;

/// Loads an object; the number is that of an interface without anything on it.
type Load = fn(u32) -> Loaded;

const OBJECTS: [(&str, Load); 10] = [
    ("ask", |interface| {
        let replies = Replies { flags: [0; 2], again: false };
        let (frames, service) = (vec![vec![0; 100]; REQUESTS], station(2));
        Ok(Box::new(Asker::attach(interface, service, &frames, replies)?))
    }),
    ("bench", |interface| Ok(Box::new(bench::Turn::attach(interface)?))),
    ("blast", blast),
    ("echo", |_| Ok(Box::new(echo::EchoProgram::load()?))),
    ("gate", |_| Ok(Box::new(gate::Gate::open(&gate::Settings::default())?))),
    ("mask", |_| {
        let engines = [Engine::Kernel, Engine::Process];
        let can = |engine: &Engine| *engine == Engine::Process || kernel::cipher().is_ok();
        let masks = engines.into_iter().filter(can).map(|it| Mask::open(&mask_settings(), it));
        Ok(Box::new(masks.collect::<Result<Vec<_>, _>>()?))
    }),
    ("oracle", |_| Ok(Box::new(oracle::OracleProgram::load()?))),
    ("stamp", |_| Ok(Box::new(stamp::StampProgram::load(0)?))),
    ("stamp_load", |interface| {
        let (from, to) = (([2, 0, 0, 0, 0, 1], station(1)), ([2, 0, 0, 0, 0, 2], station(2)));
        Ok(Box::new(stamp::Generator::attach(interface, from, to, 0)?))
    }),
    ("xsk", |_| Ok(Box::new(xsk::Interface::open("eth0")?))),
];

fn station(last: u8) -> SocketAddrV4 {
    SocketAddrV4::new([192, 0, 2, last].into(), 862)
}

/// All its programs, those that send and receive for both families.
fn blast(interface: u32) -> Loaded {
    let mut loaded: Vec<Box<dyn Any>> =
        vec![Box::new(Transmissions::watch(interface)?), Box::new(PassGuard::attach(interface)?)];
    for ends in [["192.0.2.1", "192.0.2.2"], ["2001:db8::1", "2001:db8::2"]] {
        let request = request(ends, 1400, 0, 1000);
        loaded.push(Box::new(Sender::load(interface, &request, 0, 0)?));
        loaded.push(Box::new(Receiver::load(&request, 0)?));
    }
    Ok(Box::new(loaded))
}

fn mask_settings() -> mask::Settings {
    mask::Settings {
        headers: [const { Header { kept: Vec::new(), instructions: Vec::new() } }; KINDS],
        payload: false,
        mapping: Mapping::CryptoPan,
        link: Link::Ethernet,
        filter: Vec::new(),
        snap: SNAP,
        sample: 1,
        ring_bytes: 1 << 16,
    }
}

/// The names of the programs in a source file, as the kernel keeps them, without those that this kernel
/// cannot run.
fn programs(object: &str) -> Vec<String> {
    let source = fs::read_to_string(folder().join(format!("{object}.bpf.c"))).unwrap();
    let sections = source.split("\nSEC(\"").skip(1);
    let functions = sections.filter_map(|section| section.lines().nth(1)?.strip_prefix("int "));
    let names = functions.map(|function| {
        let function = function.strip_prefix("BPF_PROG(").unwrap_or(function);
        let end = function.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
        function[..end.unwrap().min(NAME)].to_owned()
    });
    names.filter(|name| can_load(name)).collect()
}

/// Whether this kernel has what a program needs that others do without.
fn can_load(program: &str) -> bool {
    match program {
        "oracle" => oracle::lacks().is_none(),
        "mask_incoming" | "mask_outgoing" | "mask_trial" | "mask_set_key" => {
            kernel::cipher().is_ok()
        }
        _ => true,
    }
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../bpf"))
}

/// What the verifier has looked at for the programs that this process holds; of several with one name,
/// the most.
fn looked_at() -> BTreeMap<String, u32> {
    let held: Vec<u32> = fs::read_dir("/proc/self/fdinfo")
        .unwrap()
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok())
        .filter_map(|text| {
            text.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok())
        })
        .collect();
    let mut looked_at = BTreeMap::new();
    for program in ProgInfoIter::default().filter(|program| held.contains(&program.id)) {
        let name = program.name.to_string_lossy().into_owned();
        let most = looked_at.entry(name).or_default();
        *most = program.verified_insns.max(*most);
    }
    looked_at
}

#[test]
fn the_verifier_takes_each_program_with_half_of_its_limit_left() {
    let mut sources: Vec<_> = fs::read_dir(folder())
        .unwrap()
        .filter_map(|entry| {
            entry.unwrap().file_name().to_str()?.strip_suffix(".bpf.c").map(str::to_owned)
        })
        // The first only asks what the kernel can do, the second is made to be refused.
        .filter(|source| !["cipher", "refused"].contains(&source.as_str()))
        .collect();
    sources.sort();
    assert_eq!(sources, OBJECTS.map(|(object, _)| object), "each object is loaded here");

    let (near, _far) = testbed::pair().unwrap();
    let mut wrong = Vec::new();
    near.enter(|| {
        let interface = nix::net::if_::if_nametoindex("eth0").unwrap();
        println!("{:28} {:>22}", "program", "instructions looked at");
        for (object, load) in OBJECTS {
            let _loaded = match load(interface) {
                Ok(loaded) => loaded,
                Err(error) => {
                    wrong.push(format!("{object}: {error}"));
                    continue;
                }
            };
            let looked_at = looked_at();
            for program in programs(object) {
                let Some(count) = looked_at.get(&program) else {
                    wrong.push(format!("{object}: {program} is not loaded"));
                    continue;
                };
                println!("{:28} {count:>22}", format!("{object}: {program}"));
                if *count > MOST {
                    wrong.push(format!(
                        "{object}: {count} instructions for {program}, at most {MOST}"
                    ));
                }
            }
        }
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}
