//! The name that another flow has announced, until a flow's content says what it is.

use classify::{
    flow::Side,
    label::{Classification, Label},
    packet::Packet,
};

/// Bytes of one packet in which the receiver over DCC says how much it has: four for each acknowledgement.
const MAX_RECEIVED: u32 = 64;

/// What was seen of an announced flow.
#[derive(Debug)]
pub(in crate::service) struct Hint {
    /// Whether rules act on the name before its content has confirmed it.
    pub(super) at_once: bool,
    sender: Option<Side>,
    both_talk: bool,
}

/// What that says of its name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Finding {
    Open,
    Confirmed,
    /// It is something else, or nobody knows what.
    Other(Option<Label>),
}

impl Hint {
    pub(super) const fn new(at_once: bool) -> Self {
        Self { at_once, sender: None, both_talk: false }
    }

    /// A packet, and what it was found to be with this one.
    pub(super) fn look(
        &mut self,
        named: &Label,
        packet: &Packet<'_>,
        outcome: Option<Classification>,
    ) -> Finding {
        if packet.length > 0 {
            let sender = *self.sender.get_or_insert(packet.from);
            let tells = named.application == "dcc"
                && packet.length.is_multiple_of(4)
                && packet.length <= MAX_RECEIVED;
            self.both_talk |= packet.from != sender && !tells;
        }
        // nDPI writes `ftp_data`.
        let is_named = |label: &Label| label.application.replace('_', "-") == named.application;
        match outcome {
            None | Some(Classification::Pending) => Finding::Open,
            Some(Classification::Known(label)) if is_named(&label) => Finding::Confirmed,
            Some(Classification::Known(label)) => Finding::Other(Some(label)),
            // One side sends a file, and nothing else is like it.
            Some(Classification::Unknown) if !self.both_talk => Finding::Confirmed,
            Some(Classification::Unknown) => Finding::Other(None),
        }
    }
}
