//! Where the gate is: its programs on the internal interfaces.
//!
//! Links are pinned as `link-IFINDEX-POINT`. Filters, where the kernel has no TCX, stay by themselves;
//! the map `gate_filtered` says at which interfaces, and the kernel takes out those that are deleted.

use super::{
    AttachMode, Gate, Inner, OpenError,
    pin::{self, OWNER, filtered},
    put_interfaces, types,
};
use crate::{
    link::{self, Filter, Hook, HookKind, Life, Link},
    xdp_link,
};
use libbpf_rs::{MapCore as _, MapFlags, libbpf_sys};
use std::{
    collections::HashMap,
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::Path,
    sync::{MutexGuard, PoisonError},
};

/// Internal interfaces that one gate has at most.
pub const INTERFACES: usize = types::gate_limits::GATE_INTERNALS.0 as usize;

/// Attach points.
const INGRESS: &str = "ingress";
const EGRESS: &str = "egress";
const DRIVER: &str = "driver";

/// Those of traffic control.
const HOOKS: [(Hook, &str); 2] = [(Hook::Ingress, INGRESS), (Hook::Egress, EGRESS)];

/// Programs on interfaces, by interface and attach point.
pub(super) type Links = HashMap<(u32, String), Link>;

/// The gate could not be put on an interface.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Its frames are none of Ethernet.
    #[error(
        "interface {ifindex} carries no Ethernet frames (its hardware type is {kind}): the gate takes Ethernet interfaces, VLANs, bridges and bonds of them, and veth"
    )]
    NoEthernet {
        /// The interface.
        ifindex: u32,
        /// linux/if_arp.h, ARPHRD_*.
        kind: u16,
    },
    /// The kernel refuses.
    #[error(
        "cannot attach the gate to interface {ifindex} by {kind}: {source}; it needs an interface of this network namespace, CAP_NET_ADMIN and, for clsact, CONFIG_NET_SCH_INGRESS and CONFIG_NET_CLS_BPF"
    )]
    Refused {
        /// The interface.
        ifindex: u32,
        /// How it was tried.
        kind: HookKind,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The driver refuses.
    #[error(
        "cannot refuse in the driver of interface {ifindex} in {mode} mode: {source}; another XDP program may be there (`bpftool net`), or the driver has none: try the other mode, or set refuse_at = \"stack\""
    )]
    Driver {
        /// The interface.
        ifindex: u32,
        /// What was asked for.
        mode: AttachMode,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Too many.
    #[error("a gate has at most {INTERFACES} internal interfaces")]
    TooMany,
    /// The link could not be kept.
    #[error("cannot keep the gate's link to interface {ifindex} in {path}: {source}")]
    Pin {
        /// The interface.
        ifindex: u32,
        /// The file.
        path: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The settings could not be written.
    #[error("cannot set the interfaces of the gate's programs: {0}")]
    Control(libbpf_rs::Error),
}

impl Gate {
    /// Puts the gate on an internal interface of the calling thread's network namespace, or does nothing
    /// if it is there.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn attach(&self, ifindex: u32) -> Result<(), AttachError> {
        let refused = |source| AttachError::Refused { ifindex, kind: self.hook_kind, source };
        let kind = link::hardware(ifindex).map_err(refused)?;
        if kind != libc::ARPHRD_ETHER {
            return Err(AttachError::NoEthernet { ifindex, kind });
        }
        for (hook, point) in HOOKS {
            let mut links = self.links();
            let interfaces = links.keys().filter(|(_, there)| there == point).count();
            if links.contains_key(&(ifindex, point.to_owned())) {
                continue;
            }
            if interfaces >= INTERFACES {
                return Err(AttachError::TooMany);
            }
            let life = match &self.settings.pin {
                Some(_) => Life::Pinned,
                None => Life::Process,
            };
            if (self.hook_kind, life) == (HookKind::Clsact, Life::Pinned) {
                self.inner.note(ifindex).map_err(AttachError::Control)?;
            }
            let program = self.inner.program(point);
            let link = Link::attach(self.hook_kind, program, ifindex, hook, OWNER, life)
                .map_err(refused)?;
            match &link {
                Link::Kernel(link) => self.keep(link, ifindex, point)?,
                Link::Filter(filter) if hook == Hook::Ingress => {
                    self.inner.send_through(filter, *self.queue()).map_err(refused)?;
                }
                Link::Filter(_) => {}
            }
            links.insert((ifindex, point.to_owned()), link);
        }
        self.tell_interfaces().map_err(AttachError::Control)
    }

    /// Refuses in the driver of an internal interface too, where it costs least. The gate must be on that
    /// interface, which judges all that this lets through.
    ///
    /// # Errors
    /// When the kernel or the driver refuses.
    pub fn attach_driver(&self, ifindex: u32, mode: AttachMode) -> Result<(), AttachError> {
        let mut links = self.links();
        if links.contains_key(&(ifindex, DRIVER.to_owned())) {
            return Ok(());
        }
        let flags = match mode {
            AttachMode::Native => libbpf_sys::XDP_FLAGS_DRV_MODE,
            AttachMode::Generic => libbpf_sys::XDP_FLAGS_SKB_MODE,
        };
        let link = xdp_link::attach(self.inner.program(DRIVER), ifindex, flags)
            .map_err(|source| AttachError::Driver { ifindex, mode, source })?;
        self.keep(&link, ifindex, DRIVER)?;
        links.insert((ifindex, DRIVER.to_owned()), Link::Kernel(link));
        Ok(())
    }

    /// Refuses no more in the driver of an interface.
    pub fn detach_driver(&self, ifindex: u32) {
        if let Some(link) = self.links().remove(&(ifindex, DRIVER.to_owned())) {
            self.remove(link, ifindex, DRIVER);
        }
    }

    /// The internal interfaces.
    pub fn interfaces(&self) -> Vec<u32> {
        let mut interfaces: Vec<u32> = self.links().keys().map(|(ifindex, _)| *ifindex).collect();
        interfaces.sort_unstable();
        interfaces.dedup();
        interfaces
    }

    /// Whether the gate is on that interface in both directions; not after it was deleted.
    pub fn is_attached(&self, ifindex: u32) -> bool {
        let links = self.links();
        HOOKS.iter().all(|(_, point)| {
            links
                .get(&(ifindex, (*point).to_owned()))
                .is_some_and(|link| link.interface() == ifindex)
        })
    }

    /// Takes the gate off an interface.
    pub fn detach(&self, ifindex: u32) {
        let taken: Vec<_> = self.links().extract_if(|(there, _), _| *there == ifindex).collect();
        for ((_, point), link) in taken {
            self.remove(link, ifindex, &point);
        }
        self.inner.forget(ifindex);
        if let Err(error) = self.tell_interfaces() {
            tracing::warn!("cannot set the interfaces of the gate's programs: {error}");
        }
    }

    /// Takes the gate off all interfaces and removes what is pinned: packets go as if it had never been.
    ///
    /// # Errors
    /// When what is pinned cannot be removed.
    pub fn close(self) -> io::Result<()> {
        for (_, link) in self.links().drain() {
            link.remove();
        }
        match &self.settings.pin {
            Some(path) => pin::remove(path),
            None => Ok(()),
        }
    }

    /// Has packets from internal hosts that have a class queue in a device: behind filters, as programs
    /// at TCX send them there themselves.
    pub(super) fn send_through(&self, queue: Option<u32>) -> Result<(), OpenError> {
        *self.queue() = queue;
        for ((ifindex, point), link) in self.links().iter() {
            // What is gone will be attached anew.
            if let (Link::Filter(filter), INGRESS) = (link, point.as_str())
                && link.interface() != 0
            {
                let ifindex = *ifindex;
                self.inner
                    .send_through(filter, queue)
                    .map_err(|source| OpenError::Queue { ifindex, source })?;
            }
        }
        Ok(())
    }

    fn queue(&self) -> MutexGuard<'_, Option<u32>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pins a link, if links are to be pinned.
    fn keep(&self, link: &OwnedFd, ifindex: u32, point: &str) -> Result<(), AttachError> {
        let Some(path) = &self.settings.pin else { return Ok(()) };
        let file = pin::name(path, ifindex, point);
        link::pin(link.as_fd(), &file).map_err(|source| {
            let path = file.display().to_string();
            AttachError::Pin { ifindex, path, source }
        })
    }

    fn remove(&self, link: Link, ifindex: u32, point: &str) {
        if let (Link::Kernel(_), Some(path)) = (&link, &self.settings.pin) {
            // It may have been removed by hand.
            let _ = std::fs::remove_file(pin::name(path, ifindex, point));
        }
        link.remove();
    }

    fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_interfaces(&self) -> Result<(), libbpf_rs::Error> {
        let interfaces = self.interfaces();
        self.change(|control| put_interfaces(control, &interfaces))
    }
}

impl Inner {
    /// The program for an attach point.
    fn program(&self, point: &str) -> BorrowedFd<'_> {
        let programs = &self.skeleton.progs;
        let program = match point {
            EGRESS => &programs.gate_to_internal,
            DRIVER => &programs.gate_driver,
            _ => &programs.gate_from_internal,
        };
        program.as_fd()
    }

    fn send_through(&self, filter: &Filter, queue: Option<u32>) -> io::Result<()> {
        match queue {
            Some(device) => filter.send_through(device, self.skeleton.progs.gate_limited.as_fd()),
            None => filter.send_nowhere(),
        }
    }

    /// Puts these programs in the place of those that a process before has left on interfaces.
    pub(super) fn take_over(&self, path: &Path) -> io::Result<Links> {
        let mut links = Links::new();
        for pinned in pin::links(path)? {
            link::replace(pinned.link.as_fd(), self.program(&pinned.point))?;
            links.insert((pinned.ifindex, pinned.point), Link::Kernel(pinned.link));
        }
        for (_, ifindex) in filtered(&self.skeleton.maps.gate_filtered) {
            for (hook, point) in HOOKS {
                // It may have been removed by hand.
                if let Some(filter) = Filter::find(ifindex, hook, OWNER)? {
                    filter.replace(self.program(point))?;
                    links.insert((ifindex, point.to_owned()), Link::Filter(filter));
                }
            }
        }
        Ok(links)
    }

    /// Writes down that an interface has filters, before it has them.
    fn note(&self, ifindex: u32) -> Result<(), libbpf_rs::Error> {
        let map = &self.skeleton.maps.gate_filtered;
        let known: HashMap<u32, u32> = filtered(map).collect();
        if known.values().any(|there| *there == ifindex) {
            return Ok(());
        }
        // There are not more interfaces than places.
        let free = (0..map.max_entries()).find(|place| !known.contains_key(place));
        let place = free.unwrap_or_default().to_ne_bytes();
        map.update(&place, &ifindex.to_ne_bytes(), MapFlags::ANY)
    }

    fn forget(&self, ifindex: u32) {
        let map = &self.skeleton.maps.gate_filtered;
        for (place, _) in filtered(map).filter(|(_, there)| *there == ifindex) {
            // It may have been deleted meanwhile.
            let _ = map.delete(&place.to_ne_bytes());
        }
    }
}
