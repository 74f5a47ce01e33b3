//! Network maps of random tables against the naive method.

use crate::alto_rfc7285::support::{Setup, net, network, router};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use rand::{Rng, RngExt, SeedableRng, rngs::StdRng};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    net::IpAddr,
};
use topo::{Change, ExternalPath, Feed, Options};

/// A prefix that is likely to lie in or around others: few bits are set, at few positions.
fn prefix(random: &mut impl Rng) -> IpNet {
    if random.random() {
        let bits = random.random::<u32>() & 0xc0c0_c0c0;
        Ipv4Net::new_assert(bits.into(), random.random_range(0..=32)).trunc().into()
    } else {
        let bits = random.random::<u128>() & 0xc0c0_c0c0_0000_0000_0000_0000_0000_0001;
        Ipv6Net::new_assert(bits.into(), random.random_range(0..=128)).trunc().into()
    }
}

/// 11.2.2: whatever the table, a map is complete, does not overlap, and longest match in it gives the
/// PID of the address's group; two addresses share a PID just if nothing distinguishes them.
#[test]
fn s11_2_2_maps_of_random_tables() {
    let setup = Setup::default();
    for seed in 0..60 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut builder = network(Options::default());
        let mut prefixes = vec![net("0.0.0.0/0"), net("::/0"), net("10.0.0.0/8")];
        for _ in 0..random.random_range(0..120) {
            let prefix = prefix(&mut random);
            let change = if random.random() {
                let at = ["r1", "r2", "r3"][random.random_range(0..3)];
                Change::Internal { prefix, router: router(at) }
            } else {
                let exit = router(["p1", "p2", "t1"][random.random_range(0..3)]);
                let as_distance = random.random_range(1..4);
                Change::Route { prefix, exit, path: ExternalPath { as_distance, as_number: 1 } }
            };
            builder.apply(Feed::CONFIGURATION, change).expect("it is taken");
            prefixes.push(prefix);
        }
        let ground = setup.of(&mut builder, setup.policy());
        let map = ground.maps.network_map("groups").expect("a map");
        let listed: BTreeMap<IpNet, &str> = map.prefixes().collect();
        assert_eq!(listed.len(), map.prefixes().count(), "a prefix is in two PIDs");
        assert!(listed.contains_key(&net("0.0.0.0/0")) && listed.contains_key(&net("::/0")));
        let named: HashSet<&str> = listed.values().copied().collect();
        assert_eq!(named, map.pids().collect(), "every PID has a prefix");
        // What goes out is what is there.
        let json = ground.get("/networkmap/groups");
        let sent: usize = json["network-map"]
            .as_object()
            .expect("an object")
            .values()
            .flat_map(|kinds| kinds.as_object().expect("an object").values())
            .map(|list| list.as_array().expect("an array").len())
            .sum();
        assert_eq!(sent, listed.len());
        let mut pid_of_group = HashMap::new();
        for prefix in &prefixes {
            for address in [prefix.network(), prefix.broadcast()] {
                let around = listed.iter().filter(|(prefix, _)| prefix.contains(&address));
                let longest = around.max_by_key(|(prefix, _)| prefix.prefix_len());
                let pid = map.pid_of(address);
                assert_eq!(longest.map(|(_, pid)| *pid), Some(pid), "seed {seed}: {address}");
                let group = ground.tables.view.group(address);
                assert_eq!(*pid_of_group.entry(group).or_insert(pid), pid, "seed {seed}");
            }
        }
        let distinct: HashSet<&str> = pid_of_group.values().copied().collect();
        assert_eq!(distinct.len(), pid_of_group.len(), "two groups in one PID");
        let address = IpAddr::from([10, 0, 0, 1]);
        assert_eq!(map.pid_of(address), map.pid_of_prefix(address.into()));
    }
}
