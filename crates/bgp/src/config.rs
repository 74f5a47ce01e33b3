//! One `[[anycast.upstream]]` of the configuration file: to whom the prefixes are advertised, and how.
//!
//! `type = "bgp"` opens the embedded session, `type = "bird"` controls BIRD 2 through its control
//! socket. What parses can still be wrong: [`Upstream::problems`] checks the values.

use crate::{
    bfd::BfdConfig,
    route::Attributes,
    value::{Asn, Community, LargeCommunity},
};
use config::Problem;
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::Deserialize;
use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::PathBuf,
    time::Duration,
};

/// The port on which speakers listen (RFC 4271 section 4).
pub const PORT: u16 = 179;

/// The longest key of TCP_MD5SIG on Linux, in bytes (linux/tcp.h, TCP_MD5SIG_MAXKEYLEN).
const PASSWORD_MAX: usize = 80;

/// More communities than this do not leave room for prefixes in a message of 4,096 bytes.
const COMMUNITIES_MAX: usize = 128;

/// More prepended AS numbers than this are refused by many networks.
const PREPEND_MAX: u8 = 32;

/// A shared secret. It is never shown: [`fmt::Debug`] prints stars.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Password(String);

impl Password {
    /// Wraps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The secret's bytes, for the kernel only.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Why the kernel would not take this as a key (RFC 2385 section 4.5; Linux takes 80 bytes).
    fn fault(&self) -> Option<&'static str> {
        match self.0.len() {
            0 => Some("the password is empty"),
            1..=PASSWORD_MAX => None,
            _ => Some("the password is longer than the 80 bytes that Linux takes"),
        }
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(***)")
    }
}

/// There is no usable password for a session.
#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    /// The file cannot be read.
    #[error("password_file {path}: {error}; create it with the password as its only line")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file's content is no key.
    #[error("password_file {path}: {fault}; write a password of 1 to 80 bytes into it")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: &'static str,
    },
}

/// A neighbour to which the prefixes are announced.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Upstream {
    /// Announces the prefixes over an embedded BGP-4 session with one neighbour.
    Bgp(BgpUpstream),
    /// Announces the prefixes through BIRD 2: enables and disables static protocols over its control
    /// socket. A static protocol has one family: for IPv4 and IPv6 each list has two names, in the same order.
    Bird(BirdUpstream),
}

impl Upstream {
    /// The name by which the upstream is shown.
    pub fn name(&self) -> &str {
        match self {
            Self::Bgp(bgp) => &bgp.name,
            Self::Bird(bird) => &bird.name,
        }
    }

    /// Whether a running announcer for this upstream can go over to another form of it: at most the
    /// attributes of the routes are others, which need no new session.
    pub fn same_session(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bgp(bgp), Self::Bgp(other)) => {
                let alike = BgpUpstream {
                    communities: bgp.communities.clone(),
                    large_communities: bgp.large_communities.clone(),
                    prepend: bgp.prepend,
                    med: bgp.med,
                    ..other.clone()
                };
                *bgp == alike
            }
            _ => self == other,
        }
    }

    /// The attributes of the routes; BIRD's are in its own configuration.
    pub(crate) fn attributes(&self) -> Attributes {
        let Self::Bgp(bgp) = self else { return Attributes::default() };
        let mut attributes = Attributes {
            prepend: bgp.prepend,
            med: bgp.med,
            communities: bgp.communities.clone(),
            large_communities: bgp.large_communities.clone(),
        };
        attributes.communities.sort_unstable();
        attributes.communities.dedup();
        attributes.large_communities.sort_unstable();
        attributes.large_communities.dedup();
        attributes
    }

    /// Everything that is wrong with the values for these prefixes, in the order of the keys.
    pub fn problems(&self, prefixes: &[IpNet]) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.name().is_empty() {
            problems.push(Problem::new("name", "the name is empty; give each upstream a name"));
        }
        match self {
            Self::Bgp(bgp) => bgp.problems(prefixes, &mut problems),
            Self::Bird(bird) => bird.problems(&mut problems),
        }
        problems
    }
}

/// An embedded BGP-4 session with one neighbour.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BgpUpstream {
    /// Name of the upstream in status, metrics and logs.
    pub name: String,
    /// The neighbour's address.
    pub peer: IpAddr,
    /// The neighbour's AS number.
    #[schemars(range(min = 1, max = u32::MAX - 1))]
    pub peer_as: Asn,
    /// Our AS number.
    #[schemars(range(min = 1, max = u32::MAX - 1))]
    pub local_as: Asn,
    /// The address to connect from; the system's choice when absent.
    pub local_address: Option<IpAddr>,
    /// Our BGP identifier; our IPv4 address of the session when absent.
    pub router_id: Option<Ipv4Addr>,
    /// Next hop of IPv4 prefixes; our address of the session when absent.
    pub next_hop4: Option<Ipv4Addr>,
    /// Next hop of IPv6 prefixes; our address of the session when absent.
    pub next_hop6: Option<Ipv6Addr>,
    /// Key of TCP MD5 (RFC 2385 section 2), 1 to 80 bytes; TCP MD5 is off when absent.
    pub password: Option<Password>,
    /// A file with the key as its only line, instead of `password`.
    pub password_file: Option<PathBuf>,
    /// TTL security: send TTL 255 and accept nothing lower (RFC 5082 section 3).
    #[serde(default)]
    pub ttl_security: bool,
    /// Communities on every route (RFC 1997), by number or by registered name.
    #[serde(default)]
    pub communities: Vec<Community>,
    /// Large communities on every route (RFC 8092 section 3).
    #[serde(default)]
    pub large_communities: Vec<LargeCommunity>,
    /// Number of times that our AS number is prepended to the path, at most 32.
    #[serde(default)]
    #[schemars(range(max = PREPEND_MAX))]
    pub prepend: u8,
    /// MULTI_EXIT_DISC; none is sent when absent.
    pub med: Option<u32>,
    /// Proposed hold time, whole seconds; a third of it is the keepalive interval.
    #[serde(default = "hold_time", with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub hold_time: Duration,
    /// BFD with the neighbour, which must be on the same link (RFC 5881); `{}` takes the defaults, no BFD when absent.
    pub bfd: Option<BfdConfig>,
}

/// The hold time that is proposed when none is configured.
fn hold_time() -> Duration {
    Duration::from_secs(9)
}

impl BgpUpstream {
    /// Whether the neighbour is in our own AS.
    pub fn is_internal(&self) -> bool {
        self.local_as == self.peer_as
    }

    /// The key of TCP MD5, from the configuration or from its file.
    ///
    /// # Errors
    /// The file cannot be read or holds nothing usable.
    pub fn password(&self) -> Result<Option<Password>, PasswordError> {
        let Some(path) = &self.password_file else { return Ok(self.password.clone()) };
        let text = std::fs::read_to_string(path)
            .map_err(|error| PasswordError::Read { path: path.clone(), error })?;
        let password = Password::new(text.strip_suffix('\n').unwrap_or(&text));
        match password.fault() {
            Some(fault) => Err(PasswordError::Unusable { path: path.clone(), fault }),
            None => Ok(Some(password)),
        }
    }

    fn problems(&self, prefixes: &[IpNet], problems: &mut Vec<Problem>) {
        let mut report = |key: &str, message: &str| problems.push(Problem::new(key, message));
        match self.peer {
            IpAddr::V6(peer) if peer.is_unicast_link_local() => report(
                "peer",
                "a link-local address needs an interface; use the neighbour's global or unique local address",
            ),
            peer if peer.is_unspecified() || peer.is_multicast() => {
                report("peer", "this is not a neighbour's address; give its unicast address")
            }
            _ => {}
        }
        for (key, asn) in [("peer_as", self.peer_as), ("local_as", self.local_as)] {
            if !asn.is_usable() {
                report(
                    key,
                    "this AS number is reserved (RFC 7607, RFC 6793, RFC 7300); use your own",
                );
            }
        }
        if self.local_address.is_some_and(|local| local.is_ipv4() != self.peer.is_ipv4()) {
            report("local_address", "this is not of the same family as peer; give one that is");
        }
        match self.router_id {
            Some(id) if id.is_unspecified() => report(
                "router_id",
                "0.0.0.0 is no BGP identifier (RFC 6286); use an IPv4 address of this node",
            ),
            None if self.peer.is_ipv6() => report(
                "router_id",
                "a session over IPv6 has no IPv4 address to take it from; give a BGP identifier such as 192.0.2.1",
            ),
            _ => {}
        }
        if self.next_hop4.is_some_and(|hop| hop.is_unspecified() || hop.is_multicast()) {
            report("next_hop4", "this is not a unicast address; give an address of this node");
        }
        if self.next_hop6.is_some_and(|hop| {
            hop.is_unspecified() || hop.is_multicast() || hop.is_unicast_link_local()
        }) {
            report(
                "next_hop6",
                "this is not a global unicast address; give an address of this node",
            );
        }
        let (mut four, mut six) = (false, false);
        for prefix in prefixes {
            four |= prefix.addr().is_ipv4();
            six |= prefix.addr().is_ipv6();
        }
        if four && self.peer.is_ipv6() && self.next_hop4.is_none() {
            report(
                "next_hop4",
                "IPv4 prefixes over an IPv6 session need a next hop; give an IPv4 address of this node that the neighbour reaches",
            );
        }
        if six && self.peer.is_ipv4() && self.next_hop6.is_none() {
            report(
                "next_hop6",
                "IPv6 prefixes over an IPv4 session need a next hop; give an IPv6 address of this node that the neighbour reaches",
            );
        }
        if let Some(fault) = self.password.as_ref().and_then(Password::fault) {
            report("password", &format!("{fault}; use 1 to 80 bytes"));
        }
        if self.password.is_some() && self.password_file.is_some() {
            report("password_file", "password is given too; keep one of the two");
        }
        for (index, community) in self.communities.iter().enumerate() {
            if *community == Community::GRACEFUL_SHUTDOWN {
                report(
                    &format!("communities[{index}]"),
                    "GRACEFUL_SHUTDOWN is added while the node drains; remove it here",
                );
            }
        }
        for (key, count) in [
            ("communities", self.communities.len()),
            ("large_communities", self.large_communities.len()),
        ] {
            if count > COMMUNITIES_MAX {
                report(
                    key,
                    &format!(
                        "{count} are too many for one message; keep at most {COMMUNITIES_MAX}"
                    ),
                );
            }
        }
        if self.prepend > PREPEND_MAX {
            report(
                "prepend",
                &format!("networks refuse paths that long; prepend at most {PREPEND_MAX} times"),
            );
        } else if self.prepend > 0 && self.is_internal() {
            report(
                "prepend",
                "a path inside one's own AS is empty; prepend only towards another AS",
            );
        }
        let seconds = self.hold_time.as_secs();
        if self.hold_time.subsec_nanos() != 0 || !(3..=65535).contains(&seconds) {
            report("hold_time", "the hold time is 3 to 65535 whole seconds (RFC 4271 section 4.2)");
        }
        problems.extend(self.bfd.iter().flat_map(BfdConfig::problems));
    }
}

/// BIRD 2, controlled through its control socket.
///
/// A static protocol of BIRD has one family, so both families take two: each of the lists then has
/// two names, IPv4 and IPv6 in the same order.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BirdUpstream {
    /// Name of the upstream in status, metrics and logs.
    pub name: String,
    /// BIRD's control socket, usually `/run/bird/bird.ctl`.
    pub socket: PathBuf,
    /// Static protocols of BIRD with the routes; nigh enables them to announce and disables them to withdraw.
    pub protocol: Names,
    /// Static protocols with the same routes, which BIRD's export filter marks with GRACEFUL_SHUTDOWN;
    /// when absent, a drain withdraws without that community.
    #[serde(default)]
    pub graceful_shutdown: Names,
    /// BGP protocols of BIRD whose exported routes show what is announced.
    pub export: Names,
}

/// One name or a list of names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(from = "OneOrMany")]
pub struct Names(pub Vec<String>);

#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a name or a list of names")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Names {
    fn from(value: OneOrMany) -> Self {
        match value {
            OneOrMany::One(name) => Self(vec![name]),
            OneOrMany::Many(names) => Self(names),
        }
    }
}

impl BirdUpstream {
    fn problems(&self, problems: &mut Vec<Problem>) {
        if !self.socket.is_absolute() {
            problems.push(Problem::new(
                "socket",
                "this path is relative; give the absolute path of BIRD's control socket, usually /run/bird/bird.ctl",
            ));
        }
        let lists = [
            ("protocol", &self.protocol),
            ("graceful_shutdown", &self.graceful_shutdown),
            ("export", &self.export),
        ];
        for (key, names) in lists {
            if names.0.is_empty() && key != "graceful_shutdown" {
                problems.push(Problem::new(key, "no name is given; name a protocol of bird.conf"));
            }
            for name in &names.0 {
                if !is_symbol(name) {
                    problems.push(Problem::new(
                        key,
                        format!(
                            "`{name}` is not the name of a protocol; BIRD's names are letters, digits and underscores"
                        ),
                    ));
                }
            }
        }
        if let Some(name) =
            self.graceful_shutdown.0.iter().find(|name| self.protocol.0.contains(name))
        {
            problems.push(Problem::new(
                "graceful_shutdown",
                format!("`{name}` is in protocol too; it takes static protocols of their own"),
            ));
        }
    }
}

/// A plain symbol of BIRD's configuration language (bird.conf's lexer, `[a-zA-Z_][a-zA-Z_0-9]*`).
fn is_symbol(name: &str) -> bool {
    name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = r#"
        name = "isp-a"
        type = "bgp"
        peer = "172.16.0.29"
        peer_as = 4
        local_as = 12
        "#;
    const BIRD: &str = r#"
        name = "bird"
        type = "bird"
        socket = "/run/bird/bird.ctl"
        protocol = "nigh"
        export = "isp_a"
        "#;

    fn read(base: &str, more: &str) -> Result<Upstream, toml::de::Error> {
        toml::from_str(&format!("{base}\n{more}"))
    }

    /// The keys that are complained about, for these prefixes.
    fn keys(upstream: &Upstream, prefixes: &[&str]) -> Vec<String> {
        let prefixes: Vec<IpNet> = prefixes.iter().map(|prefix| prefix.parse().unwrap()).collect();
        upstream.problems(&prefixes).into_iter().map(|problem| problem.key).collect()
    }

    #[test]
    fn the_shortest_tables_are_enough() {
        let Upstream::Bgp(bgp) = read(SESSION, "").unwrap() else { panic!("type is bgp") };
        assert_eq!(bgp.hold_time, Duration::from_secs(9));
        assert_eq!((bgp.prepend, bgp.med, bgp.ttl_security), (0, None, false));
        assert_eq!(keys(&Upstream::Bgp(bgp), &["50.0.0.0/8"]), [""; 0]);
        let Upstream::Bird(bird) = read(BIRD, "").unwrap() else { panic!("type is bird") };
        assert_eq!(bird.protocol.0, ["nigh"]);
        assert_eq!(keys(&Upstream::Bird(bird), &["50.0.0.0/8"]), [""; 0]);
    }

    #[test]
    fn unknown_keys_and_wrong_values_are_refused() {
        for (base, more, part) in [
            (SESSION, "hold = 3", "unknown field `hold`"),
            (BIRD, "peer_as = 3", "unknown field `peer_as`"),
            (SESSION, r#"communities = ["12"]"#, "`12` is not a community"),
            (SESSION, r#"large_communities = ["12:1"]"#, "`12:1` is not a large community"),
            (SESSION, r#"hold_time = "soon""#, "a duration"),
            (BIRD, "graceful_shutdown = 1", "expected a name or a list of names"),
        ] {
            let error = read(base, more).unwrap_err().to_string();
            assert!(error.contains(part), "{more}: {error}");
        }
    }

    #[test]
    fn each_senseless_value_is_named() {
        let dual = ["50.0.0.0/8", "2001:db8:50::/48"];
        let cases: &[(&str, &str, &[&str])] = &[
            ("peer = \"172.16.0.29\"", "peer = \"fe80::1\"", &["peer", "router_id", "next_hop4"]),
            ("peer = \"172.16.0.29\"", "peer = \"0.0.0.0\"", &["peer", "next_hop6"]),
            ("peer_as = 4", "peer_as = 0", &["peer_as", "next_hop6"]),
            ("local_as = 12", "local_as = 23456", &["local_as", "next_hop6"]),
            ("", "local_address = \"::1\"", &["local_address", "next_hop6"]),
            ("", "router_id = \"0.0.0.0\"", &["router_id", "next_hop6"]),
            ("", "next_hop4 = \"0.0.0.0\"", &["next_hop4", "next_hop6"]),
            ("", "next_hop6 = \"fe80::1\"", &["next_hop6"]),
            ("", "password = \"\"", &["next_hop6", "password"]),
            ("", "password = \"a\"\npassword_file = \"/b\"", &["next_hop6", "password_file"]),
            ("", "communities = [\"1:1\", \"65535:0\"]", &["next_hop6", "communities[1]"]),
            ("", "prepend = 33", &["next_hop6", "prepend"]),
            ("peer_as = 4", "peer_as = 12\nprepend = 1", &["next_hop6", "prepend"]),
            ("", "hold_time = \"2s\"", &["next_hop6", "hold_time"]),
            ("", "hold_time = \"3500ms\"", &["next_hop6", "hold_time"]),
            ("", "hold_time = \"1day\"", &["next_hop6", "hold_time"]),
            ("", "bfd = {}", &["next_hop6"]),
            (
                "",
                "bfd = { interval = \"99ms\", multiplier = 1 }",
                &["next_hop6", "bfd.interval", "bfd.multiplier"],
            ),
            ("", "bfd = { interval = \"61s\" }", &["next_hop6", "bfd.interval"]),
        ];
        for (from, to, expected) in cases {
            let upstream = if from.is_empty() {
                read(SESSION, to).unwrap()
            } else {
                read(&SESSION.replace(from, to), "").unwrap()
            };
            assert_eq!(keys(&upstream, &dual), *expected, "{to}");
        }
        let many = vec!["\"1:1\""; COMMUNITIES_MAX + 1].join(",");
        let upstream = read(SESSION, &format!("communities = [{many}]")).unwrap();
        assert_eq!(keys(&upstream, &["50.0.0.0/8"]), ["communities"]);
    }

    #[test]
    fn each_senseless_value_for_bird_is_named() {
        for (from, to, expected) in [
            ("/run/bird/bird.ctl", "bird.ctl", vec!["socket"]),
            ("\"nigh\"", "\"nigh; configure\"", vec!["protocol"]),
            ("\"nigh\"", "\"\"", vec!["protocol"]),
            ("\"nigh\"", "[]", vec!["protocol"]),
            ("\"isp_a\"", "[\"isp_a\", \"4\"]", vec!["export"]),
            ("\"isp_a\"", "\"isp_a\"\ngraceful_shutdown = \"nigh\"", vec!["graceful_shutdown"]),
            ("\"bird\"", "\"\"", vec!["name"]),
        ] {
            let upstream = read(&BIRD.replacen(from, to, 1), "");
            let Ok(upstream) = upstream else { panic!("{to}: {upstream:?}") };
            assert_eq!(keys(&upstream, &[]), expected, "{to}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let upstream = read(SESSION, r#"password = "open sesame""#).unwrap();
        assert!(!format!("{upstream:?}{upstream:#?}").contains("sesame"));
    }

    #[test]
    fn a_password_file_is_read_without_its_last_line_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        let upstream = read(SESSION, &format!("password_file = {file:?}")).unwrap();
        let Upstream::Bgp(bgp) = upstream else { panic!("type is bgp") };
        assert!(matches!(bgp.password(), Err(PasswordError::Read { .. })));
        std::fs::write(&file, "open sesame\n").unwrap();
        assert_eq!(bgp.password().unwrap(), Some(Password::new("open sesame")));
        for text in ["\n", "", &"x".repeat(81)] {
            std::fs::write(&file, text).unwrap();
            assert!(matches!(bgp.password(), Err(PasswordError::Unusable { .. })), "{text:?}");
        }
    }
}
