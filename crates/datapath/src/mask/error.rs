//! What can go wrong with the mask's programs once they are loaded.

use std::io;

/// The mask could not be put on an interface.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Nothing is known of what its packets begin with.
    #[error(
        "the packets of interface {ifindex} begin with a header of hardware type {kind}: the mask knows Ethernet and raw IP (TUN, IP tunnels)"
    )]
    Link {
        /// The interface.
        ifindex: u32,
        /// linux/if_arp.h, ARPHRD_*.
        kind: u16,
    },
    /// The kernel refuses.
    #[error(
        "cannot attach the mask to interface {ifindex}: {source}; it needs an interface of this network namespace, CAP_NET_ADMIN and CAP_BPF"
    )]
    Refused {
        /// The interface.
        ifindex: u32,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The kernel refuses a packet socket.
    #[error(
        "cannot open a packet socket on interface {ifindex}: {source}; it needs an interface of this network namespace and CAP_NET_RAW"
    )]
    Socket {
        /// The interface.
        ifindex: u32,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// A key could not be set.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The kernel has no such cipher.
    #[error(
        "the kernel has no cipher ecb(aes) for programs (error {0}): it needs CONFIG_CRYPTO_AES and CONFIG_CRYPTO_ECB"
    )]
    Cipher(i32),
    /// The kernel refuses.
    #[error("cannot set the key of the mask's programs: {0}")]
    Refused(#[from] libbpf_rs::Error),
}

/// A packet could not be tried.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The kernel refuses.
    #[error("the kernel refuses to run the mask on a packet of {length} bytes: {source}")]
    Refused {
        /// Length of the packet.
        length: usize,
        /// The kernel's answer.
        source: libbpf_rs::Error,
    },
    /// The ring could not be read.
    #[error("cannot read the mask's ring: {0}")]
    Ring(#[from] io::Error),
}
