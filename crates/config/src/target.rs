//! At whom a load test may be aimed.
//!
//! A load that nobody asked for is an attack, also by mistake. So only loopback, private, link-local
//! and documentation space may be a target; everything else must be named on the command line.

use std::net::IpAddr;

use ipnet::IpNet;

/// The target is outside test space and no `--allow` covers it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} is outside loopback, private and documentation space; if it is yours to test, \
     add --allow {1}"
)]
pub struct Refused(IpAddr, IpNet);

/// Whether a target may be sent to.
///
/// # Errors
/// When it is outside test space (see [`wire::space::is_test_space`]) and no prefix covers it.
pub fn check(target: IpAddr, allow: &[IpNet]) -> Result<(), Refused> {
    if wire::space::is_test_space(target) || allow.iter().any(|prefix| prefix.contains(&target)) {
        return Ok(());
    }
    Err(Refused(target, IpNet::from(target)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_test_space_or_what_is_allowed() {
        let allow: Vec<IpNet> = ["50.0.0.0/8", "2001:db9::/32"].map(|p| p.parse().unwrap()).into();
        for target in ["127.0.0.1", "10.1.2.3", "192.0.2.1", "::1", "fe80::1", "2001:db8::1"] {
            assert_eq!(check(target.parse().unwrap(), &[]), Ok(()), "{target}");
        }
        for target in ["50.50.50.50", "2001:db9::1"] {
            let target = target.parse().unwrap();
            assert!(check(target, &[]).is_err(), "{target}");
            assert_eq!(check(target, &allow), Ok(()), "{target}");
        }
        let refused = check("8.8.8.8".parse().unwrap(), &allow).unwrap_err();
        assert!(refused.to_string().ends_with("add --allow 8.8.8.8/32"), "{refused}");
    }
}
