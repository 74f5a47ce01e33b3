//! A socket to rtnetlink that asks and waits for the answer (RFC 3549, section 3; netlink(7)).

use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;

/// One socket in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// # Errors
    /// The kernel gives no socket.
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Has something done, with the flags that say how (`NLM_F_CREATE` and its like).
    ///
    /// # Errors
    /// The kernel's, as an error number.
    pub(crate) fn request(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.exchange(message, NLM_F_REQUEST | NLM_F_ACK | flags, &mut |_| ())
    }

    /// Lists things.
    ///
    /// # Errors
    /// The kernel's, as an error number.
    pub(crate) fn dump(
        &mut self,
        message: RouteNetlinkMessage,
    ) -> io::Result<Vec<RouteNetlinkMessage>> {
        let mut found = Vec::new();
        self.exchange(message, NLM_F_REQUEST | NLM_F_DUMP, &mut |message| found.push(message))?;
        Ok(found)
    }

    /// Sends a message and reads until its acknowledgement, error or end of the list.
    fn exchange(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        each: &mut dyn FnMut(RouteNetlinkMessage),
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut request = NetlinkMessage::from(message);
        request.header.flags = flags;
        request.header.sequence_number = self.sequence;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            let mut rest = datagram.as_slice();
            while !rest.is_empty() {
                let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                // Messages begin at multiples of four bytes.
                let length = (answer.header.length as usize).next_multiple_of(4);
                rest = rest.get(length..).unwrap_or_default();
                if answer.header.sequence_number != self.sequence {
                    continue;
                }
                match answer.payload {
                    NetlinkPayload::InnerMessage(message) => each(message),
                    NetlinkPayload::Done(_) => return Ok(()),
                    NetlinkPayload::Error(error) => {
                        return match error.code {
                            None => Ok(()),
                            Some(_) => Err(error.to_io()),
                        };
                    }
                    _ => {}
                }
            }
        }
    }
}
