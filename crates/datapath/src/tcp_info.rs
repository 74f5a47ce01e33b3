//! What the kernel knows of a TCP connection: `TCP_INFO`, tcp(7).

use std::{
    io, mem,
    os::fd::{AsRawFd, BorrowedFd},
};

/// A connection at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Bytes that the peer has acknowledged.
    pub acknowledged_bytes: u64,
    /// Congestion window in bytes.
    pub window_bytes: u64,
    /// Smoothed round-trip time in nanoseconds.
    pub srtt_ns: u64,
    /// Segments sent again since the beginning.
    pub retransmits: u64,
}

/// Asks the kernel for the state of a TCP socket.
///
/// # Errors
/// When it is no TCP socket.
pub fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    // SAFETY: a tcp_info is made of integers only, so that all zeros is one.
    let mut info: libc::tcp_info = unsafe { mem::zeroed() };
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `info`; what an older kernel does not know
    // stays zero.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(TcpInfo {
        acknowledged_bytes: info.tcpi_bytes_acked,
        window_bytes: u64::from(info.tcpi_snd_cwnd) * u64::from(info.tcpi_snd_mss),
        srtt_ns: u64::from(info.tcpi_rtt) * 1000,
        retransmits: info.tcpi_total_retrans.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::{Read, Write},
        net::{TcpListener, TcpStream, UdpSocket},
        os::fd::AsFd,
    };

    #[test]
    fn acknowledged_bytes_are_those_that_the_peer_has_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[7; 1000]).unwrap();
        server.read_exact(&mut [0; 1000]).unwrap();
        // The answer carries the acknowledgement.
        server.write_all(&[1]).unwrap();
        client.read_exact(&mut [0; 1]).unwrap();
        let info = tcp_info(client.as_fd()).unwrap();
        // The kernel counts SYN as well.
        assert!((1000..=1001).contains(&info.acknowledged_bytes), "{info:?}");
        assert!(info.window_bytes > 1000 && info.srtt_ns > 0, "{info:?}");
        assert_eq!(info.retransmits, 0);
    }

    #[test]
    fn a_udp_socket_has_none() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(tcp_info(socket.as_fd()).is_err());
    }
}
