//! What the kernel reports of a connection (tcp(7), `TCP_INFO`). With `c::address` the only unsafe code.
#![allow(unsafe_code)]

use crate::core::Kernel;
use std::{
    io,
    mem::{offset_of, size_of},
    os::fd::{AsFd, AsRawFd},
};

/// The kernel's `struct tcp_info` (include/uapi/linux/tcp.h) as far as it is used here. Newer kernels
/// append to it, older ones fill less of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct TcpInfo {
    state: u8,
    ca_state: u8,
    retransmits: u8,
    probes: u8,
    backoff: u8,
    options: u8,
    wscale: u8,
    delivery_rate_app_limited: u8,
    rto_us: u32,
    ato_us: u32,
    snd_mss: u32,
    rcv_mss: u32,
    unacked: u32,
    sacked: u32,
    lost: u32,
    retrans: u32,
    fackets: u32,
    last_data_sent_ms: u32,
    last_ack_sent_ms: u32,
    last_data_recv_ms: u32,
    last_ack_recv_ms: u32,
    pmtu: u32,
    rcv_ssthresh: u32,
    rtt_us: u32,
    rttvar_us: u32,
    snd_ssthresh: u32,
    snd_cwnd: u32,
    advmss: u32,
    reordering: u32,
    rcv_rtt_us: u32,
    rcv_space: u32,
    total_retrans: u32,
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt_us: u32,
    data_segs_in: u32,
    data_segs_out: u32,
    delivery_rate: u64,
}

// Fixed by the kernel's interface.
const _: () = assert!(offset_of!(TcpInfo, rto_us) == 8);
const _: () = assert!(offset_of!(TcpInfo, pacing_rate) == 104);
const _: () = assert!(offset_of!(TcpInfo, delivery_rate) == 160);

/// Reads `TCP_INFO` of a TCP socket.
///
/// # Errors
///
/// When the descriptor is no TCP socket.
pub(crate) fn tcp_info(socket: impl AsFd) -> io::Result<TcpState> {
    let mut info = TcpInfo::default();
    let mut length = size_of::<TcpInfo>() as libc::socklen_t;
    // SAFETY: the descriptor is open for the call; the kernel writes at most `length` bytes to
    // `info`, which is as long, and every bit pattern is valid there.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(TcpState {
        kernel: Kernel {
            srtt_ns: u64::from(info.rtt_us) * 1000,
            min_rtt_ns: match info.min_rtt_us {
                // Before the first sample.
                u32::MAX => 0,
                min_rtt_us => u64::from(min_rtt_us) * 1000,
            },
            delivery_rate: info.delivery_rate,
            cwnd_bytes: info.snd_cwnd.saturating_mul(info.snd_mss),
        },
        busy: info.notsent_bytes > 0 || info.unacked > info.sacked + info.lost,
    })
}

/// What is used of `TCP_INFO`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpState {
    /// What the core wants to know.
    pub(crate) kernel: Kernel,
    /// The kernel holds bytes that were not sent yet, or has some in flight.
    pub(crate) busy: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::{Read, Write},
        net::{TcpListener, TcpStream},
    };

    #[test]
    fn the_kernel_says_how_a_connection_does() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        one.write_all(&[1; 100_000]).unwrap();
        other.read_exact(&mut [0; 100_000]).unwrap();
        let state = tcp_info(&one).unwrap().kernel;
        assert!(state.srtt_ns > 0 && state.min_rtt_ns <= 60_000_000_000, "{state:?}");
        assert!(state.cwnd_bytes > 0 && state.delivery_rate > 0, "{state:?}");
    }

    #[test]
    fn what_is_no_tcp_socket_is_an_error() {
        let (socket, _) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(tcp_info(&socket).is_err());
    }
}
