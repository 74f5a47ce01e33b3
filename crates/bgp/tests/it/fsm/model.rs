//! Random steps: a neighbour in memory ends up with exactly the routes that it was to have.

use super::*;
use netgauze_bgp_pkt::{
    BgpMessage,
    path_attribute::{MpReach, MpUnreach, PathAttributeValue},
    wire::deserializer::BgpParsingContext,
};
use netgauze_parse_utils::{reader::SliceReader, traits::ParseFromWithOneInput};
use proptest::prelude::*;

/// What a neighbour knows that decodes messages with netgauze: prefix to communities.
#[derive(Default)]
struct Neighbour {
    known: BTreeMap<IpNet, Vec<u32>>,
    ends: u32,
}

impl Neighbour {
    fn take(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (_, body) = split(rest).unwrap().unwrap();
            let (whole, behind) = rest.split_at(HEADER + body.len());
            rest = behind;
            let mut context = BgpParsingContext::default();
            let decoded = BgpMessage::parse(&mut SliceReader::new(whole), &mut context).unwrap();
            let BgpMessage::Update(update) = decoded else { continue };
            self.ends += u32::from(update.end_of_rib().is_some());
            for route in update.withdraw_routes() {
                self.known.remove(&route.network().address().into());
            }
            let values = || update.path_attributes().iter().map(|attribute| attribute.value());
            let communities = values().find_map(|value| match value {
                PathAttributeValue::Communities(list) => {
                    Some(list.communities().iter().map(|community| community.value()).collect())
                }
                _ => None,
            });
            let communities: Vec<u32> = communities.unwrap_or_default();
            for route in update.nlri() {
                self.known.insert(route.network().address().into(), communities.clone());
            }
            for value in values() {
                match value {
                    PathAttributeValue::MpReach(MpReach::Ipv6Unicast { nlri, .. }) => {
                        for route in nlri {
                            let prefix = route.network().address().into();
                            self.known.insert(prefix, communities.clone());
                        }
                    }
                    PathAttributeValue::MpUnreach(MpUnreach::Ipv6Unicast { nlri }) => {
                        for route in nlri {
                            self.known.remove(&route.network().address().into());
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}

/// A step in the life of a session.
#[derive(Clone, Debug)]
enum Step {
    /// These routes are wanted, each with one community.
    Want(Vec<(u8, bool, u8)>),
    /// The neighbour reads what there is to read.
    Read,
    /// It asks for a family again.
    Refresh(bool),
    /// The connection breaks and another is opened.
    Break,
}

fn step() -> impl Strategy<Value = Step> {
    let route = (0u8..12, any::<bool>(), 0u8..3);
    prop_oneof![
        4 => prop::collection::vec(route, 0..16).prop_map(Step::Want),
        4 => Just(Step::Read),
        1 => any::<bool>().prop_map(Step::Refresh),
        1 => Just(Step::Break),
    ]
}

proptest! {
    /// Whatever is wanted, however often it changes and whenever the neighbour reads, in the end it has
    /// what is wanted, and after each new session an End-of-RIB for both families.
    #[test]
    fn the_neighbour_ends_up_with_what_is_wanted(steps in prop::collection::vec(step(), 0..40)) {
        let mut rig = Rig::new(config());
        let mut neighbour = Neighbour::default();
        let mut wanted = Routes::new();
        let establish = |rig: &mut Rig| {
            rig.event(Event::Connected(LOCAL));
            rig.sent();
            rig.receive(OPEN);
            rig.receive(KEEPALIVE);
            assert_eq!(rig.fsm.state(), State::Established);
        };
        let read = |rig: &mut Rig, neighbour: &mut Neighbour| {
            let mut out = Vec::new();
            rig.fsm.transmit(rig.now, &mut out);
            rig.event(Event::Written);
            neighbour.take(&out);
        };
        establish(&mut rig);
        for step in steps {
            match step {
                Step::Want(list) => {
                    wanted = list
                        .into_iter()
                        .map(|(number, six, community)| {
                            let prefix: IpNet = if six {
                                format!("2001:db8:{number:x}::/48").parse().unwrap()
                            } else {
                                format!("50.{number}.0.0/16").parse().unwrap()
                            };
                            let community = Community(community.into());
                            (prefix, Arc::new(Attributes::default().with(community)))
                        })
                        .collect();
                    rig.fsm.want(wanted.clone());
                }
                Step::Read => read(&mut rig, &mut neighbour),
                Step::Refresh(six) => rig.receive(&[5, 0, 1 + u8::from(six), 0, 1]),
                Step::Break => {
                    rig.event(Event::Closed("broken"));
                    prop_assert!(rig.fsm.advertised().is_empty());
                    neighbour = Neighbour::default();
                    rig.pass(Duration::from_secs(10));
                    while rig.fsm.effect().is_some() {}
                    establish(&mut rig);
                }
            }
        }
        read(&mut rig, &mut neighbour);
        let expected: BTreeMap<IpNet, Vec<u32>> = wanted
            .iter()
            .map(|(prefix, attributes)| (*prefix, vec![attributes.communities[0].0]))
            .collect();
        prop_assert_eq!(&neighbour.known, &expected);
        prop_assert_eq!(rig.fsm.advertised().keys().copied().collect::<Vec<_>>(), wanted.keys().copied().collect::<Vec<_>>());
        prop_assert!(rig.fsm.advertised().values().all(|entry| entry.written.is_some()));
        prop_assert!(neighbour.ends >= 2);
    }

    /// Two machines talk to each other, their bytes cut anywhere: both get there, neither learns.
    #[test]
    fn two_machines_agree_however_the_bytes_are_cut(cuts in prop::collection::vec(1usize..50, 1..30)) {
        let mut one = Rig::new(config());
        let swapped = Config { local_as: Asn(4), peer_as: Asn(12), ..config() };
        let mut other = Rig::new(swapped);
        one.fsm.want(routes(&["50.0.0.0/8", "2001:db8:50::/48"], &Attributes::default()));
        other.fsm.want(routes(&["10.0.0.0/8"], &Attributes::default()));
        one.event(Event::Connected(LOCAL));
        other.event(Event::Connected("172.16.0.29".parse().unwrap()));
        let mut cuts = cuts.iter().cycle();
        for _ in 0..4 {
            for (from, to) in [(true, false), (false, true)] {
                let (from, to) = if from && !to { (&mut one, &mut other) } else { (&mut other, &mut one) };
                let mut out = Vec::new();
                from.fsm.transmit(from.now, &mut out);
                from.event(Event::Written);
                let mut rest = &out[..];
                while !rest.is_empty() {
                    let (now, later) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                    to.event(Event::Received(now));
                    rest = later;
                }
            }
        }
        for rig in [&one, &other] {
            prop_assert_eq!(rig.fsm.state(), State::Established);
            prop_assert_eq!(rig.fsm.problem(), None);
        }
        prop_assert_eq!(one.fsm.advertised().len(), 2);
        prop_assert_eq!(other.fsm.advertised().len(), 1);
        // Announcements and End-of-RIB markers of the other side.
        prop_assert_eq!(one.fsm.counters().updates_discarded, 3);
        prop_assert_eq!(other.fsm.counters().updates_discarded, 4);
    }

    /// Nothing that a neighbour sends makes the machine panic or grow.
    #[test]
    fn any_bytes_are_survived(
        state in 0usize..3,
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..10),
    ) {
        let mut rig = Rig::in_state(CONNECTED[state]);
        for chunk in chunks {
            let mut bytes = message(&[2, 0, 0, 0, 0]);
            bytes.extend(chunk);
            rig.event(Event::Received(&bytes));
            prop_assert!(rig.sent().len() < 20);
        }
    }
}
