//! What a run is to be, from the configuration or as it was asked for.

use super::error::{ControlError, RunError};
use crate::{
    config::{
        self, Config, Family, LONGEST, MIN_BANDWIDTH, OVERHEAD, Target, TargetError, TestConfig,
        Transport, What,
    },
    control::{ON_REQUEST, Order},
    schedule::{Class, jobs},
    station::message::Slot,
};
use ::config::Bandwidth;
use std::{net::IpAddr, time::Duration};

/// A run that is to be done.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) test: String,
    pub(super) what: What,
    pub(super) to: Target,
    pub(super) duration: Option<Duration>,
    pub(super) rate: Option<u32>,
    pub(super) bandwidth: Option<Bandwidth>,
    pub(super) transport: Transport,
    pub(super) plain: bool,
    pub(super) family: Option<Family>,
    pub(super) takes: Duration,
    slot: Slot,
}

impl Job {
    /// A run of a test of the configuration.
    pub(super) fn of(config: &Config, test: &TestConfig, to: &str) -> Result<Self, TargetError> {
        Ok(Self {
            test: test.name.clone(),
            what: test.what,
            to: Target::parse(to, test.what, &config.probe)?,
            duration: test.duration,
            rate: test.rate,
            bandwidth: test.bandwidth,
            transport: test.transport,
            plain: test.plain,
            family: test.family,
            takes: test.takes(),
            slot: slot(config, &test.name, jobs::class(test), to),
        })
    }

    /// What is asked for.
    pub(super) fn ordered(config: &Config, order: Order) -> Result<Self, ControlError> {
        let limit = &config.probe.limit;
        let to = Target::parse(&order.to, order.what, &config.probe)?;
        let value = |text: String| Err(ControlError::Value(text));
        let takes = order.takes();
        let lasts = match order.what {
            What::Owd | What::Ping | What::Throughput => takes.saturating_add(OVERHEAD),
            _ => takes,
        };
        let longest = match order.what {
            What::Throughput => limit.duration,
            _ => LONGEST,
        };
        if takes > longest || takes < Duration::from_millis(100) {
            let longest = humantime::format_duration(longest);
            return value(format!("the duration must be 100ms to {longest}"));
        }
        if order.rate.is_some_and(|rate| !(1..=limit.rate).contains(&rate)) {
            return value(format!("the rate must be 1 to {}; see probe.limit.rate", limit.rate));
        }
        let bandwidth = order.bandwidth;
        let permitted = MIN_BANDWIDTH..=limit.bandwidth;
        if bandwidth.is_some_and(|bandwidth| !permitted.contains(&bandwidth)) {
            let (least, most) = permitted.into_inner();
            let why = format!("the bandwidth must be {least} to {most}; see probe.limit.bandwidth");
            return value(why);
        }
        if order.transport == Transport::Udp
            && bandwidth.is_none()
            && order.what == What::Throughput
        {
            return value("UDP has no congestion control: give a bandwidth, as 100Mbit".to_owned());
        }
        let throughput = order.what == What::Throughput;
        let paced = throughput && matches!(order.transport, Transport::Udp | Transport::Iperf3);
        let packets = matches!(order.what, What::Owd | What::Ping);
        for (given, fits, key) in [
            (order.duration.is_some(), throughput || packets, "duration"),
            (order.rate.is_some(), packets, "rate in packets a second"),
            (bandwidth.is_some(), paced, "bandwidth except over UDP or by iperf3"),
            (order.transport != Transport::Tcp, throughput, "transport"),
            (order.plain, order.what == What::Owd, "authentication to switch off"),
        ] {
            if given && !fits {
                return value(format!("{} has no {key}", order.what));
            }
        }
        let class = jobs::kind(order.what, false);
        Ok(Self {
            test: ON_REQUEST.to_owned(),
            what: order.what,
            slot: slot(config, ON_REQUEST, class, &order.to),
            to,
            duration: order.duration,
            rate: order.rate,
            bandwidth,
            transport: order.transport,
            plain: order.plain,
            family: order.family,
            takes: lasts,
        })
    }

    /// What it shares with others.
    pub(super) fn slot(&self) -> &Slot {
        &self.slot
    }

    /// How long data or packets are sent.
    pub(super) fn duration(&self) -> Duration {
        self.duration.unwrap_or(match self.what {
            What::Throughput => config::THROUGHPUT,
            What::Ping => config::PING,
            _ => config::DELAY,
        })
    }

    /// The address of a station to which is measured, and of this one from which.
    pub(super) fn addresses(
        &self,
        config: &Config,
        name: &str,
    ) -> Result<(IpAddr, IpAddr), RunError> {
        let none = || RunError::Family(name.to_owned());
        let (own, station) = (config.own().ok_or_else(none)?, config.probe.station(name));
        let station = station.ok_or_else(none)?;
        let common = station.addresses.iter().find_map(|to| {
            let family = if to.is_ipv4() { Family::V4 } else { Family::V6 };
            let wanted = self.family.is_none_or(|wanted| wanted == family);
            Some((own.address(Some(family))?, *to)).filter(|_| wanted)
        });
        common.ok_or_else(none)
    }
}

fn slot(config: &Config, test: &str, class: Class, to: &str) -> Slot {
    let uses = jobs::uses(&config.probe, config.name(), to).into_iter().collect();
    Slot { test: test.to_owned(), class, uses }
}
