//! Asks the oracle with live frames, for benchmarks: `bpf/ask.bpf.c` from Rust.

use crate::blast::{InUse, LiveError, send_live};
use crate::load::{Object, undisturbed};
use crate::xdp_link;
use libbpf_rs::libbpf_sys::XDP_FLAGS_DRV_MODE;
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use std::mem::MaybeUninit;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd as _, OwnedFd};

#[allow(missing_docs, unreachable_pub, clippy::all, clippy::undocumented_unsafe_blocks)]
#[allow(clippy::multiple_unsafe_ops_per_block, dead_code)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/ask.skel.rs"));
}
use skeleton::{AskSkel, AskSkelBuilder};

/// What is loaded.
const OBJECT: Object = Object { name: "ask" };

/// Different requests, which are sent in turn.
pub const REQUESTS: usize = 1024;

/// What is done with replies.
#[derive(Clone, Copy, Debug)]
pub struct Replies {
    /// Third and fourth byte of one that counts, where flags and errors are.
    pub flags: [u8; 2],
    /// Whether each is made the next request and sent again, so that frames circle.
    pub again: bool,
}

/// Sends requests out of an interface and counts the replies that come in there.
pub struct Asker {
    skeleton: AskSkel<'static>,
    frame: Vec<u8>,
    interface: u32,
    _in_use: InUse,
    _link: OwnedFd,
}

impl Asker {
    /// Attaches to an interface of the calling thread's network namespace, natively; the frames, all
    /// of one length, are requests to the service.
    ///
    /// # Errors
    /// When the kernel refuses the programs, or the driver has no native XDP.
    ///
    /// # Panics
    /// When there are not [`REQUESTS`] frames of one length of at most 1,536 bytes.
    pub fn attach(
        interface: u32,
        service: SocketAddrV4,
        frames: &[Vec<u8>],
        replies: Replies,
    ) -> Result<Self, LiveError> {
        let length = frames[0].len();
        assert!(frames.len() == REQUESTS && frames.iter().all(|frame| frame.len() == length));
        // The skeleton borrows this storage, a pointer's width, for as long as it lives.
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open =
            AskSkelBuilder::default().open(storage).map_err(|error| OBJECT.error(error))?;
        if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
            rodata.ask_length = length as u32;
            rodata.ask_from = u32::from_ne_bytes(service.ip().octets());
            rodata.ask_port = service.port().to_be();
            rodata.ask_flags = u16::from_ne_bytes(replies.flags);
        }
        let mut skeleton = undisturbed(|| open.load()).map_err(|error| OBJECT.error(error))?;
        let requests = skeleton.maps.bss_requests_data.as_deref_mut();
        let requests = requests.expect("the skeleton maps .bss.requests");
        for (request, frame) in requests.ask_requests.iter_mut().zip(frames) {
            request.frame[..length].copy_from_slice(frame);
        }
        let in_use = InUse::hold(skeleton.progs.ask_send.as_fd())?;
        let program = if replies.again {
            skeleton.progs.ask_again.as_fd()
        } else {
            skeleton.progs.ask_count.as_fd()
        };
        let link = xdp_link::attach(program, interface, XDP_FLAGS_DRV_MODE)
            .map_err(|source| LiveError::Attach { interface, source })?;
        let frame = frames[0].clone();
        Ok(Self { skeleton, frame, interface, _in_use: in_use, _link: link })
    }

    /// Sends so many requests; returns when the driver has them. The thread must be in the
    /// interface's namespace.
    ///
    /// # Errors
    /// When the kernel does not run the program.
    pub fn send(&self, frames: u32) -> Result<(), LiveError> {
        send_live(self.skeleton.progs.ask_send.as_fd(), self.interface, &self.frame, frames)
    }

    /// Replies that came so far.
    pub fn answered(&self) -> u64 {
        let data = self.skeleton.maps.bss_data.as_deref().expect("the skeleton maps .bss");
        // SAFETY: the word is aligned and lives as long as the borrow; the program changes it with
        // atomic additions.
        unsafe { (&raw const data.ask_answered).read_volatile() }
    }
}
