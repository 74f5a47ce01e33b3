//! The mask's programs, `bpf/mask.bpf.c`: packets masked where the kernel has them, or copied for this
//! process to mask where the kernel has no cipher.
//!
//! - [`Mask`]: the programs, their keys, where they are attached.
//! - [`Reader`]: masked packets.
//! - [`Counts`]: what happened to all packets.

mod copier;
mod error;
mod settings;
mod skeleton;
#[cfg(test)]
mod tests;

pub use crate::load::LoadError;
pub use crate::ring::Pace;
pub use error::{AttachError, KeyError, TrialError};
pub use settings::{
    FILTER, FilterInstruction, HEADER, Header, Instruction, KINDS, Keys, Link, MOST, Mapping,
    Operation, SNAP, Settings,
};

use crate::{
    link::{self, Hook, HookKind, Life, Link as Attached},
    load::{Object, log_to_tracing, undisturbed, wait_for_readers},
    ring::Ring,
};
use copier::Copier;
use libbpf_rs::{
    MapCore as _, MapFlags, ProgramInput,
    skel::{OpenSkel as _, SkelBuilder as _},
};
use serde::Serialize;
use skeleton::{MaskSkel, MaskSkelBuilder, types};
use std::{
    io,
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd},
};
use zeroize::Zeroizing;

/// What is loaded; [`crate::kernel::cipher`] asks for the cipher.
const OBJECT: Object = Object { name: "mask" };

/// Who masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// The kernel, where [`crate::kernel::cipher`] finds a cipher.
    Kernel,
    /// This process: packets that are wanted are copied to it as they are.
    Process,
}

/// Which packets of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Those that come in.
    In,
    /// Those that go out.
    Out,
}

/// What packets of an interface begin with, if it is known, in the calling thread's network namespace.
///
/// # Errors
/// When nothing is known of it, or there is no such interface.
pub fn link_of(ifindex: u32) -> Result<Link, AttachError> {
    // linux/if_arp.h; the loopback's frames have an Ethernet header.
    const ARPHRD_NONE: u16 = 0xfffe;
    const ARPHRD_RAWIP: u16 = 519;
    let kind =
        link::hardware(ifindex).map_err(|source| AttachError::Refused { ifindex, source })?;
    match kind {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Ok(Link::Ethernet),
        ARPHRD_NONE
        | libc::ARPHRD_TUNNEL
        | libc::ARPHRD_TUNNEL6
        | libc::ARPHRD_SIT
        | ARPHRD_RAWIP => Ok(Link::Ip),
        _ => Err(AttachError::Link { ifindex, kind }),
    }
}

/// The programs. When this is dropped they are gone, and what they remembered is wiped.
pub struct Mask {
    skeleton: MaskSkel<'static>,
    engine: Engine,
    links: Vec<Attached>,
    copiers: Vec<Copier>,
    ring_bytes: usize,
}

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mask").field("links", &self.links).finish_non_exhaustive()
    }
}

impl Mask {
    /// Loads the programs. They pass all packets on, and give none before they have a key.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn open(settings: &Settings, engine: Engine) -> Result<Self, LoadError> {
        log_to_tracing();
        // As in the gate: the skeleton borrows this storage for as long as it lives.
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let error = |error| OBJECT.error(error);
        let mut open = MaskSkelBuilder::default().open(storage).map_err(error)?;
        if let Some(data) = open.maps.rodata_data.as_deref_mut() {
            settings.write(&mut data.mask_settings);
        }
        let masks = engine == Engine::Kernel;
        let programs = &mut open.progs;
        for (program, is_used) in [
            (&mut programs.mask_incoming, masks),
            (&mut programs.mask_outgoing, masks),
            (&mut programs.mask_trial, masks),
            (&mut programs.mask_set_key, masks),
            (&mut programs.mask_copy_incoming, !masks),
            (&mut programs.mask_copy_outgoing, !masks),
            (&mut programs.mask_copy_trial, !masks),
        ] {
            program.set_autoload(is_used);
        }
        open.maps.mask_ciphers.set_autocreate(masks).map_err(error)?;
        let processors = libbpf_rs::num_possible_cpus().map_err(error)?;
        open.maps.mask_units.set_max_entries(processors as u32).map_err(error)?;
        open.maps.mask_ring.set_max_entries(settings.ring_bytes).map_err(error)?;
        let skeleton = undisturbed(|| open.load()).map_err(error)?;
        let ring_bytes = settings.ring_bytes as usize;
        Ok(Self { skeleton, engine, links: Vec::new(), copiers: Vec::new(), ring_bytes })
    }

    /// Sets the key of packets from a time on, in nanoseconds of CLOCK_TAI. There are two slots, 0 and 1,
    /// of which that one is used whose time came last. `epoch` is another number for each key, and not 0.
    /// Where this process masks, the kernel only notes the epoch.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_key(
        &self,
        slot: u32,
        begins_ns: u64,
        epoch: u32,
        keys: &Keys,
    ) -> Result<(), KeyError> {
        // The slot is not used while its ciphers change.
        self.write_period(slot, types::mask_period { begins_ns: u64::MAX, ..Default::default() })?;
        wait_for_readers();
        let mut period = types::mask_period { begins_ns, epoch, ..Default::default() };
        if self.engine == Engine::Kernel {
            self.set_ciphers(slot, keys)?;
            period.pad = [(keys.pad >> 64) as u64, keys.pad as u64];
        }
        self.write_period(slot, period)?;
        Ok(())
    }

    fn set_ciphers(&self, slot: u32, keys: &Keys) -> Result<(), KeyError> {
        use types::mask_cipher_name as name;
        let ciphers = [
            (name::MASK_NUMBERS, &keys.numbers),
            (name::MASK_FIRST, &keys.first),
            (name::MASK_SECOND, &keys.second),
        ];
        for (cipher, key) in ciphers {
            let mut asked = Zeroizing::new([0; size_of::<types::mask_key>()]);
            asked[..4].copy_from_slice(&slot.to_ne_bytes());
            asked[4..8].copy_from_slice(&cipher.0.to_ne_bytes());
            asked[8..].copy_from_slice(key);
            let input = ProgramInput { context_in: Some(&mut *asked), ..Default::default() };
            let answer = self.skeleton.progs.mask_set_key.test_run(input)?;
            if answer.return_value != 0 {
                return Err(KeyError::Cipher(answer.return_value as i32));
            }
        }
        Ok(())
    }

    fn write_period(&self, slot: u32, period: types::mask_period) -> libbpf_rs::Result<()> {
        let mut value = Zeroizing::new([0; size_of::<types::mask_period>()]);
        value[..8].copy_from_slice(&period.begins_ns.to_ne_bytes());
        value[8..16].copy_from_slice(&period.pad[0].to_ne_bytes());
        value[16..24].copy_from_slice(&period.pad[1].to_ne_bytes());
        value[24..28].copy_from_slice(&period.epoch.to_ne_bytes());
        let periods = &self.skeleton.maps.mask_periods;
        periods.update(&slot.to_ne_bytes(), &*value, MapFlags::ANY)
    }

    /// Puts the mask on an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn attach(&mut self, ifindex: u32, direction: Direction) -> Result<(), AttachError> {
        let programs = &self.skeleton.progs;
        if self.engine == Engine::Process {
            let program = match direction {
                Direction::In => &programs.mask_copy_incoming,
                Direction::Out => &programs.mask_copy_outgoing,
            };
            let copier = Copier::attach(program.as_fd(), ifindex, direction)
                .map_err(|source| AttachError::Socket { ifindex, source })?;
            self.copiers.push(copier);
            return Ok(());
        }
        let (program, hook) = match direction {
            Direction::In => (&programs.mask_incoming, Hook::Ingress),
            Direction::Out => (&programs.mask_outgoing, Hook::Egress),
        };
        let kind = HookKind::of_kernel();
        let link = Attached::attach(kind, program.as_fd(), ifindex, hook, "mask", Life::Process)
            .map_err(|source| AttachError::Refused { ifindex, source })?;
        self.links.push(link);
        Ok(())
    }

    /// Whether it is still on its interfaces: not after one was deleted.
    pub fn is_attached(&self) -> bool {
        self.links.iter().all(|link| link.interface() != 0)
            && self.copiers.iter().all(Copier::is_attached)
    }

    /// Takes the mask off all interfaces; what it has masked can still be read.
    pub fn detach(&mut self) {
        self.links.clear();
        self.copiers.clear();
    }

    /// The end at which masked packets come out. There must be one at most.
    ///
    /// # Errors
    /// When the ring cannot be mapped.
    pub fn reader(&self) -> io::Result<Reader> {
        let ring = self.skeleton.maps.mask_ring.as_fd().try_clone_to_owned()?;
        Ring::new(ring, self.ring_bytes).map(Reader)
    }

    /// What happened to packets so far.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn counts(&self) -> io::Result<Counts> {
        let ledger = &self.skeleton.maps.mask_ledger;
        let values = ledger.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY);
        let values = values.map_err(io::Error::other)?;
        let mut sums = [0; types::mask_count::MASK_COUNTS.0 as usize];
        for value in values.iter().flatten() {
            for (sum, count) in sums.iter_mut().zip(value.as_chunks::<8>().0) {
                *sum += u64::from_ne_bytes(*count);
            }
        }
        use types::mask_count as what;
        let of = |count: types::mask_count| sums[count.0 as usize];
        Ok(Counts {
            seen: of(what::MASK_SEEN),
            taken: of(what::MASK_TAKEN),
            not_in_sample: of(what::MASK_UNSAMPLED),
            not_wanted: of(what::MASK_FILTERED),
            lost_ring: of(what::MASK_RING_FULL),
            lost_unread: of(what::MASK_UNREAD),
            lost_key: of(what::MASK_NO_KEY),
            cut: of(what::MASK_CUT),
        })
    }

    /// Masks or copies one packet, of about 3,500 bytes at most, and gives the result; nothing if the filter
    /// does not want it. `number` is the packet's in its data set.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn try_one(
        &self,
        reader: &mut Reader,
        link: Link,
        packet: &[u8],
        number: u64,
    ) -> Result<Option<Vec<u8>>, TrialError> {
        let mut frame = Vec::with_capacity(16 + packet.len());
        frame.extend(number.to_ne_bytes());
        frame.extend(link.code().to_ne_bytes());
        frame.extend([0; 4]);
        frame.extend(packet);
        let input = ProgramInput { data_in: Some(&frame), ..ProgramInput::default() };
        let program = match self.engine {
            Engine::Kernel => &self.skeleton.progs.mask_trial,
            Engine::Process => &self.skeleton.progs.mask_copy_trial,
        };
        program
            .test_run(input)
            .map_err(|source| TrialError::Refused { length: packet.len(), source })?;
        let mut result = None;
        let pace = Pace { timeout: Default::default(), gather: Default::default(), most: 1 };
        reader.read(pace, |masked| result = Some(masked.bytes.to_vec()))?;
        Ok(result)
    }
}

impl Mask {
    /// Takes the mask off all interfaces and wipes what it remembers. Dropping it does so, too; this is for a
    /// process that ends without.
    pub fn wipe(&mut self) {
        self.detach();
        wait_for_readers();
        // Addresses and their mappings; the kernel wipes the ciphers' keys itself.
        let units = &self.skeleton.maps.mask_units;
        let nothing = vec![0; units.value_size() as usize];
        for processor in 0..units.max_entries() {
            // It can fail only if the map is not what it is.
            let _ = units.update(&processor.to_ne_bytes(), &nothing, MapFlags::ANY);
        }
        for slot in 0..2 {
            let _ = self.write_period(slot, types::mask_period::default());
        }
    }
}

impl Drop for Mask {
    fn drop(&mut self) {
        self.wipe();
    }
}

/// What happened to packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// All that were seen: the sum of those up to `lost_key`.
    pub seen: u64,
    /// Masked and given to user space.
    #[serde(rename = "masked")]
    pub taken: u64,
    /// Not in the sample.
    pub not_in_sample: u64,
    /// The filter does not want them.
    pub not_wanted: u64,
    /// Lost: user space reads too slowly.
    pub lost_ring: u64,
    /// Lost: the kernel did not give their bytes.
    pub lost_unread: u64,
    /// Lost: there was no key for their time, or a cipher failed.
    pub lost_key: u64,
    /// Taken, but longer than what is inspected.
    pub cut: u64,
}

impl Counts {
    /// Packets that should have been masked and were not.
    pub fn lost(&self) -> u64 {
        self.lost_ring + self.lost_unread + self.lost_key
    }
}

/// A masked packet, or a copy where this process masks.
#[derive(Clone, Copy, Debug)]
pub struct Masked<'a> {
    /// When it was seen, in nanoseconds of CLOCK_TAI.
    pub at_ns: u64,
    /// Bytes of it on the wire.
    pub length: u32,
    /// Which key was used: what was given to [`Mask::set_key`].
    pub epoch: u32,
    /// Where it went.
    pub direction: Direction,
    /// What is left of it.
    pub bytes: &'a [u8],
}

impl<'a> Masked<'a> {
    fn of(record: &'a [u8]) -> Option<Self> {
        let (header, bytes) = record.split_at_checked(size_of::<types::mask_record>())?;
        let word = |at: usize| header[at..].first_chunk().copied().map(u32::from_ne_bytes);
        let direction = if word(20)? == 0 { Direction::In } else { Direction::Out };
        Some(Self {
            at_ns: header.first_chunk().copied().map(u64::from_ne_bytes)?,
            length: word(8)?,
            bytes: bytes.get(..word(12)? as usize)?,
            epoch: word(16)?,
            direction,
        })
    }
}

/// Reads masked packets in the order in which they were masked.
#[derive(Debug)]
pub struct Reader(Ring);

impl Reader {
    /// Hands over packets that are there, and waits if there is none. Returns how many there were.
    ///
    /// # Errors
    /// When the system refuses to wait.
    pub fn read(&mut self, pace: Pace, mut each: impl FnMut(Masked<'_>)) -> io::Result<usize> {
        self.0.read(pace, |bytes| {
            if let Some(masked) = Masked::of(bytes) {
                each(masked);
            }
        })
    }
}

impl AsFd for Reader {
    /// To wait until there is something to read.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

const _: () = {
    assert!(size_of::<types::mask_instruction>() == 16);
    assert!(size_of::<types::mask_header>() == 312);
    assert!(size_of::<types::mask_record>() == 24);
    assert!(size_of::<types::mask_trial>() == 16);
    assert!(size_of::<types::mask_period>() == 32);
    assert!(size_of::<types::mask_key>() == 24);
};
