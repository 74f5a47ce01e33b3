//! Any lines of other stations, on several connections at once: admission control answers each with one answer that
//! reads back as written, begins nothing for what it refuses, keeps its limits, and gives no lease that does not end.
//!
//! A line that begins with a digit is of that connection, any other of the first one; the first two are of the same
//! station, the third of another, the fourth of a stranger. `-` and a digit is a connection that is lost and made
//! again, `*` and a byte so many seconds that pass, `~` a reload by which the second station leaves the mesh or
//! comes back.

use probe::{
    config::Config,
    station::{Action, Admission, Answer, Guest, Lease, message, reservations::Accepted},
};
use std::{collections::BTreeSet, sync::Arc};

const SECTION: &str = r#"
[security]
shared_key = "/k"
[limit]
requests = 60
sessions = 3
throughput = "2m"
[[station]]
name = "here"
addresses = ["192.0.2.1"]
[[station]]
name = "there"
addresses = ["192.0.2.2"]
"#;
const OTHER: &str = r#"
[[station]]
name = "other"
addresses = ["192.0.2.3"]
"#;
/// Of the limits above, in seconds.
const TESTED: u64 = 120;

fn config(whole: bool) -> Arc<Config> {
    let text = SECTION.to_owned() + if whole { OTHER } else { "" };
    let probe = toml::from_str(&text).expect("a constant that parses");
    Arc::new(Config { node: "here".into(), state: "/s".into(), probe })
}

fn connect(admission: &mut Admission, number: usize) -> Guest {
    let (last, own) = [(2, "there"), (2, "there"), (3, "other"), (9, "")][number];
    admission.guest([192, 0, 2, last].into(), Box::new(move |name| name == own))
}

/// Which of the connections a byte chooses.
fn number(byte: Option<&u8>) -> Option<usize> {
    byte.filter(|byte| byte.is_ascii_digit()).map(|byte| usize::from(byte - b'0') % 4)
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let mut admission = Admission::new(config(true));
    let mut guests: [Guest; 4] = std::array::from_fn(|number| connect(&mut admission, number));
    let (mut whole, mut second, mut lines, mut tested) = (true, 0_u64, 0, [0_u64; 2]);
    let mut leases: [BTreeSet<Lease>; 4] = Default::default();
    for line in data.split(|byte| *byte == b'\n') {
        let now_ns = second * 1_000_000_000;
        match line {
            [b'-', rest @ ..] => {
                let number = number(rest.first()).unwrap_or_default();
                let ended = admission.gone(&guests[number]);
                assert!(ended.iter().all(|lease| leases[number].remove(lease)));
                assert!(leases[number].is_empty());
                guests[number] = connect(&mut admission, number);
            }
            [b'*', seconds, ..] => {
                second += u64::from(*seconds);
                for lease in admission.expire(second * 1_000_000_000) {
                    assert!(leases.iter_mut().any(|leases| leases.remove(&lease)));
                }
            }
            [b'~', ..] => {
                whole = !whole;
                admission.configure(config(whole));
                // What a station has used is forgotten when it leaves the mesh.
                tested[1] = 0;
            }
            _ => {
                let (number, line) = number(line.first()).map_or((0, line), |n| (n, &line[1..]));
                // As a station that asks reads it.
                if let Ok(answer) = serde_json::from_slice::<Answer>(line) {
                    let text = message::line(&answer);
                    assert_eq!(serde_json::from_slice::<Answer>(&text).ok(), Some(answer));
                }
                let (answer, action) = admission.answer(&mut guests[number], line, now_ns);
                lines += 1;
                check(number, &answer, action.as_ref(), &mut leases[number], &mut tested);
            }
        }
        for (tested, name) in tested.iter().zip(["there", "other"]) {
            assert!(tested / 1000 <= TESTED + TESTED * second / 3600, "{tested} ms of {name}");
            for what in [Accepted::Delay, Accepted::Slot] {
                assert!(admission.reservations().count(name, |entry| entry.what == what) <= 3);
            }
        }
        let held = admission.reservations().entries().count();
        assert_eq!(held, leases.iter().map(BTreeSet::len).sum::<usize>());
    }
    let counts = admission.counts();
    assert_eq!(counts.requests, lines);
    assert!(counts.accepted.values().chain(counts.refused.values()).sum::<u64>() <= lines);
    let held = admission.reservations().entries().count();
    assert_eq!(admission.expire(u64::MAX).len(), held, "a lease without end");
}

/// Checks one answer; milliseconds of tests are counted for each station.
fn check(
    number: usize,
    answer: &Answer,
    action: Option<&Action>,
    leases: &mut BTreeSet<Lease>,
    tested: &mut [u64; 2],
) {
    let text = message::line(answer);
    assert_eq!(serde_json::from_slice::<Answer>(&text).expect("it reads back"), *answer);
    let own = [Some("there"), Some("there"), Some("other"), None][number];
    match (answer, action) {
        (Answer::Refused { .. }, action) => assert!(action.is_none(), "{action:?} for a refusal"),
        (Answer::Accepted { lease, .. }, action) => {
            leases.insert(Lease(*lease));
            match action {
                Some(Action::Reflect { lease: same, peer, session }) => {
                    assert_eq!((same.0, Some(peer.as_str())), (*lease, own));
                    assert!(
                        [2, 3].map(|last| [192, 0, 2, last].into()).contains(&session.from.ip())
                    );
                }
                Some(Action::Serve { lease: same, peer, test }) => {
                    assert_eq!((same.0, Some(peer.as_str())), (*lease, own));
                    tested[number / 2] += test.duration_ms;
                }
                // A slot, or a lease that is made longer.
                other => assert_eq!(other, None),
            }
        }
        (Answer::Done {}, Some(Action::End(ended))) => {
            assert!(ended.iter().all(|lease| leases.remove(lease)));
        }
        (Answer::Welcome { .. }, None) => assert!(own.is_some()),
        other => panic!("{other:?}"),
    }
}
