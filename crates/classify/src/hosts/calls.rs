//! The calls of a host in which both ends began with what looks random.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
};

/// Calls that are kept of each host.
pub(super) const KEPT: usize = 48;

/// A call between a host and a socket.
#[derive(Clone, Copy, Debug)]
struct Call {
    socket: SocketAddr,
    at_ns: u64,
    /// Whether its first messages had the lengths of an obfuscated handshake.
    shaped: bool,
}

/// The last calls of a host: a ring.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    calls: Vec<Call>,
    /// Where the ring is written next.
    turn: usize,
}

/// Calls of a host with first messages that look random, before the one that is asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Other hosts, in the lengths of an obfuscated handshake.
    pub others: usize,
    /// Other hosts, in other lengths.
    pub otherwise: usize,
    /// How often with the same socket.
    pub again: usize,
    /// All calls, with whomever and however often.
    pub all: usize,
    /// Those of them in the lengths of an obfuscated handshake.
    pub shaped: usize,
    /// Whether one with the same host was in other lengths.
    pub strange: bool,
}

impl History {
    /// Adds a call and says what was before it and after `since_ns`.
    pub(super) fn add(
        &mut self,
        socket: SocketAddr,
        shaped: bool,
        now_ns: u64,
        lifetime_ns: u64,
    ) -> Calls {
        let mut calls = Calls::default();
        let mut hosts: [BTreeSet<IpAddr>; 2] = Default::default();
        let recent = |call: &&Call| now_ns.saturating_sub(call.at_ns) <= lifetime_ns;
        for call in self.calls.iter().filter(recent) {
            calls.all += 1;
            calls.shaped += usize::from(call.shaped);
            calls.again += usize::from(call.socket == socket);
            if call.socket.ip() == socket.ip() {
                calls.strange |= !call.shaped;
            } else {
                hosts[usize::from(call.shaped)].insert(call.socket.ip());
            }
        }
        [calls.otherwise, calls.others] = hosts.map(|hosts| hosts.len());
        let call = Call { socket, at_ns: now_ns, shaped };
        if self.calls.len() < KEPT {
            self.calls.push(call);
        } else if let Some(oldest) = self.calls.get_mut(self.turn) {
            *oldest = call;
            self.turn = (self.turn + 1) % KEPT;
        }
        calls
    }
}
