//! Real sockets over a veth, natively and generically, with checksums finished and unfinished.

use super::frame::packet;
use super::{LIMIT, SSID};
use datapath::stamp::{AttachMode, StampProgram};
use std::net::UdpSocket;
use std::time::Duration;
use testbed::Receiver;

#[test]
fn a_sender_over_a_link_is_answered_in_either_mode_and_family() {
    for offloads in [true, false] {
        let program = StampProgram::load(0x8001).unwrap();
        let pair = if offloads { testbed::pair() } else { testbed::pair_without_offloads() };
        let (site, asker) = pair.unwrap();
        let _receiver = Receiver::new(&asker, "eth0").unwrap();
        let index = site.enter(|| nix::net::if_::if_nametoindex("eth0")).unwrap();
        let pairs = [("192.0.2.2", "192.0.2.1:862"), ("2001:db8::2", "[2001:db8::1]:862")];
        for (sender, service) in pairs {
            program.serve(service.parse().unwrap()).unwrap();
            program.admit(sender.parse().unwrap(), SSID, LIMIT).unwrap();
        }
        let mut reflected = 0;
        for mode in [AttachMode::Native, AttachMode::Generic] {
            let _attachment = site.enter(|| program.attach(index, mode)).unwrap();
            for (sender, service) in pairs {
                asker.enter(|| {
                    let address = sender.parse::<std::net::IpAddr>().unwrap();
                    let socket = UdpSocket::bind((address, 0)).unwrap();
                    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
                    socket.connect(service).unwrap();
                    for length in [0, 1, 2, 3, 100, 1000] {
                        let test =
                            packet(reflected, u64::from(reflected) + 1, SSID, &vec![9; length]);
                        socket.send(&test).unwrap();
                        let mut reply = [0; 2000];
                        let many = socket.recv(&mut reply).expect("a reply");
                        assert_eq!(many, test.len(), "{mode} {service}");
                        assert_eq!(reply[24..38], test[..14]);
                        reflected += 1;
                    }
                });
            }
            assert_eq!(program.ledger().unwrap().reflected, u64::from(reflected), "{mode}");
        }
    }
}
