//! What a parser in a process of its own costs: packets of a capture named in this thread, and by the
//! process, so many at once. Processor time of both, and the time that passes, in each case for the second time
//! that all are named: by then memory is there.
//!
//! usage: parser_cost PROGRAM CAPTURE...

use capture::{Item as Block, ReadError, read_all};
use classify::{
    Engine, Settings, State,
    capture::{
        flows::Table,
        layers::{self, Layers, Link as Frames},
    },
    flow::{Flow, Side},
    packet::{Packet, Tcp},
};
use gate::parser::{
    frame::Frame,
    link::{Link, Program},
    names::{Item, Names},
};
use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeValLike,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::{
    error::Error,
    fs::File,
    path::Path,
    time::{Duration, Instant},
};

/// A packet with payload.
struct One {
    number: u32,
    flow: Flow,
    at_ns: u64,
    from: Side,
    tcp: Option<Tcp>,
    payload: Vec<u8>,
}

impl One {
    fn packet(&self) -> Packet<'_> {
        let length = u32::try_from(self.payload.len()).unwrap_or(u32::MAX);
        Packet { at_ns: self.at_ns, from: self.from, tcp: self.tcp, payload: &self.payload, length }
    }
}

/// The first packets of the flows of a capture, as the kernel copies them.
fn read(path: &str, all: &mut Vec<One>) -> Result<(), Box<dyn Error>> {
    let mut flows = Table::<u32>::new(1 << 20);
    let mut next = all.last().map_or(0, |one| one.number);
    read_all::<ReadError>(File::open(path)?, |block, _| {
        let Block::Frame(frame) = block else { return Ok(()) };
        let Some(ip) = Frames::new(frame.link).ip(frame.bytes) else { return Ok(()) };
        let Layers::Segment(segment) = layers::read(ip) else { return Ok(()) };
        let (open, packet) = flows.assign(&segment, frame.at_ns, &mut Vec::new());
        if open.of_user == 0 {
            next += 1;
            open.of_user = next;
        }
        let Packet { at_ns, from, tcp, payload, .. } = packet;
        if open.packets <= 16 && !payload.is_empty() {
            let (number, flow) = (open.of_user, open.flow);
            all.push(One { number, flow, at_ns, from, tcp, payload: payload.to_vec() });
        }
        Ok(())
    })?;
    Ok(())
}

/// Processor seconds of this process and of its children that have ended.
fn processor() -> f64 {
    let of = |who| {
        let usage = getrusage(who).expect("the system counts");
        [usage.user_time(), usage.system_time()].map(|time| time.num_microseconds() as f64 / 1e6)
    };
    [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN].into_iter().flat_map(of).sum()
}

/// Asks about all packets, so many at once, and forgets the flows.
fn ask(link: &mut Link<Names>, all: &[One], at_once: usize) -> Result<(), Box<dyn Error>> {
    let (mut frame, mut known) = (Frame::default(), FxHashSet::default());
    for batch in all.chunks(at_once) {
        for one in batch {
            let new = known.insert(one.number).then_some((one.flow, [None; 2]));
            frame.push(&Item::Packet { flow: one.number, new, packet: one.packet() });
        }
        link.exchange(&mut frame).ok_or("the parser failed")?;
    }
    known.into_iter().for_each(|number| frame.push(&Item::Forget(number)));
    link.exchange(&mut frame).ok_or("the parser failed")?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().ok_or("usage: parser_cost PROGRAM CAPTURE...")?;
    let program = Path::new(&program).canonicalize()?;
    let mut all = Vec::new();
    for path in arguments {
        read(&path, &mut all)?;
    }
    let bytes: usize = all.iter().map(|one| one.payload.len()).sum();
    println!("{} packets of {} bytes on average", all.len(), bytes / all.len().max(1));
    let report = |what: &str, passed: Duration, spent: f64| {
        let each = |seconds: f64| seconds * 1e9 / all.len() as f64;
        let (passed, spent) = (each(passed.as_secs_f64()), each(spent));
        println!("{what:>24}: {spent:>7.0} ns of the processor a packet, {passed:>7.0} ns pass");
    };
    for _ in 0..3 {
        let mut engine = Engine::new(&Settings::default())?;
        let mut run = || {
            let (begin, spent) = (Instant::now(), processor());
            let mut states = FxHashMap::default();
            for one in &all {
                let state = states.entry(one.number).or_insert_with(State::new);
                engine.packet(&one.flow, state, &one.packet());
            }
            drop(states);
            (begin.elapsed(), processor() - spent)
        };
        run();
        let (passed, spent) = run();
        report("in this thread", passed, spent);
        for at_once in [256, 32, 8, 1] {
            // What a process has spent is known when it has ended.
            let run = |times| -> Result<(Duration, f64), Box<dyn Error>> {
                let spent = processor();
                let program = Program::Process(program.clone());
                let mut link = Link::<Names>::open(program, Settings::default())?;
                let mut passed = Duration::ZERO;
                for _ in 0..times {
                    let begin = Instant::now();
                    ask(&mut link, &all, at_once)?;
                    passed = begin.elapsed();
                }
                drop(link);
                Ok((passed, processor() - spent))
            };
            let (_, once) = run(1)?;
            let (passed, twice) = run(2)?;
            report(&format!("process, {at_once} at once"), passed, twice - once);
        }
    }
    Ok(())
}
