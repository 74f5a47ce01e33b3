//! The plain request, answered in the driver: the tables that sockets rank with, put where the
//! program `bpf/oracle.bpf.c` reads them.
//!
//! A [`Driver`] is the program, the interfaces it is on, and the filter of the sockets. It is given
//! each new [`Tables`]; what the program cannot answer exactly as the sockets do it passes to them,
//! down to all of it: when tables do not fit, or clients must authenticate, it answers nothing and
//! [`Driver::status`] has the reason.
//!
//! Order of use: [`Driver::open`], [`Driver::attach`] and [`Driver::guard`] while the process may
//! still load programs; then [`Driver::configure`] and [`Driver::publish`] whenever something changed,
//! which needs no right.

use super::MAX_METRICS;
use crate::tables::{Tables, UNKNOWN};
use datapath::{
    oracle::{
        AttachError, AttachMode, ConfigureError, Ledger, LoadError, MAX_GROUPS, MAX_SERVICES,
        MetricRows, OracleProgram, PublishError, Published, Settings, SourceLimit, lacks,
    },
    port::{Attached, Port},
};
use ipnet::{IpNet, Ipv4Net};
use nix::ifaddrs::getifaddrs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{
    borrow::Cow,
    collections::BTreeSet,
    io,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    os::fd::BorrowedFd,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use topo::{GroupId, RouterIndex};

/// How the program is attached to an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// `native` if the driver supports it, else `generic`, else the sockets alone answer.
    #[default]
    Auto,
    /// In the driver; an interface without native XDP is an error.
    Native,
    /// In the kernel's generic XDP hook, after the driver; an interface without it is an error.
    Generic,
}

/// What the operator chooses, as far as the driver must know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Where the sockets listen. A wildcard stands for all IPv4 addresses that the node has when
    /// this is applied.
    pub listen: Vec<SocketAddr>,
    /// How long a client may use a ranking.
    pub ttl: Duration,
    /// The limit of each source prefix.
    pub limit: SourceLimit,
    /// Whether requests without a tag are refused: then no plain request is answered.
    pub authentication_required: bool,
}

/// An interface that is to answer in the driver cannot.
#[derive(Debug, thiserror::Error)]
#[error("interface \"{name}\": {source}")]
pub struct InterfaceError {
    /// Its name.
    pub name: String,
    /// Why.
    pub source: AttachError,
}

/// A choice could not be applied.
#[derive(Debug, thiserror::Error)]
pub enum ChooseError {
    /// The node's addresses could not be listed.
    #[error("cannot list this node's addresses: {0}")]
    Addresses(io::Error),
    /// The program refuses it.
    #[error(transparent)]
    Configure(#[from] ConfigureError),
}

/// How one interface answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceStatus {
    /// Its name.
    pub name: String,
    /// Where the program runs; none where the sockets alone answer, or no longer.
    pub mode: Option<AttachMode>,
    /// Why not in the driver, where that was tried; none where the program was taken off or there is no such
    /// interface.
    pub why: Option<String>,
}

/// What the driver is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriverStatus {
    /// The interfaces.
    pub interfaces: Vec<InterfaceStatus>,
    /// Where interfaces are to answer and the kernel lacks what the program needs: what.
    pub lacks: Option<&'static str>,
    /// Addresses and ports that are answered for.
    pub services: Vec<SocketAddrV4>,
    /// The tables in force.
    pub published: Option<Published>,
    /// Why there are none, where there should be.
    pub refused: Option<PublishError>,
    /// What was counted; none if it could not be read.
    pub ledger: Option<Ledger>,
}

/// The program in the driver, with all that it is attached to.
#[derive(Debug)]
pub struct Driver {
    program: OracleProgram,
    ports: Mutex<Vec<Port>>,
    published: Mutex<Option<Result<Published, PublishError>>>,
}

impl Driver {
    /// Loads the program and the filter, or the filter alone where the kernel lacks what the program
    /// needs. It answers nothing yet.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn open() -> Result<Self, LoadError> {
        let program = OracleProgram::load()?;
        Ok(Self { program, ports: Mutex::default(), published: Mutex::default() })
    }

    /// Attaches the program to an interface of this thread's network namespace; in mode `auto` in the
    /// first mode that works, and if none does the sockets alone answer there. One that is missing is waited
    /// for ([`Driver::look`]).
    ///
    /// # Errors
    /// When another program is on it, or it or the kernel cannot do what is asked.
    pub fn attach(&self, name: &str, mode: Mode) -> Result<(), InterfaceError> {
        let port = Port::open(name, |index| self.attach_to(index, mode))
            .map_err(|source| InterfaceError { name: name.into(), source })?;
        self.ports().push(port);
        Ok(())
    }

    /// Attaches the program to interfaces that have appeared; whether there were any.
    pub fn look(&self, mode: Mode) -> bool {
        let attach = |index| self.attach_to(index, mode);
        self.ports().iter_mut().fold(false, |any, port| port.look(attach) | any)
    }

    fn attach_to(&self, index: u32, mode: Mode) -> Result<Attached, AttachError> {
        if let (Mode::Auto, Some(lacks)) = (mode, lacks()) {
            return Ok((None, Some(format!("this kernel has no {lacks}"))));
        }
        let cannot = |error: &AttachError| {
            matches!(error, AttachError::Unsupported { .. } | AttachError::SetUp { .. })
        };
        let first = match mode {
            Mode::Generic => AttachMode::Generic,
            Mode::Auto | Mode::Native => AttachMode::Native,
        };
        let (mut attached, mut why) = (self.program.attach(index, first), None);
        let native = attached.as_ref().err().filter(|error| mode == Mode::Auto && cannot(error));
        if let Some(native) = native {
            why = Some(native.to_string());
            attached = self.program.attach(index, AttachMode::Generic);
        }
        match attached {
            Ok(attachment) => Ok((Some(attachment), why)),
            Err(error) if mode == Mode::Auto && cannot(&error) => Ok((None, why)),
            Err(error) => Err(error),
        }
    }

    fn ports(&self) -> MutexGuard<'_, Vec<Port>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the filter before the sockets: what is over its rate never enters their queues.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn guard<'a>(&self, sockets: impl Iterator<Item = BorrowedFd<'a>>) -> io::Result<()> {
        for socket in sockets {
            self.program.attach_filter(socket)?;
        }
        Ok(())
    }

    /// Puts a choice in force, for packets in the driver and at the sockets alike.
    ///
    /// # Errors
    /// When it cannot be kept; the one before stays in force.
    pub fn configure(&self, choice: &Choice) -> Result<(), ChooseError> {
        let services = if choice.authentication_required {
            Vec::new()
        } else {
            services(&choice.listen).map_err(ChooseError::Addresses)?
        };
        let settings = Settings { services, ttl: choice.ttl, source: choice.limit };
        if settings != self.program.settings() {
            self.program.configure(&settings)?;
        }
        Ok(())
    }

    /// Gives the program the tables that sockets rank with from now on. Between the swap there and
    /// the one here the driver answers from the tables before. Tables that do not fit are logged, and
    /// leave everything to the sockets; so does a kernel that lacks what the program needs.
    pub fn publish(&self, tables: &Tables) {
        if lacks().is_some() {
            return;
        }
        let result = publish(&self.program, tables);
        let mut published = self.published.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(now) if now.wide_rows + now.skipped_rows > 0 => tracing::info!(
                "{} rows are in the driver; {} have too many different costs and {} do not fit: \
                 the sockets answer these",
                now.rows,
                now.wide_rows,
                now.skipped_rows
            ),
            Ok(_) => (),
            Err(error) if *published == Some(Err(error)) => (),
            Err(error) => tracing::warn!(
                "the driver answers nothing, the sockets answer all requests: {error}"
            ),
        }
        *published = Some(result);
    }

    /// Leaves everything to the sockets until the next tables come.
    pub fn withdraw(&self) {
        self.program.withdraw();
        *self.published.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// What it is doing.
    pub fn status(&self) -> DriverStatus {
        let published = *self.published.lock().unwrap_or_else(PoisonError::into_inner);
        let ports = self.ports();
        let interface = |port: &Port| InterfaceStatus {
            name: port.name().to_owned(),
            mode: port.mode(),
            why: port.why().map(str::to_owned),
        };
        DriverStatus {
            interfaces: ports.iter().map(interface).collect(),
            lacks: lacks().filter(|_| !ports.is_empty()),
            services: self.program.settings().services,
            published: published.and_then(Result::ok),
            refused: published.and_then(Result::err),
            ledger: self.program.ledger().ok(),
        }
    }
}

/// The IPv4 addresses and ports behind what the sockets listen on; as many as the program can hold,
/// the rest is the sockets'.
fn services(listen: &[SocketAddr]) -> io::Result<Vec<SocketAddrV4>> {
    let mut services = BTreeSet::new();
    for listen in listen {
        match listen {
            SocketAddr::V4(one) if !one.ip().is_unspecified() => {
                services.insert(*one);
            }
            SocketAddr::V4(all) => {
                let addresses = own_addresses()?;
                services.extend(addresses.map(|ip| SocketAddrV4::new(ip, all.port())));
            }
            // The program answers over IPv4 only.
            SocketAddr::V6(_) => (),
        }
    }
    let reachable = |service: &SocketAddrV4| {
        !matches!(service.ip().octets()[0], 0 | 127 | 224..) && service.port() != 0
    };
    Ok(services.into_iter().filter(reachable).take(MAX_SERVICES).collect())
}

fn own_addresses() -> io::Result<impl Iterator<Item = Ipv4Addr>> {
    let addresses = getifaddrs()?.filter_map(|interface| interface.address);
    Ok(addresses.filter_map(|address| address.as_sockaddr_in().map(|four| four.ip())))
}

/// Puts tables where the program reads them.
///
/// # Errors
/// When they do not fit; then the program answers nothing.
pub fn publish(program: &OracleProgram, tables: &Tables) -> Result<Published, PublishError> {
    let numbers = Numbers::of(tables);
    let count = tables.policy.metrics.len().min(MAX_METRICS);
    let metrics: Vec<_> = (0..count).map(|metric| numbers.metric(tables, metric)).collect();
    let routes = routes(tables).map(|(prefix, group)| (prefix, numbers.of_group(group)));
    program.publish(routes, numbers.groups.len(), &metrics)
}

/// The IPv4 part of the longest-prefix match.
fn routes(tables: &Tables) -> impl Iterator<Item = (Ipv4Net, GroupId)> + '_ {
    tables.view.table.iter().filter_map(|(prefix, group)| match prefix {
        IpNet::V4(prefix) => Some((prefix, GroupId(group))),
        IpNet::V6(_) => None,
    })
}

/// The program's numbers of groups: those of the view, or where these are too many, numbers of those
/// that IPv4 prefixes are in.
struct Numbers {
    /// The group of each number; 0 stands for 0.
    groups: Vec<GroupId>,
    /// The number of each group, where they differ.
    renumbered: Option<Vec<u16>>,
}

impl Numbers {
    fn of(tables: &Tables) -> Self {
        let all = tables.view.groups.len();
        if all <= MAX_GROUPS {
            return Self { groups: (0..all as u32).map(GroupId).collect(), renumbered: None };
        }
        let mut used = vec![false; all];
        for (_, group) in routes(tables) {
            used[group.index()] = true;
        }
        used[0] = true;
        let groups: Vec<_> =
            (0..all as u32).map(GroupId).filter(|group| used[group.index()]).collect();
        let mut numbers = vec![0; all];
        for (number, group) in groups.iter().enumerate() {
            // What does not fit is refused before it is read.
            numbers[group.index()] = u16::try_from(number).unwrap_or(u16::MAX);
        }
        Self { groups, renumbered: Some(numbers) }
    }

    fn of_group(&self, group: GroupId) -> u16 {
        match &self.renumbered {
            None => group.0 as u16,
            Some(numbers) => numbers[group.index()],
        }
    }

    /// A row for each router that requests may come from, and one for none.
    fn metric<'t>(&self, tables: &'t Tables, metric: usize) -> MetricRows<'t> {
        let mut rows = Vec::new();
        let mut row_of_router = vec![None; tables.view.graph.routers().len()];
        let mut row_of_none = None;
        let mut number = |source: Option<RouterIndex>| {
            let known = match source {
                None => &mut row_of_none,
                Some(router) => &mut row_of_router[router.index()],
            };
            *known.get_or_insert_with(|| {
                rows.push(self.row(tables.row(metric, source).ranks()));
                rows.len() as u32 - 1
            })
        };
        let row_of = self.groups.iter();
        let row_of = row_of.map(|group| Some(number(tables.source_of_group(*group)))).collect();
        MetricRows { rows, row_of }
    }

    fn row<'t>(&self, ranks: &'t [u16]) -> Cow<'t, [u16]> {
        if self.renumbered.is_none() {
            return Cow::Borrowed(ranks);
        }
        let rank = |group: &GroupId| ranks.get(group.index()).copied().unwrap_or(UNKNOWN);
        let mut row: Vec<u16> = self.groups.iter().map(rank).collect();
        // Without the other groups ranks have gaps.
        let used: BTreeSet<u16> = row.iter().copied().filter(|rank| *rank != UNKNOWN).collect();
        let mut dense = vec![UNKNOWN; usize::from(UNKNOWN) + 1];
        for (now, before) in used.into_iter().enumerate() {
            dense[usize::from(before)] = now as u16;
        }
        row.iter_mut().for_each(|rank| *rank = dense[usize::from(*rank)]);
        Cow::Owned(row)
    }
}
