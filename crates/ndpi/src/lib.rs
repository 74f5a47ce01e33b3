//! A safe binding of nDPI 4.2 (LGPL-3.0, linked dynamically): names a flow by its first packets.
//!
//! ```text
//! Detector (one a thread) + Flow (one a flow) + an IP packet  ->  Known { master, app, category, ... }
//! ```
//!
//! nDPI's structs stay behind a C shim (`c/shim.c`) that is compiled against the headers of the library
//! it will run with; Rust sees pointers and numbers. A [`Flow`] is a block of memory of its own with no
//! pointer to the detector, so it may be kept, dropped and shown to another detector in any order.
//! Why the unsafe is here and not in `datapath`: `docs/decisions/175-ndpi.md`.

mod ffi;

use std::{
    ffi::{CStr, c_void},
    fmt,
    ptr::NonNull,
    sync::{PoisonError, RwLock},
};

/// Opening and closing detectors writes memory that all of them share, and everything else reads it: the
/// first is done alone, the rest side by side.
static LIFE: RwLock<()> = RwLock::new(());

/// A detector could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The library is another version than the program was built with.
    #[error(
        "libndpi is another version than this program was built with: install Debian's libndpi4.2, or \
         build the program again"
    )]
    Version,
    /// The library returned nothing.
    #[error("libndpi cannot set up its tables: not enough memory")]
    Memory,
}

/// Everything that nDPI shares between flows: its tables and caches. One a thread.
pub struct Detector(NonNull<c_void>);

// SAFETY: a detector has no thread of its own and nothing that belongs to the thread that opened it; all
// calls that change it take `&mut self`.
unsafe impl Send for Detector {}

impl fmt::Debug for Detector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Detector")
    }
}

/// What nDPI remembers of one flow, some kilobytes; made at its first packet.
pub struct Flow(Option<NonNull<c_void>>);

// SAFETY: memory of its own, with no pointer to a detector or thread; changed only through `&mut`.
unsafe impl Send for Flow {}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Flow")
    }
}

/// The number of a protocol of nDPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Protocol(pub u16);

/// On what an answer rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// Only on ports or addresses.
    Address,
    /// On what other flows of the same host were.
    Cache,
    /// On the packets' content.
    Content,
}

/// A flow's application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// What carries it: TLS, HTTP, DNS.
    pub master: Option<Protocol>,
    /// What it is; the carrier's own number where nothing more is known.
    pub app: Protocol,
    /// Which kind of use that is.
    pub category: Category,
    /// On what that rests.
    pub confidence: Confidence,
    /// Whether further packets can say more.
    pub more: bool,
}

/// nDPI's kinds of use, as far as they say something (`ndpi_protocol_category_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // named as nDPI names them
pub enum Category {
    Media,
    Vpn,
    Mail,
    DataTransfer,
    Web,
    SocialNetwork,
    Download,
    Game,
    Chat,
    Voip,
    Database,
    RemoteAccess,
    Cloud,
    Network,
    Collaborative,
    Rpc,
    Streaming,
    System,
    SoftwareUpdate,
    Music,
    Video,
    FileSharing,
    Other(u8),
}

impl From<u8> for Category {
    /// The numbers of nDPI 4.2.
    fn from(number: u8) -> Self {
        match number {
            1 => Self::Media,
            2 => Self::Vpn,
            3 => Self::Mail,
            4 => Self::DataTransfer,
            5 => Self::Web,
            6 => Self::SocialNetwork,
            7 => Self::Download,
            8 => Self::Game,
            9 => Self::Chat,
            10 => Self::Voip,
            11 => Self::Database,
            12 => Self::RemoteAccess,
            13 => Self::Cloud,
            14 => Self::Network,
            15 => Self::Collaborative,
            16 => Self::Rpc,
            17 => Self::Streaming,
            18 => Self::System,
            19 => Self::SoftwareUpdate,
            25 => Self::Music,
            26 => Self::Video,
            29 => Self::FileSharing,
            other => Self::Other(other),
        }
    }
}

impl ffi::Answer {
    fn known(self) -> Option<Known> {
        if self.app == 0 && self.master == 0 {
            return None;
        }
        let (master, app) =
            if self.app == 0 { (None, self.master) } else { (Some(self.master), self.app) };
        Some(Known {
            master: master.filter(|&master| master != 0 && master != app).map(Protocol),
            app: Protocol(app),
            category: self.category.into(),
            confidence: match self.confidence {
                0..=2 => Confidence::Address,
                3 => Confidence::Cache,
                _ => Confidence::Content,
            },
            more: self.more != 0,
        })
    }
}

impl Detector {
    /// Opens a detector that knows all protocols of the library; takes some milliseconds and megabytes.
    ///
    /// # Errors
    /// When the library is another one than was built with, or has no memory.
    pub fn open() -> Result<Self, OpenError> {
        // SAFETY: reads constants of the library.
        if unsafe { ffi::nigh_ndpi_check() } == 0 {
            return Err(OpenError::Version);
        }
        let _alone = LIFE.write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: no other detector is opened or closed meanwhile.
        let detector = unsafe { ffi::nigh_ndpi_open() };
        NonNull::new(detector).map(Self).ok_or(OpenError::Memory)
    }

    /// Shows a packet of a flow that begins with its IP header; `at_ms` is any clock's milliseconds.
    ///
    /// The bytes are taken as changeable because some of the library's parsers cut strings in place.
    /// Those beyond 65,535 are not inspected.
    pub fn packet(&mut self, flow: &mut Flow, packet: &mut [u8], at_ms: u64) -> Option<Known> {
        let length = u16::try_from(packet.len()).unwrap_or(u16::MAX);
        let mut answer = ffi::Answer::default();
        let _together = LIFE.read().unwrap_or_else(PoisonError::into_inner);
        let flow = flow.memory()?;
        // SAFETY: both pointers are live and changed by nobody else; the packet has at least `length`
        // bytes, which the library keeps no pointer to after the call.
        unsafe {
            ffi::nigh_ndpi_packet(
                self.0.as_ptr(),
                flow.as_ptr(),
                packet.as_mut_ptr(),
                length,
                at_ms,
                &raw mut answer,
            );
        }
        answer.known()
    }

    /// The last word on a flow of which no more packets are shown. Ports alone are never taken for a
    /// protocol.
    pub fn give_up(&mut self, flow: &mut Flow) -> Option<Known> {
        let mut answer = ffi::Answer::default();
        let flow = flow.0?;
        let _together = LIFE.read().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: both pointers are live and changed by nobody else.
        unsafe { ffi::nigh_ndpi_give_up(self.0.as_ptr(), flow.as_ptr(), &raw mut answer) };
        answer.known()
    }

    /// The application that a host's name belongs to, by the library's list.
    pub fn host(&mut self, name: &str) -> Option<Known> {
        let length = u32::try_from(name.len()).ok().filter(|length| *length > 0)?;
        // The library reads by the length, and may print up to a NUL.
        let mut name = [name.as_bytes(), &[0]].concat();
        let mut answer = ffi::Answer::default();
        let _together = LIFE.read().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the detector is live, and the name has `length` bytes and a NUL, of which no pointer is kept.
        unsafe {
            ffi::nigh_ndpi_host(self.0.as_ptr(), name.as_mut_ptr().cast(), length, &raw mut answer);
        }
        answer.known()
    }

    /// The name of a protocol as the library writes it: `BitTorrent`, `TLS`.
    pub fn name(&self, protocol: Protocol) -> Option<&str> {
        // SAFETY: the detector is live; a number that it does not know gives a null pointer or a text.
        let name = unsafe { ffi::nigh_ndpi_name(self.0.as_ptr(), protocol.0) };
        if name.is_null() {
            return None;
        }
        // SAFETY: a text that ends with NUL and lives as long as the detector.
        unsafe { CStr::from_ptr(name) }.to_str().ok()
    }

    /// How many protocols the library knows.
    pub fn count(&self) -> u32 {
        // SAFETY: the detector is live.
        unsafe { ffi::nigh_ndpi_count(self.0.as_ptr()) }
    }
}

impl Drop for Detector {
    fn drop(&mut self) {
        let _alone = LIFE.write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the pointer came from `nigh_ndpi_open` and is not used again; flows have no pointer
        // into it; no other detector is opened or closed meanwhile.
        unsafe { ffi::nigh_ndpi_close(self.0.as_ptr()) };
    }
}

impl Flow {
    /// A flow of which nothing was seen.
    #[must_use]
    pub const fn new() -> Self {
        Self(None)
    }

    fn memory(&mut self) -> Option<NonNull<c_void>> {
        if self.0.is_none() {
            // SAFETY: allocates, touches nothing else.
            self.0 = NonNull::new(unsafe { ffi::nigh_ndpi_flow_new() });
        }
        self.0
    }

    /// The host's name that was read in it: TLS's SNI, HTTP's Host, what DNS was asked for. Cut to 79
    /// bytes by the library.
    pub fn host(&self) -> Option<String> {
        let flow = self.0?;
        let mut size = 0;
        // SAFETY: the flow is live.
        let host = unsafe { ffi::nigh_ndpi_flow_host(flow.as_ptr(), &raw mut size) };
        // SAFETY: an array of `size` bytes within the flow, which lives on while it is read.
        let host = unsafe { std::slice::from_raw_parts(host.cast::<u8>(), size) };
        let end = host.iter().position(|&byte| byte == 0).unwrap_or(size);
        let host = host.get(..end).filter(|host| !host.is_empty())?;
        Some(String::from_utf8_lossy(host).into_owned())
    }
}

impl Default for Flow {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        if let Some(flow) = self.0 {
            // SAFETY: the pointer came from `nigh_ndpi_flow_new` and is not used again.
            unsafe { ffi::nigh_ndpi_flow_free(flow.as_ptr()) };
        }
    }
}

#[cfg(test)]
mod tests;
