//! Filters of packets, in the syntax of pcap-filter(7) and compiled by libpcap: classic BPF (McCanne and
//! Jacobson, "The BSD Packet Filter", 1993; filter.rst of the kernel's documentation).
//!
//! ```text
//! expression -> no names of hosts -> libpcap -> checked: ends, stays in the packet -> engine, or matches()
//! ```
//!
//! The engine in the kernel runs the program on the packet as it came, before anything of it is copied.
//! [`Filter::matches`] does the same here, for tests and for whoever has the packet anyway.

mod check;
mod step;
#[cfg(test)]
mod tests;
mod words;

use crate::machine::Link;
use check::check;
use pcap::{Capture, Linktype};
use std::fmt;
use step::State;

/// Most instructions of a program (linux/bpf_common.h, BPF_MAXINSNS).
pub const MOST: usize = datapath::mask::FILTER;
/// LINKTYPE_RAW where libpcap is given a link and no file is read (DLT_RAW of pcap/dlt.h).
const RAW: Linktype = Linktype(12);

/// An instruction of classic BPF: `struct sock_filter` of linux/filter.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    code: u16,
    jt: u8,
    jf: u8,
    k: u32,
}

impl Instruction {
    /// What is done.
    pub fn code(self) -> u16 {
        self.code
    }

    /// Instructions to skip where a condition holds.
    pub fn jt(self) -> u8 {
        self.jt
    }

    /// Instructions to skip where it does not.
    pub fn jf(self) -> u8 {
        self.jf
    }

    /// The constant: an operand, an offset in the packet in bytes, a memory slot, or a jump.
    pub fn k(self) -> u32 {
        self.k
    }

    /// Of libpcap's, whose fields are only shown: code, jt, jf and k in decimal digits.
    fn new(of: &pcap::BpfInstruction) -> Option<Self> {
        let text = of.to_string();
        let mut numbers = text.split(' ');
        Some(Self {
            code: numbers.next()?.parse().ok()?,
            jt: numbers.next()?.parse().ok()?,
            jf: numbers.next()?.parse().ok()?,
            k: numbers.next()?.parse().ok()?,
        })
    }
}

impl fmt::Display for Instruction {
    /// As libpcap shows it, and `iptables -m bpf` reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.code, self.jt, self.jf, self.k)
    }
}

/// An expression is no filter.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("filter {expression:?}: {why}")]
pub struct FilterError {
    /// The expression.
    pub expression: String,
    /// What is wrong with it.
    pub why: Why,
}

/// What is wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// libpcap would ask name servers.
    #[error(
        "{0:?} is neither an address nor a word of pcap-filter(7) for Ethernet and IP, and names are not looked \
         up: give the address (of ports and protocols, the name stands behind `port` or `proto`)"
    )]
    Name(String),
    /// It needs the network's mask.
    #[error(
        "`ip broadcast` needs the network's mask, which is unknown: give the address, as `dst host 192.0.2.255`"
    )]
    Broadcast,
    /// libpcap does not compile it: its own words.
    #[error("{0}")]
    Syntax(String),
    /// It asks for what is not in the packet.
    #[error(
        "it tests data that is not in a packet (`inbound`, `outbound`, `ifindex`): choose by interface and `--direction`"
    )]
    Beside,
    /// Its program would not be sure to end.
    #[error(
        "it loops over headers (`protochain`), which eBPF does not support here: name the header"
    )]
    Loop,
    /// Its program is too long.
    #[error(
        "its program has {0} instructions, and {MOST} are the most: split it, or join addresses to networks"
    )]
    TooLong(usize),
    /// libpcap gives an instruction that the engine has not.
    #[error("libpcap gives the instruction {0}, which is none of classic BPF")]
    Unknown(Instruction),
}

/// A program that says which packets are wanted. It is known to end, and what it loads is in the packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter(Vec<Instruction>);

impl Filter {
    /// Compiles an expression for packets of a link; the empty one takes all. No name server is asked.
    ///
    /// # Errors
    /// When it is none, has names of hosts, or needs more than the packet.
    pub fn compile(text: &str, link: Link) -> Result<Self, FilterError> {
        compile(text, link).map_err(|why| FilterError { expression: text.to_owned(), why })
    }

    /// The program.
    pub fn instructions(&self) -> &[Instruction] {
        &self.0
    }

    /// Whether a packet is wanted, of which these bytes are captured and that had `length` bytes. One that
    /// ends before a byte that is asked for is not, whatever is beside it in the expression.
    pub fn matches(&self, packet: &[u8], length: u32) -> bool {
        let mut state = State::default();
        while let Some(instruction) = self.0.get(state.next) {
            if let Some(taken) = state.step(*instruction, packet, length) {
                return taken != 0;
            }
        }
        false
    }
}

fn compile(text: &str, link: Link) -> Result<Filter, Why> {
    words::check(text)?;
    let program = compiled(text, link).map_err(|error| match error {
        pcap::Error::PcapError(error) => Why::Syntax(error),
        other => Why::Syntax(other.to_string()),
    })?;
    let instructions = program.get_instructions();
    if instructions.len() > MOST {
        return Err(Why::TooLong(instructions.len()));
    }
    let instructions: Option<Vec<_>> = instructions.iter().map(Instruction::new).collect();
    let instructions =
        instructions.ok_or_else(|| Why::Syntax("its instructions cannot be read".to_owned()))?;
    check(&instructions)?;
    Ok(Filter(instructions))
}

/// What libpcap makes of it, optimized.
fn compiled(text: &str, link: Link) -> Result<pcap::BpfProgram, pcap::Error> {
    let link = match link {
        Link::Ethernet => Linktype::ETHERNET,
        Link::Ip => RAW,
    };
    Capture::dead(link)?.compile(text, true)
}
