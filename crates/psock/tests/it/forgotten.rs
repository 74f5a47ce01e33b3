//! A session that one end has forgotten while no path worked ends at the other end too.

use crate::common::{LIMIT, key, listen, to};
use psock::{ConnectionState, PsockStream, SessionError};
use std::{
    io::{self, Read},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};
use testbed::wait_until;

/// A path that can be cut and let through again.
struct Relay {
    address: SocketAddr,
    /// Both sockets of each connection; none while it is cut.
    carried: Arc<Mutex<Option<Vec<TcpStream>>>>,
}

impl Relay {
    fn new(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let carried = Arc::new(Mutex::new(Some(Vec::new())));
        let shared = Arc::clone(&carried);
        thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                let mut carried = shared.lock().unwrap();
                let Some(all) = carried.as_mut() else { continue };
                let far = TcpStream::connect(to).unwrap();
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    all.push(from.try_clone().unwrap());
                    thread::spawn(move || {
                        let _ = io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Self { address, carried }
    }

    fn cut(&self) {
        for socket in self.carried.lock().unwrap().take().unwrap() {
            // It may be closed already.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    fn let_through(&self) {
        *self.carried.lock().unwrap() = Some(Vec::new());
    }
}

/// How many data connections work.
fn open(stream: &PsockStream) -> usize {
    let open = |state: ConnectionState| state == ConnectionState::Open;
    stream.counters().connections.iter().filter(|one| open(one.state)).count()
}

#[test]
fn a_session_that_the_listener_no_longer_knows_is_over() {
    let listener = listen(&key());
    let relay = Relay::new(listener.local_addresses()[0]);
    let one = PsockStream::connect(&to(&[relay.address], &key())).unwrap();
    let (other, _) = listener.accept().unwrap();
    wait_until("the connection", LIMIT, || open(&one) == 1 && open(&other) == 1).unwrap();
    relay.cut();
    let cut = || {
        let control = other.counters().session.control;
        control == ConnectionState::Dead && open(&other) == 0 && open(&one) == 0
    };
    wait_until("no connection", LIMIT, cut).unwrap();
    // Nobody can be notified.
    other.abort();
    relay.let_through();
    let error = (&one).read(&mut [0; 1]).unwrap_err();
    let error = error.get_ref().and_then(|e| e.downcast_ref::<SessionError>());
    assert_eq!(error, Some(&SessionError::Unknown));
}
