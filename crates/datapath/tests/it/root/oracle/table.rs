//! A table of packets: each rule of the plain request alone, and sizes.

use super::frame::{Check, Frame};
use super::model::{self, Outcome};
use super::network::{Network, net};
use datapath::oracle::{Ledger, MetricRows, UNKNOWN, Verdict};
use std::borrow::Cow;

/// 10.0.n.0/24 is in group n, whose rank is 9 - n; everything else is unknown. The unknown peer is in
/// group 1; sources in group 2 have no row.
fn network() -> Network {
    let mut routes: Vec<_> = (1..10).map(|n| (net([10, 0, n as u8, 0], 24), n)).collect();
    routes.push((net([10, 0, 9, 128], 25), 1));
    routes.push((net([192, 0, 2, 0], 24), 1));
    routes.push((net([192, 0, 3, 0], 24), 2));
    let row: Vec<u16> = (0..10).map(|n| if n == 0 { UNKNOWN } else { 9 - n }).collect();
    let mut row_of = vec![Some(0); 10];
    row_of[2] = None;
    let metric = MetricRows { rows: vec![Cow::Owned(row)], row_of };
    Network::new(routes, 10, vec![metric.clone(), metric])
}

const LIST: [[u8; 4]; 6] =
    [[8, 8, 8, 8], [10, 0, 1, 1], [10, 0, 9, 1], [9, 9, 9, 9], [10, 0, 9, 129], [10, 0, 9, 1]];

#[test]
fn best_first_ties_as_they_came_unknown_last() {
    let Some(program) = super::program(&super::settings(), &network()) else { return };
    let (verdict, out) = program.run(&Frame::request(&LIST).bytes()).unwrap();
    assert_eq!(verdict, Verdict::Tx);
    let ranked = [LIST[2], LIST[5], LIST[1], LIST[4], LIST[0], LIST[3]];
    assert_eq!(out[58..], *ranked.as_flattened());
    assert_eq!(out[42..58], [0, 3, 0x80, 0, 0xde, 0xad, 0xbe, 0xef, 0, 90, 0, 0, 1, 0, 0, 28]);
}

#[test]
fn every_size_is_answered() {
    let (settings, network) = (super::settings(), network());
    let Some(program) = super::program(&settings, &network) else { return };
    for count in 1..=363_usize {
        let list: Vec<_> = (0..count).map(|i| [10, 0, (i * 7 % 12) as u8, i as u8]).collect();
        let frame = Frame::request(&list).bytes();
        let Outcome::Answered(reply) = model::judge(&settings, Some(&network), &frame) else {
            panic!("{count} candidates are a plain request");
        };
        assert_eq!(program.run(&frame).unwrap(), (Verdict::Tx, reply), "{count}");
    }
    for count in [0, 364, 365] {
        let frame = Frame::request(&vec![[10, 0, 1, 1]; count]).bytes();
        assert_eq!(program.run(&frame).unwrap(), (Verdict::Pass, frame), "{count}");
    }
    let ledger = program.ledger().unwrap();
    assert_eq!((ledger.answered, ledger.passed_length), (363, 3));
}

/// One change to a plain request, and what is to come of it.
type Row = (&'static str, fn(&mut Frame), fn(&Outcome) -> bool);

#[test]
fn each_rule_alone() {
    let answered = |outcome: &Outcome| matches!(outcome, Outcome::Answered(_));
    let rows: &[Row] = &[
        ("plain", |_| (), answered),
        ("one tag", |f| f.link.tags = vec![(0x8100, 5)], answered),
        ("two tags", |f| f.link.tags = vec![(0x88a8, 5), (0x8100, 6)], answered),
        ("three tags", |f| f.link.tags = vec![(0x8100, 5); 3], |o| *o == Outcome::Other),
        ("padding behind it", |f| f.link.padding = vec![7; 9], answered),
        ("congestion experienced", |f| f.tos = 3, answered),
        ("no UDP checksum", |f| f.check = Check::None, answered),
        ("a wrong UDP checksum", |f| f.check = Check::Flipped(0x0100), answered),
        ("an unfinished one", |f| f.check = Check::Partial, |o| *o == Outcome::Sum),
        ("a wrong header checksum", |f| f.spoil_ip = 1, |o| *o == Outcome::Sum),
        ("Zero, Rcode", |f| f.payload[3] = 0xff, answered),
        ("the request's TTL", |f| f.payload[8..10].fill(0xff), answered),
        ("the default metric by name", |f| f.payload[1] = 1, answered),
        ("the second metric", |f| f.payload[1] = 2, answered),
        ("two metrics", |f| f.payload[1] = 3, |o| *o == Outcome::Table),
        ("a metric that is not there", |f| f.payload[0] = 8, |o| *o == Outcome::Table),
        ("a source without a row", |f| f.source = [192, 0, 3, 1], |o| *o == Outcome::Table),
        ("version 1", |f| f.payload[0] = 0x10, |o| *o == Outcome::Form),
        ("a reply", |f| f.payload[2] = 0x80, |o| *o == Outcome::Form),
        ("opcode 1", |f| f.payload[2] = 0x08, |o| *o == Outcome::Form),
        ("authentication", |f| f.payload[2] = 4, |o| *o == Outcome::Form),
        ("an IPv4 source", |f| f.payload[2] = 2, |o| *o == Outcome::Form),
        ("an IPv6 source", |f| f.payload[2] = 1, |o| *o == Outcome::Form),
        ("another category", |f| f.payload[10] = 1, |o| *o == Outcome::Form),
        ("an authentication type", |f| f.payload[11] = 1, |o| *o == Outcome::Form),
        ("IPv6 candidates", |f| f.payload[12] = 2, |o| *o == Outcome::Form),
        ("another TLV to follow", |f| f.payload[13] = 0x80, |o| *o == Outcome::Form),
        ("an attribute", |f| f.payload[13] = 0x20, |o| *o == Outcome::Form),
        ("a size too small", |f| f.payload[15] -= 4, |o| *o == Outcome::Length),
        ("bytes behind the TLV", |f| f.payload.push(0), |o| *o == Outcome::Length),
        ("UDP longer than IP", |f| f.udp_lie = 4, |o| *o == Outcome::Length),
        ("UDP shorter than IP", |f| f.udp_lie = -4, |o| *o == Outcome::Length),
        ("IP longer than the frame", |f| (f.ip_lie, f.udp_lie) = (4, 4), |o| *o == Outcome::Length),
        ("nothing behind UDP", |f| f.payload.clear(), |o| *o == Outcome::Length),
        ("a first fragment", |f| f.fragment = 0x2000, |o| *o == Outcome::Other),
        ("a later fragment", |f| f.fragment = 1, |o| *o == Outcome::Other),
        ("IP options", |f| f.options = vec![1; 4], |o| *o == Outcome::Other),
        ("TCP", |f| f.protocol = 6, |o| *o == Outcome::Other),
        ("another address", |f| f.target = [50, 50, 50, 49], |o| *o == Outcome::Other),
        ("another port", |f| f.to_port = 8898, |o| *o == Outcome::Other),
        ("the other service", |f| (f.target, f.to_port) = ([50, 50, 50, 51], 9000), answered),
        ("to a group of stations", |f| f.link.to[0] |= 1, |o| *o == Outcome::Sender),
        ("from a group of stations", |f| f.link.from[0] |= 1, |o| *o == Outcome::Sender),
        ("from port 0", |f| f.from_port = 0, |o| *o == Outcome::Sender),
        ("from multicast", |f| f.source = [224, 0, 0, 1], |o| *o == Outcome::Sender),
        (
            "from itself",
            |f| (f.source, f.from_port) = (super::SERVICE, super::PORT),
            |o| *o == Outcome::Sender,
        ),
    ];
    let (settings, network) = (super::settings(), network());
    let Some(program) = super::program(&settings, &network) else { return };
    let mut expected = Ledger::default();
    for (name, change, right) in rows {
        let mut frame = Frame::request(&LIST);
        change(&mut frame);
        let bytes = frame.bytes();
        let outcome = model::judge(&settings, Some(&network), &bytes);
        assert!(right(&outcome), "{name}: {outcome:?}");
        let (verdict, out) = program.run(&bytes).unwrap();
        assert_eq!(verdict, outcome.verdict(), "{name}");
        match &outcome {
            Outcome::Answered(reply) => assert_eq!(&out, reply, "{name}"),
            _ => assert_eq!(out, bytes, "{name}"),
        }
        outcome.count(&mut expected);
        assert_eq!(program.ledger().unwrap(), expected, "{name}");
    }
}
