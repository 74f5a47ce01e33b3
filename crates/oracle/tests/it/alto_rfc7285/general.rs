//! RFC 7285, section 8: general processing.

use crate::alto_rfc7285::support::{Setup, ground, json, request, routing, wrong};
use oracle::alto::{Method, Request};
use serde_json::{Value, json};

/// Every resource, asked as the directory describes.
fn good_requests() -> Vec<(&'static str, &'static str, Option<Value>)> {
    let costs = json!({"cost-type": routing("ordinal"), "endpoints": {"dsts": ["ipv4:10.0.0.1"]}});
    vec![
        ("/directory", "application/alto-directory+json", None),
        ("/networkmap/groups", "application/alto-networkmap+json", None),
        (
            "/networkmap/routers/filtered",
            "application/alto-networkmap+json",
            Some(json!({"pids": []})),
        ),
        ("/costmap/groups/num-routingcost", "application/alto-costmap+json", None),
        (
            "/costmap/groups/filtered",
            "application/alto-costmap+json",
            Some(json!({"cost-type": routing("numerical")})),
        ),
        (
            "/endpointprop/lookup",
            "application/alto-endpointprop+json",
            Some(json!({"properties": ["groups.pid"], "endpoints": ["ipv4:10.0.0.1"]})),
        ),
        ("/endpointcost/lookup", "application/alto-endpointcost+json", Some(costs)),
    ]
}

/// The server MUST indicate the type of its response using a media type.
#[test]
fn s8_3_3_every_response_has_its_media_type() {
    let ground = ground();
    for (path, media_type, body) in good_requests() {
        let response = match &body {
            None => ground.respond(&request(Method::Get, path, b"")),
            Some(body) => ground.post_bytes(path, body.to_string().as_bytes()),
        };
        assert_eq!((response.status, response.media_type), (200, media_type), "{path}");
        assert!(json(&response)["meta"].is_object(), "{path}: 8.4, every response has `meta`");
    }
    let error = ground.post_bytes("/endpointcost/lookup", b"{");
    assert_eq!(error.media_type, "application/alto-error+json");
    let missing = ground.respond(&request(Method::Get, "/nowhere", b""));
    assert!(!missing.media_type.is_empty());
}

/// Input parameters come with POST; GET and POST are not interchangeable.
#[test]
fn s8_3_2_a_resource_takes_the_method_of_the_directory_alone() {
    let ground = ground();
    for (path, _, body) in good_requests() {
        let (right, other) =
            if body.is_some() { ("POST", Method::Get) } else { ("GET", Method::Post) };
        for method in [other, Method::Other] {
            let response = ground.respond(&request(method, path, b"{}"));
            assert_eq!((response.status, response.allow), (405, Some(right)), "{path}");
        }
    }
}

/// A body whose Content-Type is not the one of the input parameters is not inspected.
#[test]
fn s8_3_2_input_has_its_content_type() {
    let ground = ground();
    let body = json!({"pids": []}).to_string();
    let post = Request {
        content_type: Some("application/alto-networkmapfilter+json; charset=utf-8"),
        ..request(Method::Post, "/networkmap/groups/filtered", body.as_bytes())
    };
    assert_eq!(ground.respond(&post).status, 200);
    for content_type in
        [None, Some("application/json"), Some("application/alto-costmapfilter+json")]
    {
        assert_eq!(ground.respond(&Request { content_type, ..post }).status, 415);
    }
}

/// What a client does not accept it does not get.
#[test]
fn s8_3_4_2_the_accept_header_is_heeded() {
    let ground = ground();
    let get = request(Method::Get, "/networkmap/groups", b"");
    for (accept, status) in [
        ("application/alto-networkmap+json,application/alto-error+json", 200),
        ("application/alto-costmap+json", 406),
    ] {
        assert_eq!(ground.respond(&Request { accept: Some(accept), ..get }).status, status);
    }
    let directory = Request { path: "/directory", accept: Some("text/html"), ..get };
    assert_eq!(ground.respond(&directory).status, 406);
}

/// ALTO implementations MUST ignore unknown fields.
#[test]
fn s8_3_7_unknown_fields_are_ignored() {
    let ground = ground();
    for (path, _, body) in good_requests() {
        let Some(mut body) = body else { continue };
        let plain = ground.post(path, &body);
        body["a-later-extension"] = json!({"with": ["anything"]});
        assert_eq!(ground.post(path, &body), plain, "{path}");
    }
}

/// The server MUST set an appropriate HTTP status code.
#[test]
fn s8_5_the_status_says_what_happened() {
    let ground = ground();
    for (path, body, status) in [
        ("/networkmap/groups/filtered", "{\"pids\":[]}", 200),
        ("/networkmap/groups/filtered", "{\"pids\":7}", 400),
        ("/networkmap/other/filtered", "{}", 404),
        ("", "{}", 404),
    ] {
        assert_eq!(ground.post_bytes(path, body.as_bytes()).status, status, "{path} {body}");
    }
}

/// An error response MUST include "code" in "meta", and it MUST be one of table 1.
#[test]
fn s8_5_2_each_kind_of_error_has_its_code() {
    let ground = ground();
    let costs = |cost_type: Value| json!({"cost-type": cost_type, "endpoints": {"srcs": ["ipv4:10.0.0.1"]}});
    for (body, expected) in [
        (json!([]), wrong("E_SYNTAX", None, None)),
        (json!({}), wrong("E_MISSING_FIELD", Some("cost-type"), None)),
        (
            costs(json!({"cost-mode": "numerical"})),
            wrong("E_MISSING_FIELD", Some("cost-type/cost-metric"), None),
        ),
        (costs(json!(1)), wrong("E_INVALID_FIELD_TYPE", Some("cost-type"), None)),
        (
            costs(json!({"cost-mode": "foo", "cost-metric": "routingcost"})),
            wrong("E_INVALID_FIELD_VALUE", Some("cost-type/cost-mode"), Some("foo")),
        ),
    ] {
        assert_eq!(ground.refused("/endpointcost/lookup", &body), expected, "{body}");
    }
}

/// A syntax error names its position.
#[test]
fn s8_5_2_a_syntax_error_has_a_position() {
    let ground = ground();
    let response = ground.post_bytes("/endpointcost/lookup", b"{\"cost-type\": }");
    assert_eq!(response.status, 400);
    let meta = json(&response)["meta"].clone();
    assert_eq!(meta["code"], "E_SYNTAX");
    let text = meta["syntax-error"].as_str().expect("a text");
    assert!(text.contains("line 1") && text.contains("column"), "{text}");
}

/// If "value" is there, "field" MUST be; "value" MUST be a string, converted if need be.
#[test]
fn s8_5_2_the_wrong_value_is_a_string_and_has_its_field() {
    let ground = ground();
    for (value, expected) in [
        (json!(17.5), "17.5"),
        (json!(true), "true"),
        (json!(null), "null"),
        (json!({"a": 1}), "{\"a\":1}"),
        (json!("bad pid"), "bad pid"),
    ] {
        // An element of an array of the wrong type is an invalid value, and the field is the array.
        let refused = ground.refused("/networkmap/groups/filtered", &json!({"pids": ["x", value]}));
        assert_eq!(refused, wrong("E_INVALID_FIELD_VALUE", Some("pids"), Some(expected)));
    }
}

/// With several errors the server MUST return exactly one of them.
#[test]
fn s8_5_2_of_several_errors_one_is_returned() {
    let ground = ground();
    let body = json!({"cost-type": {"cost-mode": 5}, "pids": {"srcs": "x"}, "constraints": [1, 2]});
    let response = ground.post_bytes("/costmap/groups/filtered", body.to_string().as_bytes());
    let error = json(&response);
    assert_eq!(error.as_object().map(|object| object.len()), Some(1));
    assert!(error["meta"]["code"].is_string());
}

/// A server that cannot handle a request answers 503, with the reason.
#[test]
fn s8_5_3_what_is_too_large_is_refused_with_a_sentence() {
    let small = Setup { config: "max_pids = 3\nmax_costs = 10", ..Setup::default() }.ground();
    for path in ["/networkmap/groups", "/costmap/groups/num-routingcost"] {
        let response = small.respond(&request(Method::Get, path, b""));
        assert_eq!((response.status, response.media_type), (503, "text/plain; charset=utf-8"));
        let sentence = String::from_utf8(response.body.to_vec()).expect("text");
        assert!(sentence.contains("at most"), "{sentence}");
    }
    for (path, body) in [
        ("/networkmap/groups/filtered", json!({"pids": []})),
        ("/costmap/groups/filtered", json!({"cost-type": routing("ordinal")})),
    ] {
        assert_eq!(small.post_bytes(path, body.to_string().as_bytes()).status, 503, "{path}");
    }
    // Less than everything is still given.
    let pid = small.pid("mypid1");
    let part = small.post("/networkmap/groups/filtered", &json!({"pids": [pid]}));
    assert_eq!(part["network-map"].as_object().map(|map| map.len()), Some(1));
}
