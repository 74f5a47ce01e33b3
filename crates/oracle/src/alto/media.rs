//! The media types of RFC 7285, table 2, and how `Accept` and `Content-Type` match them.

/// Information resource directory (RFC 7285, 9.2.1).
pub const DIRECTORY: &str = "application/alto-directory+json";
/// Network map (11.2.1.1), filtered ones too (11.3.1.1).
pub const NETWORK_MAP: &str = "application/alto-networkmap+json";
/// Input of a filtered network map (11.3.1.3).
pub const NETWORK_MAP_FILTER: &str = "application/alto-networkmapfilter+json";
/// Cost map (11.2.3.1), filtered ones too (11.3.2.1).
pub const COST_MAP: &str = "application/alto-costmap+json";
/// Input of a filtered cost map (11.3.2.3).
pub const COST_MAP_FILTER: &str = "application/alto-costmapfilter+json";
/// Endpoint properties (11.4.1.1).
pub const ENDPOINT_PROPERTY: &str = "application/alto-endpointprop+json";
/// Input of the endpoint property service (11.4.1.3).
pub const ENDPOINT_PROPERTY_PARAMETERS: &str = "application/alto-endpointpropparams+json";
/// Endpoint costs (11.5.1.1).
pub const ENDPOINT_COST: &str = "application/alto-endpointcost+json";
/// Input of the endpoint cost service (11.5.1.3).
pub const ENDPOINT_COST_PARAMETERS: &str = "application/alto-endpointcostparams+json";
/// Errors (8.5.1).
pub const ERROR: &str = "application/alto-error+json";
/// A sentence for people, where no error code of ALTO fits.
pub const TEXT: &str = "text/plain; charset=utf-8";

/// Whether a `Content-Type` names this media type; parameters such as a charset are ignored.
pub fn is(content_type: &str, media_type: &str) -> bool {
    essence(content_type).eq_ignore_ascii_case(media_type)
}

/// The media type without its parameters.
fn essence(value: &str) -> &str {
    value.split(';').next().unwrap_or_default().trim()
}

/// Whether an `Accept` header takes this media type (RFC 9110, 12.5.1). None or an empty header takes
/// all. The most specific range decides; a weight of zero refuses.
pub fn accepts(accept: Option<&str>, media_type: &str) -> bool {
    let Some(accept) = accept.map(str::trim).filter(|accept| !accept.is_empty()) else {
        return true;
    };
    let kind = media_type.split('/').next().unwrap_or_default();
    let mut best: Option<(u8, bool)> = None;
    for range in accept.split(',') {
        let name = essence(range);
        let specific = if name.eq_ignore_ascii_case(media_type) {
            2
        } else if name.strip_suffix("/*").is_some_and(|name| name.eq_ignore_ascii_case(kind)) {
            1
        } else if name == "*/*" {
            0
        } else {
            continue;
        };
        let wanted = weight(range) > 0.0;
        if best.is_none_or(|(than, _)| specific >= than) {
            best = Some((specific, wanted));
        }
    }
    best.is_some_and(|(_, wanted)| wanted)
}

/// The weight `q` of one range, 1 when it has none or an unreadable one.
fn weight(range: &str) -> f64 {
    range
        .split(';')
        .skip(1)
        .filter_map(|parameter| parameter.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("q"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_takes_lists_ranges_and_weights() {
        for (accept, taken) in [
            (None, true),
            (Some(""), true),
            (Some("*/*"), true),
            (Some("application/*"), true),
            (Some("application/alto-networkmap+json,application/alto-error+json"), true),
            (Some("text/html, Application/ALTO-NetworkMap+JSON;q=0.2"), true),
            (Some("application/alto-error+json"), false),
            (Some("application/json"), false),
            (Some("text/*"), false),
            (Some("*/*, application/alto-networkmap+json;q=0"), false),
            (Some("application/alto-networkmap+json; q=0.0, */*;q=1"), false),
            (Some(",;,=/"), false),
        ] {
            assert_eq!(accepts(accept, NETWORK_MAP), taken, "{accept:?}");
        }
    }

    #[test]
    fn a_content_type_may_have_parameters() {
        assert!(is("application/alto-costmapfilter+json; charset=utf-8", COST_MAP_FILTER));
        assert!(!is("application/json", COST_MAP_FILTER));
        assert!(!is("", COST_MAP_FILTER));
    }
}
