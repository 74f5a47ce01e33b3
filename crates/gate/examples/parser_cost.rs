//! What a parser in a process of its own costs: packets of a capture named in this thread, and by the
//! process, so many at once.
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
use std::{collections::HashMap, error::Error, fs::File, time::Instant};

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

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().ok_or("usage: parser_cost PROGRAM CAPTURE...")?;
    let mut all = Vec::new();
    for path in arguments {
        read(&path, &mut all)?;
    }
    let bytes: usize = all.iter().map(|one| one.payload.len()).sum();
    println!("{} packets of {} bytes on average", all.len(), bytes / all.len().max(1));
    let report = |what: &str, begin: Instant| {
        let ns = begin.elapsed().as_nanos() as f64 / all.len() as f64;
        println!("{what:>24}: {ns:>7.0} ns a packet");
    };
    for _ in 0..3 {
        let mut engine = Engine::new(&Settings::default())?;
        let mut states = HashMap::new();
        let begin = Instant::now();
        for one in &all {
            let state = states.entry(one.number).or_insert_with(State::new);
            engine.packet(&one.flow, state, &one.packet());
        }
        report("in this thread", begin);
        for at_once in [256, 32, 8, 1] {
            let program = Program::Process(program.clone().into());
            let mut link = Link::<Names>::open(program, Settings::default())?;
            let (mut frame, mut known) = (Frame::default(), HashMap::new());
            let begin = Instant::now();
            for batch in all.chunks(at_once) {
                for one in batch {
                    let new = known.insert(one.number, ()).is_none();
                    let new = new.then_some((one.flow, [None; 2]));
                    frame.push(&Item::Packet { flow: one.number, new, packet: one.packet() });
                }
                link.exchange(&mut frame).ok_or("the parser failed")?;
            }
            report(&format!("process, {at_once} at once"), begin);
        }
    }
    Ok(())
}
