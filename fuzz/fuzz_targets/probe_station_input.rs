//! Any bytes as the lines of another station: the desk answers each with one answer that reads back as
//! written, begins nothing for what it refuses, and gives no lease that does not end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use probe::{
    config::Config,
    station::{Act, Answer, Desk, message},
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

fuzz_target!(|data: &[u8]| {
    let probe = toml::from_str(SECTION).expect("a constant that parses");
    let config = Config { node: "here".into(), state: "/s".into(), probe };
    let mut desk = Desk::new(Arc::new(config));
    let mut guest = desk.guest([192, 0, 2, 2].into(), Box::new(|name| name == "there"));
    let mut begun = 0;
    for (second, line) in data.split(|byte| *byte == b'\n').enumerate() {
        let now_ns = second as u64 * 1_000_000_000;
        let (answer, act) = desk.answer(&mut guest, line, now_ns);
        let text = message::line(&answer);
        assert_eq!(serde_json::from_slice::<Answer>(&text).expect("it reads back"), answer);
        match (&answer, &act) {
            (Answer::Refused { .. }, act) => assert!(act.is_none(), "{act:?} for a refusal"),
            (Answer::Agreed { .. }, Some(Act::Reflect { peer, session, .. })) => {
                assert_eq!((peer.as_str(), session.from.ip()), ("there", [192, 0, 2, 2].into()));
                begun += 1;
            }
            _ => {}
        }
    }
    let agreed: u64 = desk.counts().agreed.values().sum();
    assert!(begun <= agreed);
    let held = desk.book().entries().count();
    assert_eq!(desk.expire(u64::MAX).len(), held, "a lease without end");
    desk.gone(&guest);
    assert_eq!(desk.book().entries().count(), 0);
});
