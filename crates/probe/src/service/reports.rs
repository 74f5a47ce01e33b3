//! What is known of the delay sessions of this station.

use crate::{
    config::TestConfig,
    delay::{News, Report, SessionId},
};
use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{sync::Notify, task::JoinHandle};

/// What is known of the sessions that run.
#[derive(Debug, Default)]
pub(super) struct Reports {
    sessions: Mutex<HashMap<SessionId, State>>,
    /// Addresses that sessions may send to, each as often as one needs it.
    pub(super) permits: Mutex<HashMap<SocketAddr, usize>>,
    pub(super) ssids: Arc<Ssids>,
}

/// The session numbers that are in use (RFC 8972, section 3).
#[derive(Debug, Default)]
pub(super) struct Ssids(Mutex<(u16, HashSet<u16>)>);

impl Ssids {
    pub(super) fn lock(&self) -> MutexGuard<'_, (u16, HashSet<u16>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that is not zero and that no session has, another each time; none when all are in use.
    pub(super) fn take(self: &Arc<Self>) -> Option<Ssid> {
        let mut ssids = self.lock();
        let (last, used) = &mut *ssids;
        let next = (1..=u16::MAX).map(|ahead| last.wrapping_add(ahead));
        let number = next.chain([*last]).find(|ssid| *ssid != 0 && !used.contains(ssid))?;
        *last = number;
        used.insert(number);
        Some(Ssid { ssids: self.clone(), number })
    }
}

/// A session's number, its own until this is dropped.
#[derive(Debug)]
pub(super) struct Ssid {
    ssids: Arc<Ssids>,
    pub(super) number: u16,
}

impl Drop for Ssid {
    fn drop(&mut self) {
        self.ssids.lock().1.remove(&self.number);
    }
}

/// A session as it is reported.
#[derive(Debug)]
pub(super) struct State {
    pub(super) report: Report,
    /// Packets that were not sent at their time, or not taken by the kernel.
    pub(super) ended: Option<News>,
    pub(super) wake: Arc<Notify>,
}

impl Reports {
    pub(super) fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, State>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a report of the shell.
    pub(super) fn report(&self, id: SessionId, news: News) {
        let mut sessions = self.sessions();
        let Some(state) = sessions.get_mut(&id) else { return };
        match news {
            News::Packet(event) => state.report.add(&event),
            // Counted by the shell; what was not sent is lost besides.
            News::Missed(_) | News::NotSent => {}
            News::Ended | News::NotPermitted | News::SsidInUse => {
                state.ended = Some(news);
                state.wake.notify_one();
            }
        }
    }
}

/// The sessions that never end.
#[derive(Debug, Default)]
pub(super) struct Continuous(pub(super) Mutex<Vec<(TestConfig, String, JoinHandle<()>)>>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_in_use_is_never_given_again() {
        let ssids = Arc::<Ssids>::default();
        let long = ssids.take().expect("a number");
        assert_eq!(long.number, 1);
        // Sessions come and go until the numbers begin again.
        for _ in 0..2 * usize::from(u16::MAX) {
            let short = ssids.take().expect("a number");
            assert!(short.number != 0 && short.number != long.number);
        }
        let rest: Vec<Ssid> = std::iter::from_fn(|| ssids.take()).collect();
        assert_eq!(rest.len(), usize::from(u16::MAX) - 1, "all but zero and the first");
        drop(long);
        assert_eq!(ssids.take().map(|ssid| ssid.number), Some(1));
    }
}
