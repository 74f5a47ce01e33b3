//! Many programs of Debian that share no files between peers, each with its own server: so many flows
//! of so many kinds that a share of 1 in 1000 called file sharing would show.
//!
//! What each program is told is in peers/programs.sh. Beside what `scripts/setup test` installs they need
//!
//! ```text
//! apt-get install --no-install-recommends beanstalkd bind9-dnsutils coturn dante-server dhtnode \
//!     dovecot-imapd dovecot-pop3d ffmpeg freeradius freeradius-utils git gnutls-bin inetutils-telnet \
//!     inetutils-telnetd knot-dnsutils ldap-utils libcoap3-bin libmemcached-tools libnbd-bin memcached \
//!     mosquitto mosquitto-clients nats-server nbdkit nghttp2-client nghttp2-server nginx-light \
//!     ngtcp2-client ngtcp2-server openssh-server openvpn python3-websockets redis-server redis-tools \
//!     rpcbind samba sip-tester slapd smbclient snmp snmpd socat tinyproxy unbound w3m wget \
//!     wireguard-go wireguard-tools
//! ```

use super::{Scene, cut::LITTLE, lan::Lan, other};
use std::{path::Path, time::Duration};
use testbed::{Error, Namespace, Process, wait_until};

pub(crate) const SCENES: &[Scene] =
    &[Scene { name: "programs", least: 2600, truth: other::OTHER, keep: LITTLE, play: talk }];

/// The programs, and how often each talks; one talk opens a flow or several.
const PROGRAMS: &[(&str, usize)] = &[
    ("nginx", 22),
    ("nghttpd", 25),
    ("quic", 30),
    ("dtls", 15),
    ("gnutls", 25),
    ("dnsmasq", 85),
    ("unbound", 25),
    ("sshd", 25),
    ("dovecot", 30),
    ("snmpd", 70),
    ("sip", 5),
    ("mosquitto", 90),
    ("redis", 110),
    ("memcached", 70),
    ("rsync", 30),
    ("git", 30),
    ("openvpn", 5),
    ("wireguard", 30),
    ("syslog", 70),
    ("tftp", 50),
    ("stun", 120),
    ("coap", 85),
    ("slapd", 50),
    ("nats", 40),
    ("smb", 25),
    ("telnet", 15),
    ("proxy", 25),
    ("socks", 30),
    ("websocket", 30),
    ("rtp", 20),
    ("srt", 15),
    ("rtmp", 15),
    ("opendht", 20),
    ("nbd", 25),
    ("beanstalkd", 30),
    ("rpcbind", 50),
    ("postgres", 25),
    ("iperf", 20),
    ("radius", 60),
    ("ntp", 15),
];

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/programs.sh");
/// How long one may take until its server serves and a client is done.
const LIMIT: Duration = Duration::from_secs(60);
const CLIENTS: usize = 4;

/// One program after the other: the server on the first host, clients on the others in turn.
fn talk(lan: &mut Lan) -> Result<(), Error> {
    let hosts = lan.hosts(1 + CLIENTS)?;
    for (program, times) in PROGRAMS {
        let folder = other::folder()?;
        other::certificate(&hosts[0], folder.path())?;
        let _server = serve(&hosts[0], folder.path(), program, "10.60.0.1")?;
        for number in 0..*times {
            let client = 1 + number % CLIENTS;
            let own = format!("10.60.0.{}", client + 1);
            let line = line(folder.path(), "talk", program, &own);
            // Some servers take one client at a time and need a moment in between.
            wait_until(program, LIMIT, || {
                hosts[client].run(&["bash", "-c", &line], LIMIT).is_ok_and(|done| done.success())
            })?;
        }
    }
    Ok(())
}

/// Starts a program's server in a folder with a certificate.
pub(crate) fn serve(
    host: &Namespace,
    folder: &Path,
    program: &str,
    address: &str,
) -> Result<Process, Error> {
    host.spawn(&["bash", "-c", &line(folder, "serve", program, address)])
}

/// What the shell is told.
fn line(folder: &Path, what: &str, program: &str, own: &str) -> String {
    format!("cd {} && exec bash {SCRIPT} {what} {program} 10.60.0.1 {own}", folder.display())
}
