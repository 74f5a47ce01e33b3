//! The tables of flows and of refusals, as user space changes them. Flows are changed by a program in
//! the kernel, where they are: what is counted meanwhile is not lost.

use super::flow::{CacheKey, Flow, FlowVerdict, Key, Manage, PacketAction};
use super::skeleton::types;
use super::{Inner, bytes_of, coarse_ns};
use libbpf_rs::{MapCore as _, MapFlags, libbpf_sys};
use std::{
    io,
    os::fd::{AsFd as _, AsRawFd as _},
    sync::{Arc, PoisonError},
    time::Duration,
};

/// The tables of a gate; all copies are the same.
#[derive(Clone, Debug)]
pub struct Table {
    pub(super) inner: Arc<Inner>,
}

/// A flow or refusal could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// There is no room for one more decided flow.
    #[error("the table of decided flows is full; `max_flows` is its size")]
    Full,
    /// The kernel refuses.
    #[error("the kernel refuses to change a flow's entry: {0}")]
    Order(io::Error),
    /// The kernel refuses.
    #[error("the kernel refuses to show its flows: {0}")]
    Walk(io::Error),
    /// The kernel refuses.
    #[error("the kernel refuses to access the gate's tables: {0}")]
    Map(#[from] libbpf_rs::Error),
}

impl Table {
    /// Says what becomes of a flow, whether it was seen already or not.
    ///
    /// # Errors
    /// When there is no room for it.
    pub fn decide(&self, key: &Key, verdict: &FlowVerdict) -> Result<(), TableError> {
        self.decide_with(key, verdict, None)
    }

    /// The same, and what is done with the packets of both sides (the lower one first), at once: no
    /// packet of the flow meets the one without the other.
    ///
    /// # Errors
    /// When there is no room for it.
    pub fn decide_managed(
        &self,
        key: &Key,
        verdict: &FlowVerdict,
        manage: [Manage; 2],
    ) -> Result<(), TableError> {
        self.decide_with(key, verdict, Some(manage))
    }

    fn decide_with(
        &self,
        key: &Key,
        verdict: &FlowVerdict,
        manage: Option<[Manage; 2]>,
    ) -> Result<(), TableError> {
        let order = match manage {
            Some(_) => types::gate_order::GATE_ORDER_BOTH,
            None => types::gate_order::GATE_ORDER_DECIDE,
        };
        let request = types::gate_request {
            order: order.0,
            action: verdict.action.number().0 as u8,
            limit: verdict.limit,
            label: verdict.label,
            interest: manage.unwrap_or_default().map(interest),
            ..Default::default()
        };
        self.order(key, request)?;
        let mut settling = self.inner.settling.lock().unwrap_or_else(PoisonError::into_inner);
        settling.0.push(*key);
        Ok(())
    }

    /// Says what is done with the packets of a decided flow that may pass, its lower side's first;
    /// whether there is that flow.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn manage(&self, key: &Key, manage: [Manage; 2]) -> Result<bool, TableError> {
        let request = types::gate_request {
            order: types::gate_order::GATE_ORDER_MANAGE.0,
            interest: manage.map(interest),
            ..Default::default()
        };
        self.order(key, request)
    }

    /// Sets how many first packets with payload are copied of an undecided flow, counted from its
    /// beginning; whether there is that flow.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn watch(&self, key: &Key, packets: u32) -> Result<bool, TableError> {
        let order = types::gate_order::GATE_ORDER_BUDGET.0;
        self.order(key, types::gate_request { order, budget: packets, ..Default::default() })
    }

    /// A flow as it is now.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn get(&self, key: &Key) -> Result<Option<Flow>, TableError> {
        let maps = &self.inner.skeleton.maps;
        if let Some(bytes) = maps.gate_decided.lookup(&key.0, MapFlags::ANY)? {
            return Ok(Flow::of(&bytes));
        }
        let bytes = maps.gate_fresh.lookup(&key.0, MapFlags::ANY)?;
        Ok(bytes.and_then(|bytes| Flow::of(&bytes)))
    }

    /// Takes a flow out and returns it as it was. Its next packet, if there is one, begins a new one.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn remove(&self, key: &Key) -> Result<Option<Flow>, TableError> {
        let maps = &self.inner.skeleton.maps;
        let settle = types::gate_order::GATE_ORDER_SETTLE.0;
        self.order(key, types::gate_request { order: settle, ..Default::default() })?;
        let decided = maps.gate_decided.lookup_and_delete(&key.0)?;
        if let Some(bytes) = decided {
            return Ok(Flow::of(&bytes));
        }
        let bytes = maps.gate_fresh.lookup_and_delete(&key.0)?;
        Ok(bytes.and_then(|bytes| Flow::of(&bytes)))
    }

    /// Refuses what this host begins with that socket for a time, at its first packet.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn refuse(
        &self,
        key: &CacheKey,
        action: PacketAction,
        lifetime: Duration,
    ) -> Result<(), TableError> {
        let lifetime = u64::try_from(lifetime.as_nanos()).unwrap_or(u64::MAX >> 1);
        let refusal = types::gate_refusal {
            until_ns: coarse_ns().saturating_add(lifetime.min(u64::MAX >> 2)),
            action: action.number().0,
            ..Default::default()
        };
        let map = &self.inner.skeleton.maps.gate_refusals;
        Ok(map.update(&key.bytes(), bytes_of(&refusal), MapFlags::ANY)?)
    }

    /// Packets that a refusal has refused, while it is in the cache.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn refused(&self, key: &CacheKey) -> Result<Option<u64>, TableError> {
        let map = &self.inner.skeleton.maps.gate_refusals;
        let value = map.lookup(&key.bytes(), MapFlags::ANY)?;
        let value = value.and_then(|value| super::read::<types::gate_refusal>(&value));
        Ok(value.map(|value| value.refused))
    }

    /// Forgets all refusals.
    pub fn forget_refusals(&self) {
        let map = &self.inner.skeleton.maps.gate_refusals;
        let keys: Vec<_> = map.keys().collect();
        for key in keys {
            // Another process, or the map itself, may have been earlier.
            let _ = map.delete(&key);
        }
    }

    /// Settles what was decided before the last call of this: after so long no packet is in flight
    /// that was looked up before the decision.
    pub(super) fn settle(&self) {
        let mut settling = self.inner.settling.lock().unwrap_or_else(PoisonError::into_inner);
        let (new, old) = &mut *settling;
        let ready = std::mem::replace(old, std::mem::take(new));
        drop(settling);
        let order = types::gate_order::GATE_ORDER_SETTLE.0;
        for key in ready {
            let request = types::gate_request { order, ..Default::default() };
            if let Err(error) = self.order(&key, request) {
                tracing::warn!("{error}");
            }
        }
    }

    /// Runs the program that changes flows.
    fn order(&self, key: &Key, mut request: types::gate_request) -> Result<bool, TableError> {
        if let Some(raw) = super::read(&key.0) {
            request.key = raw;
        }
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
            ctx_in: (&raw const request).cast(),
            ctx_size_in: size_of_val(&request) as u32,
            ..Default::default()
        };
        let program = self.inner.skeleton.progs.gate_order.as_fd().as_raw_fd();
        // SAFETY: the options say their size and that of the request; both live through the call.
        let result = unsafe { libbpf_sys::bpf_prog_test_run_opts(program, &raw mut options) };
        if result < 0 {
            return Err(TableError::Order(io::Error::from_raw_os_error(-result)));
        }
        match types::gate_answer(options.retval) {
            types::gate_answer::GATE_DONE => Ok(true),
            types::gate_answer::GATE_FULL => Err(TableError::Full),
            _ => Ok(false),
        }
    }
}

fn interest(manage: Manage) -> types::gate_interest {
    use types::gate_manage as m;
    let bit = |set: bool, bit: m| if set { bit.0 } else { 0 };
    types::gate_interest {
        manage: bit(manage.copy, m::GATE_COPY)
            | bit(manage.skip_to.is_some(), m::GATE_SKIP)
            | bit(manage.brief, m::GATE_BRIEF)
            | bit(manage.hold_from.is_some(), m::GATE_HOLD),
        skip_to: manage.skip_to.unwrap_or(0),
        hold_from: manage.hold_from.unwrap_or(0),
    }
}
