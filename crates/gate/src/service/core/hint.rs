//! The name that another flow has announced, until a flow's content says what it is.

use classify::{
    flow::Side,
    label::{Certainty, Classification, Label},
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
            Some(Classification::Known(label)) if label.certainty == Certainty::Certain => {
                Finding::Other(Some(label))
            }
            // One side sends a file; what is known of the hosts says nothing of it.
            Some(_) if !self.both_talk => Finding::Confirmed,
            Some(Classification::Known(label)) => Finding::Other(Some(label)),
            Some(Classification::Unknown) => Finding::Other(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use classify::label::{Category, Engine};

    #[test]
    fn what_is_known_of_the_hosts_alone_takes_no_name_away() {
        let label = |application: &'static str, certainty| Label {
            application: application.into(),
            detail: None,
            category: Category::Other,
            certainty,
            engine: Engine::Host,
            reason: "a test".into(),
        };
        let named = label("ftp-data", Certainty::Likely);
        let known = |certainty| Some(Classification::Known(label("bittorrent", certainty)));
        let packet = |from| Packet { at_ns: 0, from, tcp: None, payload: b"content", length: 7 };
        let [server, client] = [Side::Server, Side::Client].map(packet);
        for (packets, outcome, is_other) in [
            (&[server][..], known(Certainty::Certain), true),
            (&[server], known(Certainty::Likely), false),
            (&[server, client], known(Certainty::Likely), true),
        ] {
            let mut hint = Hint::new(true);
            for packet in packets {
                assert_eq!(hint.look(&named, packet, None), Finding::Open);
            }
            let finding = hint.look(&named, &server, outcome);
            assert_eq!(matches!(finding, Finding::Other(Some(_))), is_other, "{finding:?}");
            assert_eq!(finding == Finding::Confirmed, !is_other);
        }
    }
}
