//! What a driver says of its interface (ioctl SIOCETHTOOL, linux/ethtool.h), in the calling thread's network
//! namespace, of which /sys may be another's.

use serde::Serialize;
use socket2::{Domain, Socket, Type};
use std::{io, mem, os::fd::AsRawFd as _};

/// Where the times of packets can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Timestamps {
    /// By the device.
    pub hardware: bool,
    /// By the driver or the kernel.
    pub software: bool,
}

/// Receive queues.
pub(crate) fn queues(name: &str) -> io::Result<u32> {
    #[repr(C)]
    #[derive(Default)]
    struct Channels {
        command: u32,
        most: [u32; 4],
        receive: u32,
        send: u32,
        other: u32,
        combined: u32,
    }
    let mut channels = Channels { command: 0x3c, ..Channels::default() };
    // SAFETY: this is `struct ethtool_channels` with ETHTOOL_GCHANNELS.
    unsafe { ask(name, &mut channels) }?;
    Ok(channels.receive + channels.combined)
}

/// The driver's name.
pub(crate) fn driver(name: &str) -> io::Result<String> {
    #[repr(C)]
    struct Info {
        command: u32,
        driver: [u8; 32],
        others: [[u8; 32]; 4],
        reserved: [u8; 12],
        numbers: [u32; 5],
    }
    let mut info = Info {
        command: 0x3,
        driver: [0; 32],
        others: [[0; 32]; 4],
        reserved: [0; 12],
        numbers: [0; 5],
    };
    // SAFETY: this is `struct ethtool_drvinfo` with ETHTOOL_GDRVINFO.
    unsafe { ask(name, &mut info) }?;
    let length = info.driver.iter().position(|byte| *byte == 0).unwrap_or(info.driver.len());
    Ok(String::from_utf8_lossy(&info.driver[..length]).into_owned())
}

/// Times of received and of sent packets.
pub(crate) fn timestamps(name: &str) -> io::Result<(Timestamps, Timestamps)> {
    #[repr(C)]
    #[derive(Default)]
    struct Info {
        command: u32,
        so_timestamping: u32,
        clock: i32,
        rest: [u32; 8],
    }
    let mut info = Info { command: 0x41, ..Info::default() };
    // SAFETY: this is `struct ethtool_ts_info` with ETHTOOL_GET_TS_INFO.
    unsafe { ask(name, &mut info) }?;
    let has = |flags: u32| info.so_timestamping & flags == flags;
    let received = Timestamps {
        hardware: has(libc::SOF_TIMESTAMPING_RX_HARDWARE | libc::SOF_TIMESTAMPING_RAW_HARDWARE),
        software: has(libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE),
    };
    let sent = Timestamps {
        hardware: has(libc::SOF_TIMESTAMPING_TX_HARDWARE | libc::SOF_TIMESTAMPING_RAW_HARDWARE),
        software: has(libc::SOF_TIMESTAMPING_TX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE),
    };
    Ok((received, sent))
}

/// Has the driver fill in a command.
///
/// # Safety
/// It must be the whole struct that the command in its first word takes.
unsafe fn ask<T>(name: &str, command: &mut T) -> io::Result<()> {
    // SAFETY: all zeros is a valid value of it: bytes, numbers and null pointers.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut *command).cast();
    let socket = Socket::new(Domain::UNIX, Type::DGRAM, None)?;
    // SAFETY: the request names the interface and points to what the command fills in.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
