//! What BIRD prints for `show route all`, as values.
//!
//! ```text
//! Table master4:
//! 50.0.0.0/8           unicast [as4 22:10:01.234] * (100) [AS12i]
//!         via 172.16.0.17 on isp-a
//!         Type: BGP univ
//!         BGP.origin: IGP
//!         BGP.as_path: 4 12
//!         BGP.next_hop: 172.16.0.17
//!         BGP.local_pref: 100
//!                      unicast [as3 ...] (100) [AS13i]
//! ```

/// One route as a router knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The prefix, such as `50.0.0.0/8`.
    pub prefix: String,
    /// Whether this is the one that is used.
    pub best: bool,
    /// Where packets go next; empty for the AS's own network.
    pub next_hop: String,
    /// The AS path, such as `4 12`; empty for the AS's own network.
    pub path: String,
    /// Where the route came from at first: `i` (IGP), `e` (EGP) or `?` (RFC 4271 section 4.3).
    pub origin: char,
    /// LOCAL_PREF, if it was learned over BGP.
    pub local_pref: Option<u32>,
}

/// Reads the answer to `show route all`; lines that it does not know are passed over.
pub(crate) fn parse(answer: &str) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    let mut prefix = String::new();
    for line in answer.lines() {
        // BIRD indents what belongs to a route with a tab, and its control socket adds nothing.
        if let Some(attribute) = line.strip_prefix('\t') {
            let Some(route) = routes.last_mut() else { continue };
            if let Some(path) = attribute.strip_prefix("BGP.as_path:") {
                path.trim().clone_into(&mut route.path);
            } else if let Some(hop) = attribute.strip_prefix("via ") {
                hop.split(' ').next().unwrap_or_default().clone_into(&mut route.next_hop);
            } else if let Some(origin) = attribute.strip_prefix("BGP.origin:") {
                route.origin = match origin.trim() {
                    "IGP" => 'i',
                    "EGP" => 'e',
                    _ => '?',
                };
            } else if let Some(preference) = attribute.strip_prefix("BGP.local_pref:") {
                route.local_pref = preference.trim().parse().ok();
            }
        } else if let Some((before, after)) = line.split_once('[') {
            if let Some(name) = before.split_whitespace().next().filter(|name| name.contains('/')) {
                name.clone_into(&mut prefix);
            }
            let best = after.split_once(']').is_some_and(|(_, rest)| rest.trim().starts_with('*'));
            routes.push(Route {
                prefix: prefix.clone(),
                best,
                next_hop: String::new(),
                path: String::new(),
                origin: 'i',
                local_pref: None,
            });
        }
    }
    routes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_routes_to_one_prefix() {
        let answer = "Table master4:\n\
            1.0.0.0/8            blackhole [own4 22:10:00.000] * (200)\n\
            \tType: static univ\n\
            50.0.0.0/8           unicast [as2 22:10:01.000] * (100) [AS12i]\n\
            \tvia 172.16.0.2 on isp-x\n\tType: BGP univ\n\tBGP.origin: IGP\n\
            \tBGP.as_path: 2 4 12\n\tBGP.next_hop: 172.16.0.2\n\tBGP.local_pref: 100\n\
            \x20                    unicast [as3 22:10:02.000] (100) [AS13i]\n\
            \tvia 172.16.0.6 on isp-y\n\tBGP.as_path: 3 5 13\n\tBGP.local_pref: 0\n";
        let routes = parse(answer);
        assert_eq!(routes.len(), 3);
        assert_eq!((routes[0].prefix.as_str(), routes[0].best), ("1.0.0.0/8", true));
        assert_eq!(routes[0].next_hop, "");
        assert_eq!(
            routes[1],
            Route {
                prefix: "50.0.0.0/8".into(),
                best: true,
                next_hop: "172.16.0.2".into(),
                path: "2 4 12".into(),
                origin: 'i',
                local_pref: Some(100),
            }
        );
        assert_eq!((routes[2].path.as_str(), routes[2].best), ("3 5 13", false));
        assert_eq!((routes[2].prefix.as_str(), routes[2].local_pref), ("50.0.0.0/8", Some(0)));
    }
}
