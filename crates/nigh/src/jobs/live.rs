//! Reports what the station measures to the oracle as latency and loss of links.
//!
//! A feed of the oracle like others: its values take precedence over those of files, routers and operators,
//! and are withdrawn when no newer measurement comes. Small changes are not reported, so that a ranking does
//! not change with every packet.

use job::Service as _;
use oracle::{
    control::{Request, RouterName},
    feeds::FeedState,
    service::{Service, Updates},
};
use std::{collections::BTreeMap, fmt, future::pending, time::Instant};
use tokio::{sync::mpsc::Receiver, task::JoinHandle, time::sleep_until};
use topo::{Change, Feed, MeasuredLink, RouterId};
use tracing::warn;

/// The feed's name.
const FEED: &str = "stations";
/// A latency is reported again when it differs from the one in force by more than this share, and by more
/// than so many nanoseconds.
const LATENCY: (u64, u64) = (10, 100_000);
/// A loss is reported again when it differs by more than this, and by more than so many packets: one lost
/// packet of a few means little.
const LOSS: (f64, f64) = (0.01, 2.0);

/// Reports for as long as the station measures.
pub(super) fn join(mut links: Receiver<MeasuredLink>, oracle: Service) -> JoinHandle<()> {
    panics::spawn(async move {
        let updates = oracle.updates();
        let mut live = Live::default();
        loop {
            panics::point("oracle-stations");
            let end = live.end();
            let end = async {
                match end {
                    Some(end) => sleep_until(end.into()).await,
                    None => pending().await,
                }
            };
            let changes = tokio::select! {
                link = links.recv() => {
                    let Some(link) = link else { return };
                    let ends = (link.from, link.to);
                    if !live.knows(ends) && !is_there(&oracle, ends).await {
                        let link = Ends(ends);
                        warn!(%link, "measured, but the oracle has no such link yet");
                    }
                    live.take(&link, Instant::now())
                }
                () = end => {
                    let (changes, gone) = live.expire(Instant::now());
                    for link in gone.into_iter().map(Ends) {
                        warn!(%link, "no longer measured: the oracle uses its other sources");
                    }
                    changes
                }
            };
            report(&updates, changes, &live).await;
        }
    })
}

async fn report(updates: &Updates, changes: Vec<Change>, live: &Live) {
    if changes.is_empty() {
        return;
    }
    let feed: Feed = updates.feed(FEED);
    updates.apply(feed, changes).await;
    match live.links.len() {
        0 => updates.report(feed, FeedState::Waiting, "no link is measured"),
        links => {
            let detail = format!("{links} directions of links are measured");
            updates.report(feed, FeedState::Live, &detail);
        }
    }
}

/// Whether the oracle has a link between these routers.
async fn is_there(oracle: &Service, (from, to): (RouterId, RouterId)) -> bool {
    let router = Some(RouterName(from.to_string()));
    let rows = oracle.control(Request::Links { router }).await.unwrap_or_default();
    let to = to.to_string();
    rows.as_array().is_some_and(|rows| rows.iter().any(|row| row["to"] == to.as_str()))
}

/// The routers of a link, for people.
struct Ends((RouterId, RouterId));

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self((from, to)) = self;
        write!(f, "{from} to {to}")
    }
}

/// What was reported.
#[derive(Debug, Default)]
struct Live {
    links: BTreeMap<(RouterId, RouterId), Reported>,
}

/// The reported values of one direction of a link, each with its expiry.
#[derive(Clone, Copy, Debug, Default)]
struct Reported {
    /// Nanoseconds.
    latency: Option<(u64, Instant)>,
    loss: Option<(f64, Instant)>,
}

impl Reported {
    fn change(&self, (from, to): (RouterId, RouterId)) -> Change {
        let latency = self.latency.map(|(nanoseconds, _)| nanoseconds as f64 / 1e6);
        let loss = self.loss.map(|(loss, _)| loss);
        Change::Measured { from, to, latency, loss, congestion: None }
    }

    fn ends(&self) -> impl Iterator<Item = Instant> {
        let latency = self.latency.map(|(_, end)| end);
        latency.into_iter().chain(self.loss.map(|(_, end)| end))
    }
}

impl Live {
    fn knows(&self, ends: (RouterId, RouterId)) -> bool {
        self.links.contains_key(&ends)
    }

    /// When the next value expires.
    fn end(&self) -> Option<Instant> {
        self.links.values().flat_map(Reported::ends).min()
    }

    /// Takes a measurement; returns the changes to report.
    fn take(&mut self, link: &MeasuredLink, now: Instant) -> Vec<Change> {
        let ends = (link.from, link.to);
        let end = now + link.holds;
        let mut reported = self.links.get(&ends).copied().unwrap_or_default();
        let mut changed = false;
        if let Some(latency) = link.latency {
            let new = latency.estimate_ns;
            let differs = |old: u64| new.abs_diff(old) > (old / LATENCY.0).max(LATENCY.1);
            let keeps = reported.latency.map(|(old, _)| old).filter(|old| !differs(*old));
            changed |= keeps.is_none();
            reported.latency = Some((keeps.unwrap_or(new), end));
        } else if link.loss == Some(1.0) {
            // A link that loses everything has not become as fast as the other sources have it.
            reported.latency = reported.latency.map(|(old, _)| (old, end));
        }
        if let Some(new) = link.loss {
            let least = LOSS.0.max(LOSS.1 / link.packets.max(1) as f64);
            // With one to three packets no share can differ by more: that nothing arrives, and that
            // something or all does again, is reported in any case.
            let turned = |old: f64| old != new && (new == 0.0 || new == 1.0 || old == 1.0);
            let differs = |old: f64| (new - old).abs() > least || turned(old);
            let old = reported.loss.map(|(old, _)| old);
            let first = if new > least { new } else { 0.0 };
            let keeps = old.filter(|old| !differs(*old));
            changed |= keeps.is_none();
            reported.loss = Some((keeps.unwrap_or(if old.is_none() { first } else { new }), end));
        }
        if changed {
            self.links.insert(ends, reported);
            return vec![reported.change(ends)];
        }
        if let Some(known) = self.links.get_mut(&ends) {
            *known = reported;
        }
        Vec::new()
    }

    /// Withdraws expired values, and names the links that have none left.
    fn expire(&mut self, now: Instant) -> (Vec<Change>, Vec<(RouterId, RouterId)>) {
        let (mut changes, mut gone) = (Vec::new(), Vec::new());
        self.links.retain(|ends, reported| {
            let before = reported.ends().count();
            reported.latency = reported.latency.filter(|(_, end)| *end > now);
            reported.loss = reported.loss.filter(|(_, end)| *end > now);
            let left = reported.ends().count();
            if left != before {
                changes.push(reported.change(*ends));
            }
            if left == 0 {
                gone.push(*ends);
            }
            left > 0
        });
        (changes, gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use topo::MeasuredLatency;

    const HOLDS: Duration = Duration::from_secs(10);

    fn link(latency_us: Option<u64>, loss: Option<f64>, packets: u64) -> MeasuredLink {
        let latency = latency_us.map(|us| us * 1000).map(|estimate_ns| MeasuredLatency {
            estimate_ns,
            low_ns: 0,
            high_ns: 2 * estimate_ns,
        });
        let [from, to] = ["10.0.0.1", "10.0.0.2"].map(|router| router.parse().unwrap());
        MeasuredLink { from, to, latency, loss, packets, holds: HOLDS }
    }

    /// Latency in milliseconds, and loss, of the one change that was reported.
    fn reported(changes: &[Change]) -> (Option<f64>, Option<f64>) {
        match changes {
            [Change::Measured { latency, loss, congestion: None, .. }] => (*latency, *loss),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_changes_little_is_not_reported() {
        let (mut live, now) = (Live::default(), Instant::now());
        let changes = live.take(&link(Some(20_000), Some(0.0), 20), now);
        assert_eq!(reported(&changes), (Some(20.0), Some(0.0)));
        // 10 %, and two of twenty packets.
        assert_eq!(live.take(&link(Some(22_000), Some(0.1), 20), now), []);
        assert_eq!(
            reported(&live.take(&link(Some(22_001), Some(0.1), 20), now)),
            (Some(22.001), Some(0.0))
        );
        assert_eq!(
            reported(&live.take(&link(Some(22_001), Some(0.15), 20), now)),
            (Some(22.001), Some(0.15))
        );
        // With many packets a smaller share means more; below 0.1 ms nothing is reported.
        assert_eq!(reported(&live.take(&link(Some(22_001), Some(0.12), 1000), now)).1, Some(0.12));
        let mut near = Live::default();
        near.take(&link(Some(200), Some(0.0), 20), now);
        assert_eq!(near.take(&link(Some(300), Some(0.0), 20), now), []);
        assert_eq!(reported(&near.take(&link(Some(301), Some(0.0), 20), now)).0, Some(0.301));
    }

    #[test]
    fn the_first_lost_packet_of_few_means_nothing() {
        let mut live = Live::default();
        let changes = live.take(&link(Some(5), Some(0.05), 20), Instant::now());
        assert_eq!(reported(&changes).1, Some(0.0));
    }

    #[test]
    fn the_loss_of_few_packets_is_taken_back_when_they_come_again() {
        let now = Instant::now();
        for packets in 1..=3 {
            let mut live = Live::default();
            for loss in [0.0, 1.0, 1.0 - 1.0 / packets as f64, 0.0] {
                let changes = live.take(&link(None, Some(loss), packets), now);
                assert!(changes.is_empty() || reported(&changes).1 == Some(loss), "{changes:?}");
                let known = live.links.values().next().and_then(|reported| reported.loss);
                assert_eq!(known.map(|(loss, _)| loss), Some(loss), "of {packets} packets");
            }
        }
    }

    #[test]
    fn what_is_not_measured_any_more_is_taken_back() {
        let (mut live, now) = (Live::default(), Instant::now());
        live.take(&link(Some(20_000), Some(0.0), 20), now);
        // Not reported, and still kept alive.
        live.take(&link(Some(20_001), Some(0.0), 20), now + HOLDS / 2);
        assert_eq!(live.end(), Some(now + HOLDS + HOLDS / 2));
        assert_eq!(live.expire(now + HOLDS), (vec![], vec![]));
        let (changes, gone) = live.expire(now + 2 * HOLDS);
        assert_eq!((reported(&changes), gone.len()), ((None, None), 1));
        assert_eq!(live.end(), None);
        let changes = live.take(&link(Some(20_000), None, 0), now + 3 * HOLDS);
        assert_eq!(reported(&changes), (Some(20.0), None));
    }

    #[test]
    fn a_link_on_which_all_is_lost_keeps_its_latency() {
        let (mut live, now) = (Live::default(), Instant::now());
        live.take(&link(Some(20_000), Some(0.0), 1), now);
        let changes = live.take(&link(None, Some(1.0), 1), now + HOLDS / 2);
        assert_eq!(reported(&changes), (Some(20.0), Some(1.0)));
        assert_eq!(live.expire(now + HOLDS), (vec![], vec![]));
        // Packets arrive, but no bound of their delay is known any more.
        assert_eq!(
            reported(&live.take(&link(None, Some(0.0), 20), now + HOLDS)),
            (Some(20.0), Some(0.0))
        );
        assert_eq!(reported(&live.expire(now + HOLDS + HOLDS / 2).0), (None, Some(0.0)));
    }
}
