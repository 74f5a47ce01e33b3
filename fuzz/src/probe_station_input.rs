//! Any bytes as the lines of another station: admission control answers each with one answer that reads back as
//! written, begins nothing for what it refuses, and gives no lease that does not end.

use probe::{
    config::Config,
    station::{Action, Admission, Answer, message},
};
use std::sync::Arc;

const SECTION: &str = r#"
[security]
shared_key = "/k"
[[station]]
name = "here"
addresses = ["192.0.2.1"]
[[station]]
name = "there"
addresses = ["192.0.2.2"]
"#;

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let probe = toml::from_str(SECTION).expect("a constant that parses");
    let config = Config { node: "here".into(), state: "/s".into(), probe };
    let mut admission = Admission::new(Arc::new(config));
    let mut guest = admission.guest([192, 0, 2, 2].into(), Box::new(|name| name == "there"));
    let mut begun = 0;
    for (second, line) in data.split(|byte| *byte == b'\n').enumerate() {
        let now_ns = second as u64 * 1_000_000_000;
        let (answer, action) = admission.answer(&mut guest, line, now_ns);
        let text = message::line(&answer);
        assert_eq!(serde_json::from_slice::<Answer>(&text).expect("it reads back"), answer);
        match (&answer, &action) {
            (Answer::Refused { .. }, action) => {
                assert!(action.is_none(), "{action:?} for a refusal")
            }
            (Answer::Accepted { .. }, Some(Action::Reflect { peer, session, .. })) => {
                assert_eq!((peer.as_str(), session.from.ip()), ("there", [192, 0, 2, 2].into()));
                begun += 1;
            }
            _ => {}
        }
    }
    let accepted: u64 = admission.counts().accepted.values().sum();
    assert!(begun <= accepted);
    let held = admission.reservations().entries().count();
    assert_eq!(admission.expire(u64::MAX).len(), held, "a lease without end");
    admission.gone(&guest);
    assert_eq!(admission.reservations().entries().count(), 0);
}
