//! The same bytes as Linux: a super-packet is written to one TAP, and the kernel, which bridges it to a
//! TAP whose offloads are switched off, has to cut it.

use crate::gso::{
    packets::{Made, noise},
    rules::split,
};
use datapath::tap::{HEADER, LONGEST, Tap};
use lab::gso::{Checksums, finish_checksum};
use std::{
    io::{IoSlice, IoSliceMut},
    time::Duration,
};
use testbed::{Namespace, wait_until};

/// Two TAPs and a bridge between them, in a namespace of their own.
struct Bridge {
    _namespace: Namespace,
    whole: Tap,
    cut: Tap,
}

impl Bridge {
    fn build() -> Self {
        let namespace = Namespace::new("gso").expect("a namespace");
        // Nothing of the kernel's own on the TAPs.
        namespace.sysctl(&[("ipv6.conf.default.disable_ipv6", "1")]).expect("settings");
        let open = |name: &str| namespace.enter(|| Tap::open(name)).expect("a TAP");
        let (whole, cut) = (open("whole"), open("cut"));
        for line in [
            "ip link add between type bridge mcast_snooping 0 stp_state 0",
            "ip link set whole master between mtu 65521",
            "ip link set cut master between mtu 65521",
            "ip link set between up",
            "ip link set whole up",
            "ip link set cut up",
            "ethtool -K cut gso off tso off sg off tx off tx-udp-segmentation off",
        ] {
            namespace.check(&line.split(' ').collect::<Vec<_>>()).expect(line);
        }
        Self { _namespace: namespace, whole, cut }
    }

    /// What the kernel makes of a frame.
    fn through(&self, frame: &[u8], count: usize) -> Vec<Vec<u8>> {
        self.whole.send(&[IoSlice::new(frame)]).expect("the kernel takes it");
        let mut got = Vec::new();
        let mut buffer = vec![0; LONGEST];
        wait_until("all segments", Duration::from_secs(5), || {
            while let Some(length) =
                self.cut.receive(&mut [IoSliceMut::new(&mut buffer)]).expect("a read")
            {
                got.push(buffer[..length].to_vec());
            }
            got.len() >= count
        })
        .unwrap_or_else(|error| panic!("{} of {count}: {error}", got.len()));
        got
    }
}

fn cases() -> Vec<Made> {
    let mut cases = Vec::new();
    for (v4, tcp) in [(true, true), (false, true), (true, false), (false, false)] {
        for (i, (size, length)) in [
            (1_448, 40_000),
            (1_448, 1_448 * 20),
            (1_200, 1_201),
            (1, 60),
            (999, 10_001),
            (8_948, 60_000),
        ]
        .into_iter()
        .enumerate()
        {
            cases.push(Made {
                v4,
                tcp,
                options: if tcp { 4 * i } else { 0 },
                flags: [0x10, 0x18, 0x19, 0x90, 0xd9, 0x50][i],
                id: [0, 0xfffe, 7, 0x7fff, 0xffff, 1][i],
                number: [0, u32::MAX, 12_345, 1 << 31, u32::MAX - 3_000, 77][i],
                size,
                payload: noise(i as u64 + 1, length),
            });
        }
    }
    cases
}

#[test]
fn segments_are_the_bytes_that_linux_makes() {
    let bridge = Bridge::build();
    for made in cases() {
        let frame = made.frame();
        let ours = split(&frame, 2_048.min(frame.len()), 2_048, Checksums::Finished);
        let theirs = bridge.through(&frame, ours.len());
        let shape = (made.v4, made.tcp, made.size, made.payload.len());
        assert_eq!(ours.len(), theirs.len(), "{shape:?}");
        for (index, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            // The virtio header differs: Linux says there that it knows the checksum to be right.
            assert!(ours[HEADER..] == theirs[HEADER..], "{shape:?}, segment {index}");
        }
    }
}

#[test]
fn checksums_are_filled_in_as_linux_does() {
    let bridge = Bridge::build();
    for made in cases().into_iter().filter(|made| made.payload.len() > 1_201) {
        for mut segment in split(&made.frame(), 70_000, 70_000, Checksums::Left).into_iter().take(2)
        {
            let theirs = bridge.through(&segment, 1).remove(0);
            assert_eq!(finish_checksum([&mut segment, &mut []]), Ok(true));
            let shape = (made.v4, made.tcp, made.size, made.payload.len());
            assert!(segment[HEADER..] == theirs[HEADER..], "{shape:?}");
        }
    }
}
