use super::*;
use proptest::prelude::*;

/// Each with the text that it is written as.
const TEXTS: [(&str, &str); 24] = [
    ("", "delay=0ns"),
    ("delay=50ms", "delay=50ms"),
    ("delay=1500us", "delay=1.5ms"),
    ("delay=0.25s loss=1%", "delay=250ms loss=1%"),
    ("delay=3µs", "delay=3µs"),
    ("loss=0.001", "delay=0ns loss=0.1%"),
    ("loss=0%", "delay=0ns"),
    ("loss=100%", "delay=0ns loss=100%"),
    ("loss=to_bad=1%,to_good=25%", "delay=0ns loss=to_bad=1%,to_good=25%,in_good=0%,in_bad=100%"),
    ("jitter=2ms", "delay=0ns jitter=2ms,uniform"),
    ("jitter=pareto-normal,2ms,reorder", "delay=0ns jitter=2ms,pareto-normal,reorder"),
    ("jitter=2ms,keep_order", "delay=0ns jitter=2ms,uniform"),
    ("duplicate=0.5% corrupt=0.25%", "delay=0ns duplicate=0.5% corrupt=0.25%"),
    ("reorder=1%,late=5ms", "delay=0ns reorder=1%,late=5ms"),
    ("reorder=late=5ms,gap=10,share=100%", "delay=0ns reorder=100%,late=5ms,gap=10"),
    ("rate=100Mbit", "delay=0ns rate=100Mbit"),
    ("rate=1.5gbit", "delay=0ns rate=1500Mbit"),
    ("queue=64KB", "delay=0ns queue=64KB"),
    ("queue=64KiB", "delay=0ns queue=64KiB"),
    ("queue=1p", "delay=0ns queue=1p"),
    ("queue=codel", "delay=0ns queue=1000p,codel,target=5ms,interval=100ms"),
    (
        "queue=red,120p,ecn",
        "delay=0ns queue=120p,red,min=10p,max=30p,probability=10%,weight=0.2%,ecn",
    ),
    ("mtu=1280 up=false", "delay=0ns mtu=1280 up=false"),
    ("rate=none jitter=none reorder=none", "delay=0ns"),
];

#[test]
fn texts_are_read_and_written() {
    for (text, written) in TEXTS {
        let settings: LinkSettings = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(settings.to_string(), written);
        assert_eq!(written.parse(), Ok(settings), "{written}");
    }
}

/// Refused, each with a part of the message.
const REFUSED: [(&str, &str); 32] = [
    ("delay", "`delay=`: a value is missing"),
    ("speed=1", "`speed=1`: no setting `speed`; there are delay, jitter, loss"),
    ("delay=1ms delay=2ms", "`delay=2ms`: `delay` is given twice"),
    ("delay=50", "`delay=50`: expected a duration: write 10s, 100ms or 1h 30m"),
    ("delay=-1ms", "`delay=-1ms`: expected a duration"),
    ("delay=1e3ms", "expected a duration"),
    ("delay=.5ms", "expected a duration"),
    ("delay=5.ms", "expected a duration"),
    ("delay=0.5ns", "expected a duration"),
    ("delay=99999999999999999999s", "expected a duration"),
    ("loss=1", "`loss=1`: `share=1`: a share is a percentage from 0% to 100%"),
    ("loss=101%", "a share is"),
    ("loss=1.0", "a share is"),
    ("loss=1%,2%", "`share` is given twice"),
    ("loss=to_bad=1%", "allowed are a share, as 1%; or to_bad and to_good"),
    ("loss=1%,to_bad=1%", "there is no `to_bad` here"),
    ("jitter=0ms", "`jitter=0ms`: a spread of nothing is no jitter"),
    ("jitter=normal", "`spread` is missing"),
    ("jitter=1ms,gauss", "`spread` is given twice"),
    ("reorder=1%", "`late` is missing"),
    ("reorder=1%,late=1ms,gap=0", "`gap=0`: a gap is a number of packets from 1"),
    ("rate=100Mbps", "`rate=100Mbps`: a rate is a number with bit, kbit, Mbit"),
    ("rate=100", "`rate=100`: a rate is a number with bit, kbit, Mbit, Gbit or Tbit"),
    ("rate=0bit", "a rate is"),
    ("rate=2000Tbit", "a rate is"),
    ("queue=0p", "`limit=0p`: a limit is packets from 1p"),
    ("queue=64kb", "`limit=64kb`: a limit is"),
    ("queue=5GB", "a limit is"),
    ("queue=64KB,min=1KB", "there is no `min` here; allowed are a limit; and codel or red"),
    ("queue=codel,target=100ms", "target must be above 0 and interval above target"),
    ("queue=64KB,red,max=20p", "min and max must be in the unit of the limit"),
    ("queue=100p,red,min=50p,max=50p", "0 < min < max <= limit, and there is min 50, max 50"),
];

#[test]
fn errors_name_the_key_the_value_and_what_is_allowed() {
    for (text, message) in REFUSED {
        let error = text.parse::<SettingsChange>().expect_err(text).to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
    for mtu in ["67", "65536", "+1500", "1500B", ""] {
        let error = format!("mtu={mtu}").parse::<SettingsChange>().expect_err(mtu).to_string();
        let message = format!("`mtu={mtu}`: an MTU is a number of bytes from 68 to 65535");
        assert_eq!(error, message);
    }
}

#[test]
fn scenes_have_the_same_words_or_tables() {
    let scene = r#"
        delay = "10ms"
        jitter = { spread = "2ms", distribution = "normal", keep_order = false }
        loss = { to_bad = 0.01, to_good = "25%" }
        reorder = { share = "1%", late = "5ms", gap = 3 }
        rate = "100Mbit"
        queue = { limit = "64KB", discipline = "codel", ecn = true }
        mtu = 1280
        up = false
    "#;
    let settings: LinkSettings = toml::from_str(scene).expect("a scene");
    let text = "delay=10ms jitter=2ms,normal,reorder loss=to_bad=1%,to_good=25% \
                reorder=1%,late=5ms,gap=3 rate=100Mbit queue=64KB,codel,ecn mtu=1280 up=false";
    assert_eq!(text.parse(), Ok(settings));
    let written = toml::to_string(&settings).expect("a table");
    assert_eq!(toml::from_str(&written), Ok(settings), "{written}");
    let error = toml::from_str::<LinkSettings>("delay = 10").expect_err("no unit").to_string();
    assert!(
        error.contains("`delay=10`: expected a duration: write 10s, 100ms or 1h 30m"),
        "{error}"
    );
    let error = toml::from_str::<LinkSettings>("speed = 10").expect_err("no key").to_string();
    assert!(error.contains("no setting `speed`"), "{error}");
    let error = toml::from_str::<SettingsChange>("queue = { limt = \"1p\" }").expect_err("no part");
    assert!(error.to_string().contains("there is no `limt` here"), "{error}");
}

#[test]
fn a_change_changes_what_it_names() {
    let mut settings: LinkSettings = "delay=10ms loss=1% rate=1Gbit".parse().expect("settings");
    let change: SettingsChange = "loss=none mtu=1280".parse().expect("a change");
    change.apply(&mut settings);
    assert_eq!(settings.to_string(), "delay=10ms rate=1Gbit mtu=1280");
    assert_eq!(change.to_string(), "loss=none mtu=1280");
    assert_eq!(change.to_string().parse(), Ok(change));
    assert!(!change.is_empty() && SettingsChange::default().is_empty());
}

#[test]
fn what_only_delays_may_be_crossed_whole() {
    for text in ["", "delay=10ms", "mtu=1280", "queue=codel"] {
        let settings: LinkSettings = text.parse().expect(text);
        assert!(settings.only_delays() && !settings.one_by_one(), "{text}");
    }
    let effects = [
        "loss=1%",
        "jitter=1ms",
        "duplicate=1%",
        "reorder=1%,late=1ms",
        "corrupt=1%",
        "rate=1Gbit",
    ];
    for text in effects {
        let settings: LinkSettings = text.parse().expect(text);
        assert!(!settings.only_delays() && settings.one_by_one(), "{text}");
    }
    let down: LinkSettings = "up=false".parse().expect("down");
    assert!(!down.only_delays() && !down.one_by_one());
}

#[test]
fn shares_keep_their_ends() {
    assert_eq!("100%".parse(), Ok(Share::ALWAYS));
    assert_eq!("0%".parse(), Ok(Share::NEVER));
    assert_eq!("0.0".parse(), Ok(Share::NEVER));
    assert_eq!("0.00000000001%".parse(), Ok(Share(1)));
    assert_eq!("99.99999999999%".parse(), Ok(Share(u32::MAX - 1)));
    assert_eq!("50%".parse(), Ok(Share(1 << 31)));
    assert!(Share::ALWAYS.takes(u32::MAX) && !Share::NEVER.takes(0));
    assert!(Share(1).takes(0) && !Share(1).takes(1));
}

proptest! {
    #[test]
    fn every_share_is_written_so_that_it_is_read_again(share in any::<u32>()) {
        prop_assert_eq!(Share(share).to_string().parse(), Ok(Share(share)));
    }

    #[test]
    fn every_time_is_written_so_that_it_is_read_again(nanos in any::<u64>()) {
        prop_assert_eq!(Nanos(nanos).to_string().parse(), Ok(Nanos(nanos)));
    }

    #[test]
    fn any_text_is_read_or_refused_and_what_is_read_is_written(text in "[a-z_=0-9.%, ]{0,40}") {
        if let Ok(change) = text.parse::<SettingsChange>() {
            prop_assert_eq!(change.to_string().parse(), Ok(change));
        }
    }
}
