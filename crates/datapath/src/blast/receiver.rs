//! The receiver: counts replies, finds duplicates and late ones, measures round-trip times.

use std::{
    mem,
    os::fd::{AsFd, OwnedFd},
};

use libbpf_rs::{MapCore, MapFlags, libbpf_sys::XDP_FLAGS_DRV_MODE, skel::OpenSkel};

use super::{
    LiveError, OBJECT, Request, Role, attach, open,
    skel::{BlastSkel, types},
    trimmed,
};
use crate::{
    load::undisturbed,
    run::{self, RunError, Verdict},
};

/// As in `bpf/abi/blast.h`.
const SECONDS: usize = 3600;
/// As in `bpf/abi/blast.h`.
const BUCKETS: usize = 2048;

const _: () = assert!(mem::size_of::<types::blast_tally>() == 64);

/// Counts replies; attached to the interface for as long as it lives.
pub struct Receiver {
    skel: BlastSkel<'static>,
    link: Option<OwnedFd>,
}

/// What was received so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests for which an undamaged reply came.
    pub received: u64,
    /// Replies beyond the first to a request.
    pub duplicated: u64,
    /// Received replies to a request older than one whose reply was received before (RFC 4737).
    pub reordered: u64,
    /// Replies with a wrong length, checksum or payload.
    pub corrupt: u64,
    /// Round-trip times: how many, and the sum, in nanoseconds.
    pub rtt_sum: u64,
    /// The shortest, in nanoseconds; 0 if there is none.
    pub rtt_min: u64,
    /// The longest, in nanoseconds.
    pub rtt_max: u64,
    /// Round-trip times in nanoseconds, rounded by up to 1.6 %, and how often they occurred.
    pub rtt: Vec<(u64, u64)>,
    /// Received replies by the second in which the request was made.
    pub by_second: Vec<u64>,
}

impl Receiver {
    /// Attaches to an interface in native mode. `start` as in [`super::Sender::load`].
    ///
    /// # Errors
    /// When the frame is none that the program can send, or the kernel refuses the program.
    pub fn attach(interface: u32, request: &Request, start: u64) -> Result<Self, LiveError> {
        let mut receiver = Self::load(request, start)?;
        let program = receiver.skel.progs.blast_receive.as_fd();
        receiver.link = Some(attach(program, interface, XDP_FLAGS_DRV_MODE)?);
        Ok(receiver)
    }

    /// Loads the program without attaching it; [`Receiver::run`] runs it.
    ///
    /// # Errors
    /// As [`Receiver::attach`].
    pub fn load(request: &Request, start: u64) -> Result<Self, LiveError> {
        let plan = request.plan(0)?;
        let mut open = open(Role::Receive)?;
        if let Some(data) = &mut open.maps.rodata_data {
            data.plan = plan;
            let rest = &request.frame[plan.head_len as usize..];
            data.rest[..rest.len()].copy_from_slice(rest);
        }
        if let Some(data) = &mut open.maps.bss_data {
            data.start = start;
        }
        open.maps
            .seen
            .set_max_entries(request.total.div_ceil(64))
            .map_err(|error| OBJECT.error(error))?;
        let skel = undisturbed(|| open.load()).map_err(|error| OBJECT.error(error))?;
        Ok(Self { skel, link: None })
    }

    /// Runs the program on a frame from memory, as if it had come in.
    ///
    /// # Errors
    /// When the kernel does not run it, as for a frame of less than 14 bytes.
    pub fn run(&self, frame: &[u8]) -> Result<Verdict, RunError> {
        Ok(run::once(&self.skel.progs.blast_receive, None, frame)?.0)
    }

    /// What was received so far.
    ///
    /// # Errors
    /// When the kernel does not give the counters.
    pub fn tally(&self) -> Result<Tally, LiveError> {
        let mut out = Tally::default();
        for [received, duplicated, reordered, corrupt, sum, min, max, _] in
            per_cpu::<8>(&self.skel.maps.tally, 0)?
        {
            out.received += received;
            out.duplicated += duplicated;
            out.reordered += reordered;
            out.corrupt += corrupt;
            out.rtt_sum += sum;
            out.rtt_max = out.rtt_max.max(max);
            if min > 0 && (out.rtt_min == 0 || min < out.rtt_min) {
                out.rtt_min = min;
            }
        }
        let mut buckets = vec![0; BUCKETS];
        for cpu in per_cpu::<BUCKETS>(&self.skel.maps.histogram, 0)? {
            for (bucket, count) in buckets.iter_mut().zip(cpu) {
                *bucket += count;
            }
        }
        out.rtt = (0..).map(bucket_middle).zip(buckets).filter(|&(_, count)| count > 0).collect();
        let mut seconds = Vec::new();
        // Replies to requests of one second come with those of the next at the latest, unless
        // nothing came for a whole second: all seconds must be read.
        for second in 0..SECONDS as u32 {
            let cpus = per_cpu::<1>(&self.skel.maps.by_second, second)?;
            seconds.push(cpus.iter().map(|[count]| count).sum());
        }
        out.by_second = trimmed(&seconds);
        Ok(out)
    }

    /// Requests answered so far, without the rest of [`Receiver::tally`].
    ///
    /// # Errors
    /// When the kernel does not give the counters.
    pub fn received(&self) -> Result<u64, LiveError> {
        Ok(per_cpu::<8>(&self.skel.maps.tally, 0)?.iter().map(|counts| counts[0]).sum())
    }
}

/// The middle of a bucket of round-trip times: the inverse of `record_rtt` in `bpf/blast.bpf.c`.
fn bucket_middle(bucket: u64) -> u64 {
    if bucket < 64 {
        return bucket;
    }
    let power = (bucket - 64) / 32 + 6;
    if power > 63 {
        return u64::MAX;
    }
    let width = 1 << (power - 5);
    (1 << power) + (bucket % 32) * width + width / 2
}

/// The 64-bit numbers of a value on each CPU.
fn per_cpu<const N: usize>(map: &impl MapCore, key: u32) -> Result<Vec<[u64; N]>, LiveError> {
    let cpus = map
        .lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY)
        .map_err(LiveError::Read)?
        .unwrap_or_default();
    let numbers = |bytes: Vec<u8>| {
        let mut out = [0; N];
        for (number, bytes) in out.iter_mut().zip(bytes.chunks_exact(8)) {
            let mut word = [0; 8];
            word.copy_from_slice(bytes);
            *number = u64::from_ne_bytes(word);
        }
        out
    };
    Ok(cpus.into_iter().map(numbers).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `record_rtt` of `bpf/blast.bpf.c`.
    fn bucket(rtt: u64) -> u64 {
        if rtt < 64 {
            return rtt;
        }
        let bit = u64::from(rtt.ilog2());
        64 + (bit - 6) * 32 + ((rtt >> (bit - 5)) & 31)
    }

    #[test]
    fn buckets_are_exact_to_1_6_percent() {
        for shift in 0..64 {
            for low in [0, 1, 3, 7] {
                let rtt = (1u64 << shift) | (low << shift >> 3);
                let middle = bucket_middle(bucket(rtt)) as f64;
                let error = (middle - rtt as f64).abs() / rtt as f64;
                assert!(error <= 0.016, "{rtt}: {middle}");
            }
        }
        assert!(bucket(u64::MAX) < BUCKETS as u64);
    }
}
