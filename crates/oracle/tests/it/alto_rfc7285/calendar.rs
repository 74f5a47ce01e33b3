//! RFC 8896: cost calendars.

use crate::alto_rfc7285::support::{Ground, Setup, delay, routing, wrong};
use serde_json::{Value, json};

const FILTERED: &str = "/costmap/groups/filtered";
const ENDPOINTS: &str = "/endpointcost/lookup";
/// Requests are made at one o'clock: in the second of four intervals.
const CONFIG: &str = r#"
    classes = 1000
    [[calendar]]
    metric = "routingcost"
    interval = "1h"
    factors = [1.0, 2.0, 4.0, 1.0]
"#;

fn ground() -> Ground {
    Setup { config: CONFIG, ..Setup::default() }.ground()
}

fn calendared(values: Value) -> Value {
    json!({
        "cost-type": routing("numerical"),
        "calendared": values,
        "endpoints": {"srcs": ["ipv4:10.0.0.1"], "dsts": ["ipv4:128.0.0.1", "ipv4:130.0.0.1"]},
    })
}

/// 4.1: a calendar MUST be in the capabilities of filtered cost maps and endpoint costs, and no cost
/// type twice. Full cost maps have none (3.3.2).
#[test]
fn s4_1_calendars_are_announced() {
    let directory = ground().get("/directory");
    let expected = json!([{
        "cost-type-names": ["num-routingcost"],
        "time-interval-size": 3600,
        "number-of-intervals": 4,
    }]);
    for (id, entry) in directory["resources"].as_object().expect("an object") {
        let calendars = &entry["capabilities"]["calendar-attributes"];
        if id.ends_with("-costs-filtered") || id == "endpoint-cost" {
            assert_eq!(*calendars, expected, "{id}");
        } else {
            assert!(calendars.is_null(), "{id}");
        }
    }
}

/// 5.1.2: the reply has an array of as many values as intervals, and the begin of the first.
#[test]
fn s5_1_2_a_calendar_has_a_value_for_each_interval() {
    let ground = ground();
    let pid = ground.pid("mypid1");
    let body = json!({
        "cost-type": routing("numerical"),
        "calendared": [true],
        "pids": {"srcs": [pid], "dsts": [ground.pid("peeringpid1")]},
    });
    let reply = ground.post(FILTERED, &body);
    assert_eq!(reply["meta"]["cost-type"], routing("numerical"));
    assert!(reply["meta"]["dependent-vtags"].is_array());
    let attributes = &reply["meta"]["calendar-response-attributes"];
    assert_eq!(
        *attributes,
        json!([{
            "cost-type-names": ["num-routingcost"],
            "calendar-start-time": "Thu, 01 Jan 1970 00:00:00 GMT",
            "time-interval-size": 3600,
            "number-of-intervals": 4,
        }]),
    );
    // It is 8.5 now, in the second interval.
    let costs = &reply["cost-map"][&pid][ground.pid("peeringpid1")];
    let costs: Vec<f64> =
        costs.as_array().expect("an array").iter().filter_map(Value::as_f64).collect();
    for (cost, about) in costs.iter().zip([4.25, 8.5, 17.0, 4.25]) {
        assert!((cost - about).abs() <= 0.1, "{costs:?}");
    }
    assert_eq!(costs.len(), 4);
}

/// 3.3.2, 5.1.2: without "calendared", or with false, the reply is as without the extension, and has
/// the current value.
#[test]
fn s5_1_2_without_calendars_nothing_changes() {
    let ground = ground();
    let plain = Setup { config: "classes = 1000", ..Setup::default() }.ground();
    let mut body = calendared(json!([false]));
    let reply = plain.post(ENDPOINTS, &body);
    assert_eq!(ground.post(ENDPOINTS, &body), reply);
    body.as_object_mut().expect("an object").remove("calendared");
    assert_eq!(ground.post(ENDPOINTS, &body), reply);
    let calendar = ground.post(ENDPOINTS, &calendared(json!([true])));
    let now = &calendar["endpoint-cost-map"]["ipv4:10.0.0.1"]["ipv4:128.0.0.1"][1];
    assert_eq!(*now, reply["endpoint-cost-map"]["ipv4:10.0.0.1"]["ipv4:128.0.0.1"]);
}

/// 5.1.1: "calendared" MUST have a boolean for each cost type.
#[test]
fn s5_1_1_wrong_input_is_refused() {
    let ground = ground();
    for (values, code, value) in [
        (json!([]), "E_INVALID_FIELD_VALUE", Some("[]")),
        (json!([true, false]), "E_INVALID_FIELD_VALUE", Some("[true,false]")),
        (json!(["true"]), "E_INVALID_FIELD_VALUE", Some("true")),
        (json!(true), "E_INVALID_FIELD_TYPE", None),
    ] {
        let expected = wrong(code, Some("calendared"), value);
        assert_eq!(ground.refused(ENDPOINTS, &calendared(values)), expected);
    }
}

/// 5.1.1: true for a cost type without a calendar MUST be ignored.
#[test]
fn s5_1_1_a_calendar_that_is_not_there_is_ignored() {
    let ground = ground();
    for cost_type in [delay("numerical"), routing("ordinal")] {
        let mut body = calendared(json!([true]));
        body["cost-type"] = cost_type;
        let with = ground.post(ENDPOINTS, &body);
        body["calendared"] = json!([false]);
        assert_eq!(with, ground.post(ENDPOINTS, &body));
        assert!(with["meta"].get("calendar-response-attributes").is_none());
    }
    // A server without calendars does not know the member at all.
    let plain = Setup::default().ground();
    plain.post(ENDPOINTS, &calendared(json!("anything")));
}

/// 5.2.1: constraints beside a calendar MUST be ignored.
#[test]
fn s5_2_1_constraints_beside_a_calendar_are_ignored() {
    let ground = ground();
    let body = calendared(json!([true]));
    let mut with = body.clone();
    with["constraints"] = json!(["le 0", 7]);
    assert_eq!(ground.post(ENDPOINTS, &with), ground.post(ENDPOINTS, &body));
    // Without a calendar they hold.
    with["calendared"] = json!([false]);
    with["constraints"] = json!(["le 0"]);
    let reply = ground.post(ENDPOINTS, &with);
    assert_eq!(reply["endpoint-cost-map"]["ipv4:10.0.0.1"], json!({}));
}

/// 5.1.2: of several cost types some may be calendars; the names of those MUST be given.
#[test]
fn s5_1_2_calendars_among_several_costs() {
    let ground = ground();
    let mut body = calendared(json!([true, false, true]));
    let members = body.as_object_mut().expect("an object");
    members.remove("cost-type");
    let types = json!([routing("numerical"), routing("numerical"), delay("numerical")]);
    members.insert("multi-cost-types".to_owned(), types);
    let reply = ground.post(ENDPOINTS, &body);
    let attributes = reply["meta"]["calendar-response-attributes"].as_array().expect("an array");
    assert_eq!(attributes.len(), 1);
    assert_eq!(attributes[0]["cost-type-names"], json!(["num-routingcost"]));
    let costs = &reply["endpoint-cost-map"]["ipv4:10.0.0.1"]["ipv4:130.0.0.1"];
    assert_eq!(costs[0].as_array().map(Vec::len), Some(4));
    assert_eq!(costs[0][1], costs[1]);
    assert!(costs[2].is_number());
}

/// Every value counts for the limit of a reply.
#[test]
fn s8_the_limit_of_a_reply_counts_all_values() {
    let config = format!("max_costs = 4\n{CONFIG}");
    let ground = Setup { config: &config, ..Setup::default() }.ground();
    let status = |values: Value| {
        ground.post_bytes(ENDPOINTS, calendared(values).to_string().as_bytes()).status
    };
    // Two pairs: two values, or two times four.
    assert_eq!((status(json!([false])), status(json!([true]))), (200, 503));
}
