//! A lab from its start to its end.
//!
//! The calling thread makes hosts and ports, starts the thread that carries packets (`carrier`) and
//! then waits: for a signal, for the command that the lab was run for, for the carrier's end. It alone
//! keeps its capabilities, to clean up; every other thread gives up all of its own.

mod carrier;
mod command;
mod contention;
mod warm;

pub use command::{ExecError, exec};

use crate::{
    PortId, RoutePolicy,
    clean::{CleanError, Entry, HostEntry, Lock, Record},
    engine::{Engine, EngineOptions},
    handle::{self, Handle},
    host::{Gateways, HostError, Interface, Namespace},
    network::Network,
    port::Port,
    scene::{HostTable, Joint, LabTable, Routing, Scene, bad_name},
    stage::Stage,
};
use carrier::Carrier;
use datapath::{
    capabilities, schedule,
    tap::{self, Tap},
    xsk,
};
use job::command::Exit;
use nix::{
    net::if_::if_nametoindex,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        eventfd::EventFd,
        signal::{SigSet, SigmaskHow, Signal, kill},
        signalfd::{SfdFlags, SignalFd},
    },
    unistd::Pid,
};
use std::{
    ffi::OsString,
    fmt::Write as _,
    io,
    net::IpAddr,
    os::{fd::AsFd, unix::process::ExitStatusExt},
    path::PathBuf,
    process::{Child, ExitStatus},
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};
use warm::Warmer;
use wire::Mac;

/// Frames that may wait in a TAP device until they are taken.
const QUEUE: u32 = 4096;

/// How long the thread that carries packets runs at a stretch while others want its core: the least that
/// the kernel takes, so that it gets a core at once when it wakes.
const SLICE: Duration = Duration::from_micros(100);

/// How a lab is run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The file of the scene, for other programs.
    pub file: PathBuf,
    /// What the names of namespaces begin with.
    pub prefix: String,
}

impl Options {
    /// The name of the namespace that is made for a host.
    fn namespace_of(&self, host: &HostTable) -> String {
        format!("{}{}", self.prefix, host.name)
    }
}

/// A lab could not be started, or broke.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A namespace cannot be made.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A TAP device cannot be opened.
    #[error("host {0}: {1}")]
    Tap(String, #[source] tap::OpenError),
    /// A TAP device that should be there is not: the host, the device, the words for `ip` that say where.
    #[error(
        "host {0}: there is no interface {1}: make it with `ip {2}tuntap add {1} mode tap`, or remove `tap`, so that the lab creates a namespace with an interface"
    )]
    NoTap(String, String, String),
    /// The name of a namespace that is to be made cannot be one.
    #[error("host {0} with the prefix {1:?}: {2}")]
    Prefix(String, String, String),
    /// An interface cannot be taken over.
    #[error("host {0}: {1}")]
    Xdp(String, #[source] xsk::OpenError),
    /// What an earlier lab left cannot be removed, or this one's record not be written.
    #[error(transparent)]
    Clean(#[from] CleanError),
    /// The command cannot be run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The host that the command is to run in is not there, or has no namespace.
    #[error("there is no host {0} with a namespace to run the command in")]
    NoHost(String),
    /// The control socket cannot be opened.
    #[error(transparent)]
    Serve(#[from] ::control::BindError),
    /// A link cannot be a wire.
    #[error("link {} is one-way and cannot be a wire", .0.0)]
    Wire(crate::LinkId),
    /// The system refused something else.
    #[error("{0}: {1}")]
    System(&'static str, io::Error),
    /// The thread that carries packets panicked, and has logged why.
    #[error("the lab failed and was removed")]
    Broke,
}

impl RunError {
    /// How a lab ends that fails so: as `nigh lab exec` where the command cannot be started.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Exec(error @ ExecError::Start { .. }) => error.exit(),
            _ => Exit::Failed,
        }
    }

    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::System(what, error.into())
    }
}

/// A running lab. What it made goes when this is dropped.
pub struct Lab {
    // In the order in which they go: first the carrier and with it the devices.
    carrier: Option<JoinHandle<io::Result<Engine>>>,
    ended: Arc<EventFd>,
    handle: Handle,
    /// The real systems of the scene.
    hosts: Vec<(HostTable, Option<Namespace>)>,
    _record: Record,
    signals: SignalFd,
    /// The signals that the process did not take before.
    mask: SigSet,
}

impl Lab {
    /// Removes what dead labs left, makes the hosts and begins to carry.
    ///
    /// From here on SIGINT and SIGTERM end the lab, see [`Lab::wait`]; the threads that the process
    /// has already must not take them.
    ///
    /// # Errors
    /// See [`RunError`]; nothing is left of what was made then.
    pub fn start(scene: &Scene, stage: Stage, options: &Options) -> Result<Self, RunError> {
        for host in scene.systems().iter().filter(|host| host.joint() == Joint::Made) {
            if let Some(why) = bad_name(&options.namespace_of(host)) {
                return Err(RunError::Prefix(host.name.clone(), options.prefix.clone(), why));
            }
        }
        let (signals, mask) = block_signals().map_err(RunError::system("signals"))?;
        let mut engine = Engine::new(stage.network.clone(), engine_options(scene, &stage.network));
        let lock = Lock::take()?;
        lock.clean()?;
        let systems = scene.systems();
        let attached = systems.iter().zip(&stage.attached).enumerate();
        let ids: Vec<_> = attached
            .map(|(i, (host, node))| engine.add_port(*node, node_mac(i), host.address.to_vec()))
            .collect();
        let names = names(scene, &stage, &engine, &ids);
        let record = Record::write(&entry(scene, options), &names, &lock)?;
        let mut hosts: Vec<_> = systems.into_iter().map(|host| (host, None)).collect();
        let mut ports = Vec::new();
        for ((host, namespace), id) in hosts.iter_mut().zip(ids) {
            let gateways = Gateways { v4: engine.gateway4(id), v6: engine.gateway6(id) };
            let make = || Namespace::make(&options.namespace_of(host));
            let (opened, port) = open(host, id, gateways, make)?;
            match port {
                Port::Xdp(_) => engine.set_plain(id),
                Port::Tap(_) if opened.is_some() => engine.learn(id, host_mac(id)),
                Port::Tap(_) => {}
            }
            ports.push(port);
            *namespace = opened;
        }
        for (wire, link) in scene.wires.iter().zip(&stage.wires) {
            let ids = engine.add_wire(*link).ok_or(RunError::Wire(*link))?;
            for (end, id) in wire.hosts().into_iter().zip(ids) {
                let system = hosts.iter_mut().find(|(host, _)| host.name == end.name);
                let mut unnamed = None;
                let slot = system.map_or(&mut unnamed, |(_, namespace)| namespace);
                let name = options.namespace_of(&end);
                let make = || match slot {
                    Some(_) => Namespace::open(&name),
                    None => Namespace::make(&name),
                };
                let (opened, port) = open(&end, id, Gateways::default(), make)?;
                if let Port::Xdp(_) = port {
                    engine.set_plain(id);
                }
                ports.push(port);
                if slot.is_none() {
                    *slot = opened;
                }
            }
        }
        drop(lock);
        let (handle, inbox) = handle::pair().map_err(RunError::system("an eventfd"))?;
        let ended = Arc::new(EventFd::new().map_err(RunError::system("an eventfd"))?);
        let carrier = Carrier::new(engine, ports, stage.events, inbox, Warmer::new()?)
            .map_err(RunError::system("epoll"))?;
        let carrier = carry(carrier, ended.clone()).map_err(RunError::system("a thread"))?;
        Ok(Self { carrier: Some(carrier), ended, handle, hosts, _record: record, signals, mask })
    }

    /// Reaches the engine.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Its hosts, each with the name of its namespace if it has one.
    pub fn namespaces(&self) -> Vec<(HostTable, Option<String>)> {
        let name = |namespace: &Namespace| namespace.name().to_owned();
        self.hosts.iter().map(|(host, made)| (host.clone(), made.as_ref().map(name))).collect()
    }

    /// Starts a command in a host, the first one unless named.
    ///
    /// # Errors
    /// When there is no such host or program.
    pub fn spawn(&self, words: &[OsString], inside: Option<&str>) -> Result<Child, RunError> {
        let is_meant = |name: &str| inside.is_none_or(|inside| name == inside);
        let namespace = self
            .hosts
            .iter()
            .find_map(|(host, namespace)| namespace.as_ref().filter(|_| is_meant(&host.name)))
            .ok_or_else(|| RunError::NoHost(inside.unwrap_or_default().to_owned()))?;
        Ok(command::spawn(namespace, words, &self.mask)?)
    }

    /// Waits until a signal ends the lab, or the command does, whose status is returned then.
    ///
    /// SIGINT has reached a command from the terminal as well, so its end is waited for; a second one
    /// kills it. SIGTERM is handed on to it.
    ///
    /// # Errors
    /// When the carrier broke.
    pub fn wait(&mut self, mut command: Option<Child>) -> Result<Option<ExitStatus>, RunError> {
        let mut interrupted = false;
        loop {
            // One that ended while it was started has sent no signal here.
            if let Some(child) = &mut command
                && let Some(status) = child.try_wait().map_err(RunError::system("the command"))?
            {
                return Ok(Some(status));
            }
            let mut fds = [
                PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.ended.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut fds, PollTimeout::NONE) {
                Err(nix::Error::EINTR) | Ok(_) => {}
                Err(error) => return Err(RunError::system("poll")(error)),
            }
            let ended = fds[1].any().unwrap_or_default();
            while let Ok(Some(signal)) = self.signals.read_signal() {
                let signal = Signal::try_from(signal.ssi_signo as i32);
                match (signal, &mut command) {
                    (Ok(Signal::SIGCHLD), _) => {}
                    (_, None) => return Ok(None),
                    (Ok(Signal::SIGINT), Some(command)) if interrupted => {
                        let _ = command.kill();
                    }
                    (Ok(Signal::SIGINT), Some(_)) => interrupted = true,
                    (_, Some(command)) => {
                        let _ = kill(Pid::from_raw(command.id().cast_signed()), Signal::SIGTERM);
                    }
                }
            }
            if ended {
                if let Some(child) = &mut command {
                    let _ = child.kill();
                    let _ = child.wait();
                }
                return Err(self.stop().err().unwrap_or(RunError::Broke));
            }
        }
    }

    /// Stops carrying and returns the engine, with its last figures.
    ///
    /// # Errors
    /// When the carrier broke.
    pub fn stop(&mut self) -> Result<Option<Engine>, RunError> {
        self.handle.stop();
        match self.carrier.take().map(JoinHandle::join) {
            None => Ok(None),
            Some(Ok(result)) => result.map(Some).map_err(RunError::system("waiting for packets")),
            Some(Err(_)) => Err(RunError::Broke),
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// The exit code for how a command ended, as shells have it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

fn engine_options(scene: &Scene, network: &Network) -> EngineOptions {
    let LabTable { seed, gso, convergence, routing, ecmp, .. } = scene.lab;
    let routing = routing.unwrap_or_else(|| Routing::fitting(network));
    let policy = RoutePolicy { mode: routing.into(), ecmp };
    EngineOptions { seed, gso, convergence, policy, ..EngineOptions::default() }
}

/// Keeps the signals that end a lab for [`Lab::wait`], in this thread and those that it starts. Returns
/// which were kept before as well.
fn block_signals() -> nix::Result<(SignalFd, SigSet)> {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGCHLD] {
        signals.add(signal);
    }
    let before = signals.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
    Ok((SignalFd::with_flags(&signals, flags)?, before))
}

/// The description of the lab for other programs.
fn entry(scene: &Scene, options: &Options) -> Entry {
    let systems = scene.systems();
    let hosts = systems.iter().map(|host| {
        let (namespace, made) = match host.joint() {
            Joint::Made => (Some(options.namespace_of(host)), true),
            Joint::Found(name) => (Some(name.to_owned()), false),
            Joint::Tap(_) | Joint::Xdp(_) => (None, false),
        };
        HostEntry { name: host.name.clone(), attach: host.attach.clone(), namespace, made }
    });
    Entry { scene: options.file.clone(), hosts: hosts.collect() }
}

/// An /etc/hosts with the hosts of the scene, and with its nodes if it has them: with their own addresses
/// and those of their interfaces, so that traceroute shows their names. A name that a host has
/// is the host's.
fn names(scene: &Scene, stage: &Stage, engine: &Engine, ports: &[PortId]) -> String {
    let mut text = "127.0.0.1 localhost\n::1 localhost ip6-localhost\n".to_owned();
    let systems = scene.systems();
    let hosts = systems.iter();
    let mut lines: Vec<_> =
        hosts.flat_map(|host| host.address.iter().map(|a| (a.addr(), &host.name))).collect();
    let is_host = |name: &str| systems.iter().any(|host| host.name == name);
    for node in scene.nodes.iter().filter(|node| !is_host(&node.name)) {
        lines.extend(node.address.iter().map(|address| (*address, &node.name)));
        let Some(id) = stage.network.find(&node.name) else { continue };
        let network = &stage.network;
        let own4 = network.address4(id).map(IpAddr::from);
        let own6 = network.address6(id).map(IpAddr::from);
        let interfaces = network.links_of(id).flat_map(|link| {
            let four = network.interface4(link).map(IpAddr::from);
            four.into_iter().chain(network.interface6(link).map(IpAddr::from))
        });
        let beside = stage.attached.iter().zip(ports).filter(|(attached, _)| **attached == id);
        let towards = beside.flat_map(|(_, port)| {
            let four = engine.gateway4(*port).map(IpAddr::from);
            four.into_iter().chain(engine.gateway6(*port).map(IpAddr::from))
        });
        let unwritten = own4.into_iter().chain(own6).chain(interfaces).chain(towards);
        let unwritten = unwritten.filter(|address| !node.address.contains(address));
        lines.extend(unwritten.map(|address| (address, &node.name)));
    }
    for (address, name) in lines {
        let _ = writeln!(text, "{address} {name}");
    }
    text
}

/// The node's MAC address on a port: locally administered, with `nig` and the port's number.
fn node_mac(port: usize) -> Mac {
    let [high, low] = (port as u16).to_be_bytes();
    Mac([0x02, b'n', b'i', b'g', high, low])
}

/// The host's.
fn host_mac(port: PortId) -> Mac {
    let [high, low] = port.0.to_be_bytes();
    Mac([0x02, b'n', b'i', b'h', high, low])
}

/// Makes or finds what a host is joined by. `make` makes its namespace.
fn open(
    host: &HostTable,
    id: PortId,
    gateways: Gateways,
    make: impl FnOnce() -> Result<Namespace, HostError>,
) -> Result<(Option<Namespace>, Port), RunError> {
    let tap = |name: &str| Tap::open(name).map_err(|error| RunError::Tap(host.name.clone(), error));
    let inside = host.namespace.as_deref();
    let namespace = match host.joint() {
        Joint::Made => make()?,
        Joint::Found(name) => Namespace::open(name)?,
        Joint::Tap(name) => {
            // Opening makes a device that is not there.
            if within(inside, || if_nametoindex(name))?.is_err() {
                let at = inside.map(|name| format!("-n {name} ")).unwrap_or_default();
                return Err(RunError::NoTap(host.name.clone(), name.to_owned(), at));
            }
            return Ok((None, Port::Tap(within(inside, || tap(name))??)));
        }
        Joint::Xdp(name) => {
            let open = || xsk::Interface::open(name);
            let opened = within(inside, open)?;
            let opened = opened.map_err(|error| RunError::Xdp(host.name.clone(), error))?;
            return Ok((None, Port::Xdp(opened.into())));
        }
    };
    let interface = Interface {
        name: host.interface().to_owned(),
        mac: host_mac(id).0,
        mtu: host.mtu(),
        addresses: host.address.to_vec(),
        queue: QUEUE,
    };
    let gateways = if host.has_default_route() { gateways } else { Gateways::default() };
    let opened = namespace.enter(|| {
        let opened = tap(&interface.name);
        if opened.is_ok() {
            let configured = interface.configure(gateways);
            configured.map_err(|e| HostError::Netlink(namespace.name().to_owned(), e))?;
        }
        Ok(opened)
    })?;
    Ok((Some(namespace), Port::Tap(opened?)))
}

/// Runs a closure in a namespace if one is named.
fn within<R: Send>(
    namespace: Option<&str>,
    closure: impl FnOnce() -> R + Send,
) -> Result<R, HostError> {
    match namespace {
        Some(name) => Namespace::open(name)?.enter(|| Ok(closure())),
        None => Ok(closure()),
    }
}

/// Starts the thread that carries. However it ends, `ended` becomes readable.
fn carry(mut carrier: Carrier, ended: Arc<EventFd>) -> io::Result<JoinHandle<io::Result<Engine>>> {
    struct Notify(Arc<EventFd>);
    impl Drop for Notify {
        fn drop(&mut self) {
            let _ = self.0.write(1);
        }
    }
    std::thread::Builder::new().name("lab".into()).spawn(move || {
        let _notify = Notify(ended);
        capabilities::give_up()?;
        // Packets are late as long as the thread waits for a core. Without it the lab is only less exact.
        if let Err(error) = schedule::set_slice(SLICE) {
            tracing::debug!(%error, "the kernel does not shorten the slice");
        }
        carrier.run()?;
        Ok(carrier.engine)
    })
}
