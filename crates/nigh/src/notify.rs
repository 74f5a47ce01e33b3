//! Reports the daemon's state to systemd (sd_notify(3)) if systemd asks for it.

use nix::time::{ClockId, clock_gettime};
use std::{
    ffi::OsString,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            ffi::OsStrExt,
            net::{SocketAddr, UnixDatagram},
        },
    },
};

/// The service manager's notification socket, if there is one.
#[derive(Debug)]
pub struct Notifier(Option<UnixDatagram>);

impl Notifier {
    /// The socket named in the environment variable `NOTIFY_SOCKET`.
    pub fn from_env() -> Self {
        Self(std::env::var_os("NOTIFY_SOCKET").and_then(connect))
    }

    /// The daemon is up, or has finished a reload.
    pub fn ready(&self) {
        self.send("READY=1");
    }

    /// A reload begins (`Type=notify-reload` wants the time with it).
    pub fn reloading(&self) {
        if let Ok(now) = clock_gettime(ClockId::CLOCK_MONOTONIC) {
            let micros = i128::from(now.tv_sec()) * 1_000_000 + i128::from(now.tv_nsec()) / 1_000;
            self.send(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
        }
    }

    /// The daemon drains and stops.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// The line that `systemctl status` shows.
    pub fn status(&self, line: &str) {
        self.send(&format!("STATUS={}", line.replace(char::is_control, " ")));
    }

    /// The daemon answers: the watchdog begins anew.
    pub fn alive(&self) {
        self.send("WATCHDOG=1");
    }

    /// A lost notification is not worth failing for.
    fn send(&self, text: &str) {
        if let Some(socket) = &self.0 {
            let _ = socket.send(text.as_bytes());
        }
    }
}

/// Connects to a path, or to an abstract name when it begins with `@`.
fn connect(name: OsString) -> Option<UnixDatagram> {
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&name),
    };
    let socket = UnixDatagram::unbound().ok()?;
    socket.connect_addr(&address.ok()?).ok()?;
    Some(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_names_are_reached() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("notify");
        let by_path = UnixDatagram::bind(&path).unwrap();
        let name = format!("nigh-test-{}", std::process::id());
        let abstract_address = SocketAddr::from_abstract_name(&name).unwrap();
        let by_name = UnixDatagram::bind_addr(&abstract_address).unwrap();
        for (peer, address) in
            [(by_path, path.into_os_string()), (by_name, format!("@{name}").into())]
        {
            let notifier = Notifier(connect(address));
            notifier.ready();
            notifier.status("eth0\nis down");
            notifier.reloading();
            let mut buffer = [0; 128];
            let mut next = || {
                let length = peer.recv(&mut buffer).unwrap();
                String::from_utf8_lossy(&buffer[..length]).into_owned()
            };
            assert_eq!(next(), "READY=1");
            assert_eq!(next(), "STATUS=eth0 is down", "a second line would be another variable");
            assert!(next().starts_with("RELOADING=1\nMONOTONIC_USEC="));
        }
    }
}
