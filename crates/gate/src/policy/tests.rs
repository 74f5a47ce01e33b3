use super::*;
use crate::config::FileAction;
use classify::label::Engine;

fn policy(text: &str, runtime: &[RuntimeRule]) -> Policy {
    let config: GateConfig = toml::from_str(&format!("internal = [\"eth1\"]\n{text}")).unwrap();
    assert_eq!(config.problems(), []);
    Policy::new(&config, runtime)
}

fn label(application: &'static str, detail: Option<&'static str>, category: Category) -> Label {
    Label {
        application: application.into(),
        detail: detail.map(Into::into),
        category,
        certainty: Certainty::Certain,
        engine: Engine::Parser,
        reason: "a test".into(),
    }
}

const NOON: Moment = Moment { day: crate::config::Day::Wed, minute: 720 };
const NIGHT: Moment = Moment { day: crate::config::Day::Wed, minute: 1400 };
const OUT: Direction = Direction::FromInternal;

fn ask(policy: &Policy, label: Option<&Label>, host: &str, now: Moment) -> (Verdict, String) {
    let question = Question { label, host: host.parse().unwrap(), direction: OUT, now };
    let decision = policy.decide(&question);
    let rule = decision.rule.as_deref();
    (decision.verdict, rule.unwrap_or_default().into())
}

const RULES: &str = r#"
[[group]]
name = "students"
hosts = ["10.1.0.0/16", "2001:db8:1::/48"]
[[group]]
name = "lab"
hosts = ["10.1.7.0/24"]
[[time]]
name = "work"
days = ["mon", "tue", "wed", "thu", "fri"]
from = "08:00"
to = "18:00"
[[limit]]
name = "slow"
to_internal = "20mbit"
each = "host"
[[rule]]
name = "all-p2p"
category = ["peer-to-peer"]
action = "count"
[[rule]]
name = "lab-may"
group = ["lab"]
application = ["bittorrent"]
action = "allow"
[[rule]]
name = "no-dht"
application = ["bittorrent/dht"]
action = "deny"
deny = "drop"
[[rule]]
name = "not-at-work"
group = ["students"]
category = ["peer-to-peer"]
certainty = "certain"
time = ["work"]
action = "deny"
[[rule]]
name = "slowly"
category = ["peer-to-peer"]
action = "limit"
limit = "slow"
[[rule]]
name = "no-names"
application = ["unknown"]
group = ["students"]
action = "deny"
deny = "drop"
"#;

#[test]
fn the_first_rule_that_fits_decides() {
    let policy = policy(RULES, &[]);
    let wire = label("bittorrent", Some("peer-wire"), Category::PeerToPeer);
    let dht = label("bittorrent", Some("dht"), Category::PeerToPeer);
    let web = label("http", None, Category::Web);
    let mut likely = wire.clone();
    likely.certainty = Certainty::Likely;
    let reset = Verdict::Refuse(Deny::Reset);
    let dropped = Verdict::Refuse(Deny::Drop);
    for (label, host, now, verdict, rule) in [
        (Some(&wire), "10.1.2.3", NOON, reset, "not-at-work"),
        (Some(&wire), "2001:db8:1::5", NOON, reset, "not-at-work"),
        (Some(&wire), "10.1.2.3", NIGHT, Verdict::Limit(0), "slowly"),
        (Some(&likely), "10.1.2.3", NOON, Verdict::Limit(0), "slowly"),
        (Some(&wire), "10.2.2.3", NOON, Verdict::Limit(0), "slowly"),
        (Some(&wire), "10.1.7.3", NOON, Verdict::Pass, "lab-may"),
        (Some(&dht), "10.2.2.3", NOON, dropped, "no-dht"),
        (Some(&web), "10.1.2.3", NOON, Verdict::Pass, ""),
        (None, "10.1.2.3", NOON, dropped, "no-names"),
        (None, "10.2.2.3", NOON, Verdict::Pass, ""),
    ] {
        assert_eq!(ask(&policy, label, host, now), (verdict, rule.into()), "{label:?} {host}");
    }
    let question =
        Question { label: Some(&wire), host: [10, 2, 0, 1].into(), direction: OUT, now: NOON };
    assert_eq!(
        policy.decide(&question).counted,
        [Arc::from("all-p2p")],
        "counting does not decide"
    );
}

#[test]
fn what_needs_no_label_is_refused_at_once() {
    let rules = r#"
[[group]]
name = "banned"
hosts = ["10.9.0.0/16"]
[[rule]]
name = "inwards"
direction = "to-internal"
action = "deny"
[[rule]]
name = "mail"
category = ["mail"]
action = "allow"
[[rule]]
name = "out"
group = ["banned"]
action = "deny"
"#;
    let policy = policy(rules, &[]);
    let (host, banned) = ([10, 0, 0, 1].into(), [10, 9, 0, 1].into());
    let early = policy.decide_early(host, Direction::ToInternal, NOON).unwrap();
    assert_eq!(early.rule.as_deref(), Some("inwards"));
    assert_eq!(policy.decide_early(banned, OUT, NOON), None, "it may be mail");
    assert_eq!(policy.decide_early(host, OUT, NOON), None, "it passes, and is worth a look");
    assert_eq!(ask(&policy, None, "10.9.0.1", NOON).1, "out");
}

#[test]
fn times_go_over_midnight_to_the_day_after() {
    let rules = "[[time]]\nname = \"n\"\ndays = [\"sun\"]\nfrom = \"22:00\"\nto = \"06:00\"\n";
    let policy = policy(rules, &[]);
    use crate::config::Day::{Mon, Sat, Sun};
    for (day, minute, holds) in [
        (Sun, 22 * 60, true),
        (Sun, 22 * 60 - 1, false),
        (Mon, 359, true),
        (Mon, 360, false),
        (Sun, 100, false),
        (Sat, 23 * 60, false),
    ] {
        assert_eq!(policy.times_at(Moment { day, minute }), [holds], "{day:?} {minute}");
    }
}

#[test]
fn what_the_operator_gives_comes_first_and_the_latest_before_all() {
    let runtime = |name: &str, action| RuntimeRule {
        name: name.into(),
        application: vec!["bittorrent".into()],
        category: Vec::new(),
        host: Some("10.2.0.0/16".parse().unwrap()),
        direction: None,
        action,
    };
    let rate = RuntimeLimit {
        to_internal: Some(crate::config::Rate(1_000_000)),
        from_internal: None,
        each: None,
    };
    let wire = label("bittorrent", None, Category::PeerToPeer);
    let policy = policy(
        RULES,
        &[
            runtime("runtime-1", RuntimeAction::Allow),
            runtime("runtime-2", RuntimeAction::Limit(rate)),
        ],
    );
    assert_eq!(
        ask(&policy, Some(&wire), "10.2.0.1", NOON),
        (Verdict::Limit(1), "runtime-2".into())
    );
    assert_eq!(policy.limit(1).unwrap().to_internal, rate.to_internal);
    assert_eq!(ask(&policy, Some(&wire), "10.1.0.1", NOON).1, "not-at-work");
}

#[test]
fn who_shares_a_limit() {
    let mut limit = policy(RULES, &[]).limit(0).unwrap().clone();
    let policy = policy(RULES, &[]);
    let host = [10, 1, 7, 3].into();
    for (each, share) in [
        (None, ""),
        (Some(Each::Host), "10.1.7.3"),
        (Some(Each::Group), "students"),
        (Some(Each::Application), "bittorrent"),
    ] {
        limit.each = each;
        assert_eq!(policy.share(&limit, host, "bittorrent"), share);
    }
    limit.each = Some(Each::Group);
    assert_eq!(policy.share(&limit, [10, 200, 0, 1].into(), "bittorrent"), "hosts in no group");
}

#[test]
fn files_are_judged_by_name_type_and_hash() {
    let policy = policy(
        r#"
[[group]]
name = "staff"
hosts = ["10.3.0.0/16"]
[[file]]
name = "good"
hashes = ["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"]
action = "allow"
[[file]]
name = "no-iso"
names = ["*.iso"]
application = ["bittorrent", "http"]
action = "deny"
[[file]]
name = "no-zip"
names = ["*.zip"]
application = ["ftp"]
action = "deny"
[[file]]
name = "no-film"
types = ["video/*"]
action = "deny"
[[file]]
name = "scan"
group = ["staff"]
action = "scan"
[scan]
"#,
        &[],
    );
    let ask = |application, name, kind, hash, host: [u8; 4]| {
        let host = host.into();
        let question = FileQuestion {
            application,
            name,
            kind: Some("film"),
            media: kind,
            hash,
            host,
            now: NOON,
        };
        let decision = policy.decide_file(&question);
        (decision.action, decision.rule.and_then(|n| policy.file_rule(n)).unwrap_or_default())
    };
    let hash = Some("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    let other = [10, 0, 0, 1];
    assert_eq!(ask("http", Some("A.ISO"), None, None, other), (FileAction::Deny, "no-iso"));
    assert_eq!(ask("bittorrent", Some("a.iso"), None, hash, other), (FileAction::Allow, "good"));
    assert_eq!(ask("ftp", Some("a.iso"), None, None, other), (FileAction::Allow, ""));
    assert_eq!(ask("ftp", None, Some("video/mp4"), None, other), (FileAction::Deny, "no-film"));
    assert_eq!(ask("ftp-data", Some("a.zip"), None, None, other), (FileAction::Deny, "no-zip"));
    assert_eq!(ask("http", Some("a.zip"), None, None, other), (FileAction::Allow, ""));
    assert_eq!(ask("ftp", None, None, None, [10, 3, 0, 1]), (FileAction::Scan, "scan"));
}

#[test]
fn a_file_that_nobody_could_read_matters_where_a_rule_could_match() {
    let file = |name: &str, rest: &str| format!("[[file]]\nname = \"{name}\"\n{rest}\n");
    let scan = file("scan", "action = \"scan\"\n[scan]\nclamd = \"/nowhere\"");
    let allow = |rest: &str| file("allow", &format!("action = \"allow\"\n{rest}"));
    let cases = [
        (String::new(), false),
        (scan.clone(), true),
        (file("exe", "types = [\"exe\"]\naction = \"deny\""), true),
        (file("ftp", "application = [\"ftp\"]\naction = \"deny\""), false),
        (allow("names = [\"*.txt\"]") + &scan, true),
        (allow("application = [\"http\"]") + &scan, false),
        (allow("application = [\"ftp\"]") + &scan, true),
    ];
    for (text, expected) in cases {
        let policy = policy(&text, &[]);
        let host = "10.0.0.5".parse().unwrap();
        assert_eq!(policy.asks_of_files("http", host, NOON), expected, "{text}");
    }
}
