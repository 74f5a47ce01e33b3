//! What the program in the driver answers is what `Server::answer` answers, on random requests, right
//! ones and damaged ones; and what it must answer it does.

use super::{network, policy, tables};
use datapath::oracle::{OracleProgram, Settings, Verdict, lacks};
use ipnet::IpNet;
use oracle::{
    proxidor::xdp::{self, Driver, Mode},
    proxidor::{self, Outcome, Rcode, Server},
    tables::{Policy, Tables},
};
use splitmix::Random;
use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use topo::{Change, ExternalPath, Feed};

const REQUESTS: usize = 20_000;
const SERVICE: SocketAddrV4 = SocketAddrV4::new(std::net::Ipv4Addr::new(192, 0, 2, 1), 8899);

/// A frame with this datagram, without a UDP checksum.
fn frame(from: SocketAddrV4, datagram: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let mut head = vec![0x45, 0];
    head.extend((28 + datagram.len() as u16).to_be_bytes());
    head.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    head.extend(from.ip().octets());
    head.extend(SERVICE.ip().octets());
    let sum = wire::checksum::checksum(&head).to_be_bytes();
    head[10..12].copy_from_slice(&sum);
    frame.extend(head);
    frame.extend(from.port().to_be_bytes());
    frame.extend(SERVICE.port().to_be_bytes());
    frame.extend((8 + datagram.len() as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(datagram);
    frame
}

/// An address that a prefix of the network covers, or any.
fn address(random: &mut Random, known: &[IpNet]) -> [u8; 4] {
    let any = random.bits() as u32;
    let covered = match random.pick(known) {
        Some(IpNet::V4(prefix)) if random.below(8) != 0 => {
            u32::from(prefix.network()) | any & u32::from(prefix.hostmask())
        }
        _ => any,
    };
    covered.to_be_bytes()
}

fn request(random: &mut Random, known: &[IpNet]) -> Vec<u8> {
    let count = match random.below(4) {
        0 => 1 + random.below(363) as usize,
        _ => 1 + random.below(24) as usize,
    };
    let mut request = (random.bits() as u32 & 0xff).to_be_bytes().to_vec();
    request[1] = *random.pick(&[0, 0, 1, 2]).unwrap();
    request.extend((random.bits() as u32).to_be_bytes());
    request.extend((random.bits() as u16).to_be_bytes());
    request.extend([0, 0, 1, 0]);
    request.extend((4 + 4 * count as u16).to_be_bytes());
    request.extend((0..count).flat_map(|_| address(random, known)));
    request
}

/// Runs requests through both. Gives how many the driver answered.
fn compare(
    program: &OracleProgram,
    tables: &Tables,
    random: &mut Random,
    requests: usize,
) -> usize {
    let known: Vec<_> = tables.view.table.iter().map(|(prefix, _)| prefix).collect();
    let settings = proxidor::Settings { ttl: 90, ..proxidor::Settings::default() };
    let mut server = Server::new(Arc::new(settings));
    let (mut answered, mut expected) = (0, Vec::new());
    for number in 0..requests {
        let from = loop {
            let ip = address(random, &known);
            if !matches!(ip[0], 0 | 127 | 224..) {
                break SocketAddrV4::new(ip.into(), 1 + random.below(65_535) as u16);
            }
        };
        let mut datagram = request(random, &known);
        let damaged = number % 2 == 1;
        if damaged {
            let at = random.below(datagram.len().min(18) as u64) as usize;
            let any = random.bits() as u8;
            datagram[at] = *random.pick(&[0, 1, 2, 0x10, 0x80, any]).unwrap();
            if random.below(4) == 0 {
                datagram.truncate(random.below(datagram.len() as u64) as usize);
            }
        }
        let outcome = server.answer(&datagram, SocketAddr::V4(from), Some(tables), &mut expected);
        let (verdict, out) = program.run(&frame(from, &datagram)).unwrap();
        match verdict {
            Verdict::Tx => {
                assert_eq!(outcome, Outcome::Reply(Rcode::NO_ERROR), "{datagram:02x?}");
                assert_eq!(out[42..], expected, "from {from}: {datagram:02x?}");
                answered += 1;
            }
            verdict => {
                assert_eq!(verdict, Verdict::Pass);
                assert!(damaged, "not answered from {from}: {datagram:02x?}");
            }
        }
    }
    answered
}

/// None where the kernel cannot run the program; then [`Driver`] leaves everything to the sockets.
fn program() -> Option<OracleProgram> {
    testbed::need_root();
    if let Some(lacks) = lacks() {
        sockets_alone(lacks);
        return None;
    }
    let program = OracleProgram::load().unwrap();
    let ttl = std::time::Duration::from_secs(90);
    let settings = Settings { services: vec![SERVICE], ttl, ..Settings::default() };
    program.configure(&settings).unwrap();
    Some(program)
}

fn sockets_alone(lacks: &str) {
    let driver = Driver::open().unwrap();
    driver.attach("lo", Mode::Auto).unwrap();
    let (mut builder, _) = network();
    driver.publish(&tables(&mut builder, policy(), None));
    let status = driver.status();
    assert_eq!(status.lacks, Some(lacks));
    assert_eq!((status.published, status.refused), (None, None));
    let [lo] = &status.interfaces[..] else { panic!("{status:?}") };
    assert_eq!((lo.mode, &lo.why), (None, &Some(format!("this kernel has no {lacks}"))));
    for mode in [Mode::Native, Mode::Generic] {
        let error = driver.attach("lo", mode).unwrap_err().to_string();
        assert!(error.starts_with("interface \"lo\": this kernel has no "), "{error}");
    }
}

#[test]
fn the_driver_answers_as_the_sockets_do() {
    let Some(program) = program() else { return };
    let (mut builder, exits) = network();
    let mut random = Random::new(1);
    let mut now = tables(&mut builder, policy(), None);
    let published = xdp::publish(&program, &now).unwrap();
    assert_eq!((published.wide_rows, published.skipped_rows), (0, 0));
    assert!(published.blocks > 0 && published.rows > 2);
    let answered = compare(&program, &now, &mut random, REQUESTS);
    assert!(answered > REQUESTS / 2 && answered < REQUESTS * 3 / 4, "{answered}");

    // A default router ranks for sources that the network does not know; routes come and go.
    for round in 0..5 {
        for number in 0..50 {
            let address = [60 + number, round, 0, 0];
            let prefix = ipnet::Ipv4Net::new(address.into(), 16).unwrap();
            let path = ExternalPath { as_distance: 1 + u16::from(round), as_number: 7 };
            let exit = *random.pick(&exits).unwrap();
            builder
                .apply(Feed::OPERATOR, Change::Route { prefix: prefix.into(), exit, path })
                .unwrap();
        }
        let default_router = (round % 2 == 1).then(|| exits[usize::from(round) % exits.len()]);
        let policy = Policy { default_router, ..policy() };
        let next = tables(&mut builder, policy, Some(&now));
        xdp::publish(&program, &next).unwrap();
        compare(&program, &next, &mut random, 1000);
        now = next;
    }
}

/// Without any network all candidates are unknown and the list comes back as it is.
#[test]
fn an_empty_network_keeps_the_order() {
    let Some(program) = program() else { return };
    let mut builder = topo::Builder::new(topo::Options::default());
    let now = tables(&mut builder, policy(), None);
    xdp::publish(&program, &now).unwrap();
    let server = &mut Server::new(Arc::new(proxidor::Settings::default()));
    let request = {
        let mut bytes = vec![0; 10];
        bytes.extend([0, 0, 1, 0, 0, 12, 9, 9, 9, 9, 8, 8, 8, 8]);
        bytes
    };
    let from = SocketAddrV4::new([192, 0, 2, 7].into(), 4000);
    let mut expected = Vec::new();
    server.answer(&request, from.into(), Some(&now), &mut expected);
    let (verdict, out) = program.run(&frame(from, &request)).unwrap();
    assert_eq!(verdict, Verdict::Tx);
    assert_eq!(out[58..], request[16..]);
    assert_eq!(out[58..], expected[16..]);
}

/// A row with more different costs than the driver sorts by is the sockets', and counted.
#[test]
fn a_row_with_too_many_places_is_left_to_the_sockets() {
    let Some(program) = program() else { return };
    let (mut builder, exits) = network();
    for number in 0..3000_u32 {
        let address = (u32::from_be_bytes([60, 0, 0, 0]) + (number << 8)).to_be_bytes();
        let prefix = ipnet::Ipv4Net::new(address.into(), 24).unwrap();
        let path = ExternalPath { as_distance: number as u16, as_number: 0 };
        let change = Change::Route { prefix: prefix.into(), exit: exits[0], path };
        builder.apply(Feed::OPERATOR, change).unwrap();
    }
    let now = tables(&mut builder, policy(), None);
    let published = xdp::publish(&program, &now).unwrap();
    assert!(published.wide_rows > 0);
    let from = SocketAddrV4::new([60, 0, 0, 7].into(), 4000);
    assert!(now.row(0, now.source(IpAddr::V4(*from.ip()))).distinct() > 1023);
    let request = [&[0; 10][..], &[0, 0, 1, 0, 0, 8, 9, 9, 9, 9]].concat();
    assert_eq!(program.run(&frame(from, &request)).unwrap().0, Verdict::Pass);
    assert_eq!(program.ledger().unwrap().passed_table, 1);
}
