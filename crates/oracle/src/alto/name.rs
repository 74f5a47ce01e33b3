//! The strings of RFC 7285, section 10: PID names, resource identities, tags, metrics, properties.

/// Most characters of a PID name, a resource identity (10.1, 10.2) or a tag (10.3).
pub const MAX_NAME: usize = 64;
/// Most characters of a cost metric (10.6) or a global endpoint property (10.8.2).
pub const MAX_METRIC: usize = 32;
/// Begins names that need no registration (10.6, 10.8.2).
pub const PRIVATE: &str = "priv:";
/// The metric that every server has (6.1.1.1).
pub const ROUTING_COST: &str = "routingcost";

/// Whether this may be a PID's name (10.1). The dot is reserved there, so it is refused.
pub fn is_pid(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-:@_".contains(&byte);
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(allowed)
}

/// Whether this may be the identity of a resource (10.2: as a PID's name).
pub fn is_resource(name: &str) -> bool {
    is_pid(name)
}

/// Whether this may be a cost metric: `routingcost`, or private with something behind the colon
/// (10.6). The dot is reserved there, so it is refused.
pub fn is_metric(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-:_".contains(&byte);
    let known = name == ROUTING_COST
        || name.strip_prefix(PRIVATE).is_some_and(|private| !private.is_empty());
    known && name.len() <= MAX_METRIC && name.bytes().all(allowed)
}

/// The cost metric for a configured metric: the first is `routingcost`, the others are private ones.
/// None if the name holds other characters than ALTO's or is too long.
pub fn metric(index: usize, configured: &str) -> Option<String> {
    if index == 0 {
        return Some(ROUTING_COST.to_owned());
    }
    let name = format!("{PRIVATE}{configured}");
    is_metric(&name).then_some(name)
}

/// The parts of a property's name (10.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property<'a> {
    /// `resource.name` (10.8.1).
    OfResource(&'a str, &'a str),
    /// A name alone (10.8.2).
    Global(&'a str),
}

/// Takes a property's name apart; none if it does not follow 10.8.
pub fn property(name: &str) -> Option<Property<'_>> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-:_".contains(&byte);
    let global = |name: &str| {
        !name.is_empty() && name.len() <= MAX_METRIC && name.bytes().all(allowed) && name != PRIVATE
    };
    match name.split_once('.') {
        Some((resource, rest)) => {
            (is_resource(resource) && global(rest)).then_some(Property::OfResource(resource, rest))
        }
        None => global(name).then_some(Property::Global(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pid_names_and_resource_identities() {
        for name in ["PID1", "a", "A-b:c@d_e", "0", &"x".repeat(64)] {
            assert!(is_pid(name) && is_resource(name), "{name}");
        }
        for name in ["", "a.b", "a b", "ü", "a/b", "a\n", &"x".repeat(65)] {
            assert!(!is_pid(name) && !is_resource(name), "{name}");
        }
    }

    #[test]
    fn metrics_are_routingcost_or_private() {
        assert_eq!(metric(0, "anything at all").as_deref(), Some("routingcost"));
        assert_eq!(metric(1, "latency").as_deref(), Some("priv:latency"));
        for name in ["", "a b", "a.b", "ü", &"x".repeat(28)] {
            assert_eq!(metric(1, name), None, "{name}");
        }
        assert!(!is_metric("priv:") && !is_metric("hopcount") && is_metric("priv:x"));
    }

    #[test]
    fn properties_are_global_or_of_a_resource() {
        assert_eq!(property("my-map.pid"), Some(Property::OfResource("my-map", "pid")));
        assert_eq!(property("priv:x"), Some(Property::Global("priv:x")));
        for name in ["", ".pid", "map.", "a.b.c", "priv:", "ü", &"x".repeat(33)] {
            assert_eq!(property(name), None, "{name}");
        }
    }
}
