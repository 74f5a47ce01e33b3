//! What can be wrong with values that parsed; read `ProbeConfig::problems` first.

use super::{
    Config, LimitConfig, ProbeConfig, SecurityConfig, StationConfig, Target, TestConfig, Transport,
    What,
};
use config::{Bandwidth, Problem, Report, interfaces, prefixes};
use std::{collections::HashSet, net::IpAddr, path::Path, time::Duration};

/// Most stations of a mesh.
const MAX_STATIONS: usize = 1000;
/// Most tests, and most links.
const MAX_TESTS: usize = 1000;
/// Most pairs that all tests measure together.
const MAX_PAIRS: usize = 1 << 20;
/// Most prefixes of the allow list.
const MAX_ALLOW: usize = 4096;
/// Most NTP servers that are watched.
const MAX_SERVERS: usize = 64;
/// The longest that packets may gather.
const MAX_GATHER: Duration = Duration::from_millis(100);
/// The longest interval.
const LONGEST_INTERVAL: Duration = Duration::from_secs(7 * 86_400);
/// Most packets a second of one session.
pub const MAX_RATE: u32 = 100_000;
/// The lowest rate of one test.
pub const MIN_BANDWIDTH: Bandwidth = Bandwidth(1_000_000);
/// The highest.
const MAX_BANDWIDTH: Bandwidth = Bandwidth(400_000_000_000);
/// What a run takes beside its length at most: to agree, to meet, for the last packets' time limit.
pub const OVERHEAD: Duration = Duration::from_secs(5);
/// The longest time for which a slot is agreed, and a delay session beside [`OVERHEAD`]; sessions without end
/// are renewed.
pub const LONGEST_LEASE: Duration = Duration::from_secs(300);
/// How long delay is measured by default.
pub const DELAY: Duration = Duration::from_secs(10);
/// How long throughput is measured by default.
pub const THROUGHPUT: Duration = Duration::from_secs(10);
/// How long pings are sent by default.
pub const PING: Duration = Duration::from_secs(2);
/// The longest throughput test.
pub const LONGEST_THROUGHPUT: Duration = Duration::from_secs(600);
/// The longest delay series with a length, or ping: what another station agrees to at once.
pub const LONGEST: Duration = LONGEST_LEASE.saturating_sub(OVERHEAD);
/// The time for which throughput tests of a station are counted.
pub const HOUR: Duration = Duration::from_secs(3600);
/// How long a run takes that has no length of its own, at most; it is given up then.
pub const UNMEASURED: Duration = Duration::from_secs(30);

impl Config {
    /// Everything that is wrong with the values; empty if they are valid.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = self.probe.problems();
        let mut report = Report::new(&mut problems, "probe");
        let name = self.name();
        if !self.probe.stations.is_empty() && self.own().is_none() {
            let text = format!(
                "this station is {name}, and no [[probe.station]] has that name: add one, or set probe.name"
            );
            report.add("station", text);
        }
        self.measured(&mut report);
        problems
    }

    fn measured(&self, report: &mut Report<'_>) {
        let measured = &self.probe.measured;
        if measured.len() > MAX_TESTS {
            report.add("measured", format!("more than {MAX_TESTS} links"));
        }
        let owd = self.probe.tests.iter().filter(|test| test.what == What::Owd);
        let pairs: HashSet<_> = owd.flat_map(TestConfig::pairs).collect();
        let mut ends = HashSet::new();
        for (i, link) in measured.iter().enumerate() {
            let mut report = report.within(&format!("measured[{i}]"));
            if self.probe.station(&link.station).is_none() {
                let text = format!("there is no [[probe.station]] of the name {:?}", link.station);
                report.add("station", text);
            } else if !pairs.contains(&(self.name(), link.station.as_str())) {
                let (own, other) = (self.name(), &link.station);
                let text = format!("no [[probe.test]] measures owd from {own} to {other}: add one");
                report.add("station", text);
            }
            let directions = [(link.from, link.to), (link.to, link.from)];
            if link.from == link.to {
                report.add("to", "a link joins two different routers");
            } else if !directions
                .into_iter()
                .take(1 + usize::from(link.both))
                .all(|direction| ends.insert(direction))
            {
                report.add("to", "another station measures this link too; remove one");
            }
        }
    }

    /// Warnings: what is allowed but rarely intended.
    pub fn warnings(&self) -> Vec<Problem> {
        self.probe.warnings()
    }
}

impl ProbeConfig {
    /// Everything that is wrong with the values, each key from `probe` on; empty if they are valid.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let report = &mut Report::new(&mut problems, "probe");
        if let Some(name) = &self.name
            && let Some(why) = bad_name(name)
        {
            report.add("name", why);
        }
        match &self.security {
            Some(security) => security.check(&mut report.within("security")),
            None if self.stations.len() > 1 => report.add(
                "security",
                "stations must know each other: give authority, certificate and key, or shared_key",
            ),
            None => {}
        }
        self.mesh(report);
        self.jobs(report);
        prefixes("allow", &self.allow, report);
        if self.allow.len() > MAX_ALLOW {
            report.add("allow", format!("{} prefixes are more than {MAX_ALLOW}", self.allow.len()));
        }
        self.limit.check(&mut report.within("limit"));
        let mut within = report.within("reflector");
        if self.reflector.port == 0 {
            within.add("port", "the other stations must know the port: give one, such as 862");
        }
        interfaces(&self.reflector.interfaces, &mut within);
        if self.gather.is_some_and(|gather| gather > MAX_GATHER) {
            report.add("gather", format!("more than {} ms", MAX_GATHER.as_millis()));
        }
        self.clocks(&mut report.within("clock"));
        report.take("archive", self.archive.problems());
        problems
    }

    fn clocks(&self, report: &mut Report<'_>) {
        let clock = &self.clock;
        interval("interval", clock.interval, report);
        if clock.limit.is_some_and(|limit| limit.is_zero()) {
            report.add("limit", "no clock has no error: give a time such as \"10ms\"");
        }
        if clock.servers.len() > MAX_SERVERS {
            report.add("servers", format!("more than {MAX_SERVERS} servers"));
        }
        for (i, server) in clock.servers.iter().enumerate() {
            if let Some(why) = bad_address(server) {
                report.add(&format!("servers[{i}]"), why);
            } else if clock.servers[..i].contains(server) {
                report.add(&format!("servers[{i}]"), format!("{server} is listed twice"));
            }
        }
    }

    fn mesh(&self, report: &mut Report<'_>) {
        if self.stations.len() > MAX_STATIONS {
            report.add("station", format!("more than {MAX_STATIONS} stations"));
        }
        let (mut names, mut addresses) = (HashSet::new(), HashSet::new());
        for (i, station) in self.stations.iter().enumerate() {
            let mut report = report.within(&format!("station[{i}]"));
            station.check(&mut report);
            if !names.insert(&station.name) {
                report.add("name", format!("{} is the name of another station too", station.name));
            }
            for (k, address) in station.addresses.iter().enumerate() {
                if !addresses.insert(address) {
                    report.add(
                        &format!("addresses[{k}]"),
                        format!("{address} is there twice; remove one"),
                    );
                }
            }
        }
        if self.links.len() > MAX_TESTS {
            report.add("link", format!("more than {MAX_TESTS} links"));
        }
        let mut names = HashSet::new();
        for (i, link) in self.links.iter().enumerate() {
            let mut report = report.within(&format!("link[{i}]"));
            if let Some(why) = bad_name(&link.name) {
                report.add("name", why);
            } else if !names.insert(&link.name) {
                report.add("name", format!("{} is the name of another link too", link.name));
            }
            for (key, side) in [("between", &link.between), ("and", &link.and)] {
                self.are_stations(key, side, &mut report);
                if side.is_empty() {
                    report.add(key, "name the stations on this side");
                }
            }
            if link.between.iter().any(|name| link.and.contains(name)) {
                report.add("and", "a station is on one side only");
            }
        }
    }

    fn are_stations(&self, key: &str, names: &[String], report: &mut Report<'_>) {
        for (i, name) in names.iter().enumerate() {
            let key = format!("{key}[{i}]");
            if self.station(name).is_none() {
                report.add(&key, format!("there is no [[probe.station]] of the name {name:?}"));
            } else if names[..i].contains(name) {
                report.add(&key, format!("{name} is named twice; remove one"));
            }
        }
    }

    fn jobs(&self, report: &mut Report<'_>) {
        if self.tests.len() > MAX_TESTS {
            report.add("test", format!("more than {MAX_TESTS} tests"));
            return;
        }
        let mut names = HashSet::new();
        let mut pairs = 0_usize;
        for (i, test) in self.tests.iter().enumerate() {
            let mut report = report.within(&format!("test[{i}]"));
            if let Some(why) = bad_name(&test.name) {
                report.add("name", why);
            } else if !names.insert(&test.name) {
                report.add("name", format!("{} is the name of another test too", test.name));
            }
            test.times(&mut report);
            test.figures(&self.limit, &mut report);
            if test.mesh.is_empty() == (test.from.is_empty() && test.to.is_empty()) {
                report.add("mesh", "give either mesh, or from and to");
            } else if test.mesh.is_empty() && (test.from.is_empty() || test.to.is_empty()) {
                report.add("from", "give both from and to");
            }
            if !test.mesh.is_empty() && !between_stations(test.what) {
                report.add("what", format!("{} is not measured between stations", test.what));
            }
            self.are_stations("mesh", &test.mesh, &mut report);
            self.are_stations("from", &test.from, &mut report);
            for (k, to) in test.to.iter().enumerate() {
                if let Err(error) = Target::parse(to, test.what, self) {
                    report.add(&format!("to[{k}]"), error.to_string());
                }
            }
            self.families(test, &mut report);
            let count = |list: &[String], other: &[String]| list.len().saturating_mul(other.len());
            pairs = pairs
                .saturating_add(count(&test.mesh, &test.mesh))
                .saturating_add(count(&test.from, &test.to));
        }
        if pairs > MAX_PAIRS {
            report.add("test", format!("the tests have more than {MAX_PAIRS} pairs together"));
        }
    }

    fn families(&self, test: &TestConfig, report: &mut Report<'_>) {
        let Some(family) = test.family else { return };
        let named = test.mesh.iter().chain(&test.from).chain(&test.to);
        for station in named.filter_map(|name| self.station(name)) {
            if station.address(Some(family)).is_none() {
                report.add("family", format!("{} has no address of this family", station.name));
                return;
            }
        }
    }

    /// What is allowed but seldom meant, each key from `probe` on.
    pub fn warnings(&self) -> Vec<Problem> {
        let mut warnings = Vec::new();
        let report = &mut Report::new(&mut warnings, "probe");
        if self.clock.limit.is_none() && self.tests.iter().any(|test| test.what == What::Owd) {
            report.add("clock.limit", "not given: no alarm if this station's clock gets worse");
        }
        let files = self.security.iter().flat_map(SecurityConfig::files);
        let token = self.request.iter().map(|request| ("request.token", request.token.as_path()));
        for (key, file) in files.chain(token) {
            if !file.exists() {
                report.add(key, format!("there is no file {} on this host", file.display()));
            }
        }
        warnings
    }
}

impl SecurityConfig {
    fn check(&self, report: &mut Report<'_>) {
        let three = [&self.authority, &self.certificate, &self.key];
        let given = three.iter().filter(|file| file.is_some()).count();
        if self.shared_key.is_some() == (given > 0) {
            report.add("shared_key", "give either shared_key, or authority, certificate and key");
        } else if given != 0 && given != 3 {
            report.add("certificate", "authority, certificate and key are needed together");
        }
    }

    fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let files = [
            ("security.authority", &self.authority),
            ("security.certificate", &self.certificate),
            ("security.key", &self.key),
            ("security.shared_key", &self.shared_key),
        ];
        files.into_iter().filter_map(|(key, file)| Some((key, file.as_deref()?)))
    }
}

impl StationConfig {
    fn check(&self, report: &mut Report<'_>) {
        if let Some(why) = bad_name(&self.name) {
            report.add("name", why);
        }
        if self.addresses.is_empty() {
            report.add("addresses", "give at least one");
        }
        for (i, address) in self.addresses.iter().enumerate() {
            let key = format!("addresses[{i}]");
            if let Some(why) = bad_address(address) {
                report.add(&key, why);
            } else if self.addresses[..i].iter().any(|other| other.is_ipv4() == address.is_ipv4()) {
                report.add(&key, "one address of each family is enough; remove one");
            }
        }
        if let Some(control) = self.control {
            if control.port() == 0 {
                report.add("control", "the other stations must know the port: give one");
            } else if let Some(why) = bad_address(&control.ip()) {
                report.add("control", why);
            }
        }
        for (i, service) in self.may.iter().enumerate() {
            if self.may[..i].contains(service) {
                report.add(&format!("may[{i}]"), "is listed twice; remove one");
            }
        }
    }
}

impl TestConfig {
    /// How long one run takes, at most.
    pub fn takes(&self) -> Duration {
        match (self.what, self.duration) {
            (What::Owd, None) => self.interval,
            (What::Owd, Some(duration)) => duration.saturating_add(OVERHEAD),
            (What::Throughput, duration) => duration.unwrap_or(THROUGHPUT).saturating_add(OVERHEAD),
            (What::Ping, duration) => duration.unwrap_or(PING).saturating_add(OVERHEAD),
            _ => UNMEASURED,
        }
    }

    fn times(&self, report: &mut Report<'_>) {
        interval("interval", self.interval, report);
        let spread = self.spread();
        if spread >= self.interval {
            report.add("spread", "must be shorter than the interval");
            return;
        }
        let lengthy = matches!(self.what, What::Owd | What::Throughput | What::Ping);
        match self.duration {
            Some(_) if !lengthy => {
                report.add("duration", format!("{} has no duration; remove it", self.what));
            }
            Some(duration) if duration < Duration::from_millis(100) => {
                report.add("duration", "must be at least 100ms");
            }
            Some(duration) if duration > LONGEST && self.what != What::Throughput => {
                let longest = humantime::format_duration(LONGEST);
                report.add("duration", format!("must be at most {longest}"));
            }
            _ if self.continuous() => {}
            _ if self.takes().saturating_add(spread) > self.interval => report.add(
                "interval",
                format!(
                    "a run takes up to {} and begins up to {} late: give a longer interval, a shorter \
                     duration or spread",
                    humantime::format_duration(self.takes()),
                    humantime::format_duration(spread)
                ),
            ),
            _ => {}
        }
    }

    /// Whether it measures all the time.
    pub fn continuous(&self) -> bool {
        self.what == What::Owd && self.duration.is_none()
    }

    fn figures(&self, limit: &LimitConfig, report: &mut Report<'_>) {
        let packets = matches!(self.what, What::Owd | What::Ping);
        match self.rate {
            Some(_) if !packets => {
                report.add("rate", format!("{} has no packets a second; remove it", self.what));
            }
            Some(rate) if !(1..=MAX_RATE.min(limit.rate)).contains(&rate) => {
                let most = MAX_RATE.min(limit.rate);
                report.add("rate", format!("must be from 1 to {most}; see probe.limit.rate"));
            }
            _ => {}
        }
        if self.plain && self.what != What::Owd {
            report.add("plain", format!("{} has no authentication; remove it", self.what));
        }
        let throughput = self.what == What::Throughput;
        let udp = throughput && self.transport == Transport::Udp;
        let iperf3 = throughput && self.transport == Transport::Iperf3;
        match self.bandwidth {
            Some(_) if !udp && !iperf3 => {
                report.add("bandwidth", "only throughput over UDP has a bandwidth; remove it");
            }
            None if udp => report.add("bandwidth", "give the rate that is sent, as 100Mbit"),
            Some(bandwidth) if !(MIN_BANDWIDTH..=limit.bandwidth).contains(&bandwidth) => {
                let most = limit.bandwidth;
                let text =
                    format!("must be from {MIN_BANDWIDTH} to {most}; see probe.limit.bandwidth");
                report.add("bandwidth", text);
            }
            _ => {}
        }
        if !throughput && self.transport != Transport::Tcp {
            report.add("transport", format!("{} has no transport; remove it", self.what));
        }
        if throughput && self.duration.unwrap_or(THROUGHPUT) > limit.duration {
            report.add("duration", "is longer than probe.limit.duration");
        }
        let share = self.duration.unwrap_or(THROUGHPUT).div_duration_f64(self.interval);
        if throughput && share > limit.throughput.div_duration_f64(HOUR) {
            let text = "takes more of an hour than probe.limit.throughput lets one station have";
            report.add("interval", text);
        }
    }
}

impl LimitConfig {
    fn check(&self, report: &mut Report<'_>) {
        for (key, value, most) in [
            ("requests", u64::from(self.requests), 1_000_000),
            ("connections", self.connections as u64, 10_000),
            ("sessions", self.sessions as u64, 1000),
            ("rate", u64::from(self.rate), u64::from(MAX_RATE)),
            ("tests", self.tests as u64, 10_000),
        ] {
            if !(1..=most).contains(&value) {
                report.add(key, format!("must be from 1 to {most}"));
            }
        }
        if !(MIN_BANDWIDTH..=MAX_BANDWIDTH).contains(&self.bandwidth) {
            report.add("bandwidth", format!("must be from {MIN_BANDWIDTH} to {MAX_BANDWIDTH}"));
        }
        if !(self.duration..=HOUR).contains(&self.throughput) {
            report.add("throughput", "must be from probe.limit.duration to 1h");
        }
        if !(Duration::from_secs(1)..=LONGEST_THROUGHPUT).contains(&self.duration) {
            let longest = humantime::format_duration(LONGEST_THROUGHPUT);
            report.add("duration", format!("must be from 1s to {longest}"));
        }
    }
}

fn interval(key: &str, value: Duration, report: &mut Report<'_>) {
    if !(Duration::from_secs(1)..=LONGEST_INTERVAL).contains(&value) {
        report.add(key, "must be from 1s to 7d");
    }
}

/// Whether a test has a station at its other end.
fn between_stations(what: What) -> bool {
    matches!(what, What::Owd | What::Ping | What::Trace | What::Throughput)
}

/// The problem of a text that cannot be a name; a station's certificate has it as a DNS name.
fn bad_name(name: &str) -> Option<String> {
    let good = (1..=63).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b))
        && !name.starts_with(['-', '.'])
        && !name.ends_with(['-', '.'])
        && !name.contains("..")
        && name.parse::<IpAddr>().is_err();
    (!good).then(|| {
        format!(
            "{name:?} is not a name: 1 to 63 lower-case letters, digits, '-' and '.', as in DNS"
        )
    })
}

/// Says so where an address cannot be that of one host.
fn bad_address(address: &IpAddr) -> Option<String> {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    (address.is_unspecified() || address.is_multicast() || broadcast)
        .then(|| format!("{address} is not the address of one host"))
}
