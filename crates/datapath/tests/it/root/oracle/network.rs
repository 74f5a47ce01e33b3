//! Tables to rank by, made at random, and a plain reading of them.

use crate::root::common::Random;
use datapath::oracle::{MetricRows, OracleProgram, PublishError, Published, UNKNOWN};
use ipnet::Ipv4Net;
use std::borrow::Cow;
use std::collections::HashMap;

/// Prefixes with their groups, and two metrics.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) routes: Vec<(Ipv4Net, u16)>,
    pub(crate) groups: usize,
    pub(crate) metrics: Vec<MetricRows<'static>>,
    /// The routes once more; of equal prefixes the last.
    exact: HashMap<Ipv4Net, u16>,
}

impl Network {
    /// Some hundred groups behind prefixes of all lengths; rows with up to `places` places, and some
    /// sources without a row.
    pub(crate) fn random(random: &mut Random, places: usize) -> Self {
        let groups = 400;
        let group = |random: &mut Random| random.below(groups) as u16;
        let mut routes = vec![(net([192, 0, 2, 0], 24), 1)];
        for _ in 0..3000 {
            let address = random.next() as u32;
            let length = random.pick(&[8, 12, 16, 16, 20, 22, 24, 24, 24, 25, 28, 30, 32]);
            routes.push((net(address.to_be_bytes(), length), group(random)));
        }
        // A crowded corner, where prefixes cover each other.
        for _ in 0..1000 {
            let address = 0x0a01_0000 | random.next() as u32 & 0xffff;
            let length = 16 + random.below(17) as u8;
            routes.push((net(address.to_be_bytes(), length), group(random)));
        }
        routes.sort_by_key(|(prefix, _)| (prefix.network(), prefix.prefix_len()));
        let metrics = [4, 1].map(|rows| {
            let rows = (0..rows)
                .map(|_| {
                    let places = 1 + random.below(places);
                    let mut row: Vec<u16> = (0..groups)
                        .map(|_| match random.below(20) {
                            0 => UNKNOWN,
                            _ => random.below(places) as u16,
                        })
                        .collect();
                    row[0] = UNKNOWN;
                    close(&mut row);
                    Cow::Owned(row)
                })
                .collect::<Vec<_>>();
            let row_of = (0..groups)
                .map(|group| {
                    let row = random.below(rows.len()) as u32;
                    (group == 1 || random.below(10) != 0).then_some(row)
                })
                .collect();
            MetricRows { rows, row_of }
        });
        Self::new(routes, groups, metrics.into())
    }

    /// Routes in order, and metrics.
    pub(crate) fn new(
        routes: Vec<(Ipv4Net, u16)>,
        groups: usize,
        metrics: Vec<MetricRows<'static>>,
    ) -> Self {
        let exact = routes.iter().copied().collect();
        Self { routes, groups, metrics, exact }
    }

    /// Puts it in force.
    pub(crate) fn publish(&self, program: &OracleProgram) -> Result<Published, PublishError> {
        let routes = self.routes.iter().copied();
        program.publish(routes, self.groups, &self.metrics)
    }

    /// The group of an address: the longest prefix that is there counts.
    pub(crate) fn group(&self, address: [u8; 4]) -> usize {
        let found = (0..=32).rev().find_map(|length| self.exact.get(&net(address, length)));
        found.map_or(0, |group| usize::from(*group))
    }

    /// The candidates, best first, for a source and metric; `None` without a row.
    pub(crate) fn rank(
        &self,
        metric: usize,
        source: [u8; 4],
        candidates: &[[u8; 4]],
    ) -> Option<Vec<[u8; 4]>> {
        let metric = self.metrics.get(metric)?;
        let row = &metric.rows[metric.row_of[self.group(source)]? as usize];
        let mut ranked: Vec<_> =
            candidates.iter().map(|candidate| (row[self.group(*candidate)], *candidate)).collect();
        ranked.sort_by_key(|(place, _)| *place); // stable
        Some(ranked.into_iter().map(|(_, candidate)| candidate).collect())
    }
}

/// Takes the gaps out of a row's places.
pub(crate) fn close(row: &mut [u16]) {
    let mut used: Vec<u16> = row.iter().copied().filter(|place| *place != UNKNOWN).collect();
    used.sort_unstable();
    used.dedup();
    for place in row.iter_mut().filter(|place| **place != UNKNOWN) {
        *place = used.binary_search(place).unwrap() as u16;
    }
}

pub(crate) fn net(address: [u8; 4], length: u8) -> Ipv4Net {
    Ipv4Net::new(address.into(), length).unwrap().trunc()
}
