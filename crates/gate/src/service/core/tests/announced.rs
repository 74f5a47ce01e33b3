//! Flows that others have announced: what the announcement says is a hint.

use super::*;

fn announced(name: &str, at_once: bool) -> Core<Reader> {
    let mut core = core(RULES, NOON);
    core.announced(&flow(1), Side::Client, [None; 2], label(name), at_once);
    core
}

fn name(core: &Core<Reader>) -> &str {
    core.flows().next().unwrap().application()
}

fn answer(core: &mut Core<Reader>, payload: &[u8]) -> PacketVerdict {
    let length = u32::try_from(payload.len()).unwrap();
    let packet = Packet { at_ns: 0, from: Side::Server, tcp: None, payload, length };
    core.packet(&flow(1), Side::Client, [None; 2], None, &packet)
}

#[test]
fn content_that_is_something_else_is_judged_as_that() {
    let mut core = announced("ftp-data", true);
    assert_eq!(send(&mut core, &flow(1), b"hello"), PacketVerdict::Pass);
    assert_eq!((name(&core), core.sizes()), ("ftp-data", (0, 1)));
    assert_eq!(send(&mut core, &flow(1), b"=bittorrent"), PacketVerdict::Drop);
    assert_eq!(name(&core), "bittorrent");
    assert_eq!(core.adopted(), [(Id::of(&flow(1)), true)]);
    let counts = core.counts();
    assert_eq!((counts.seen, counts.classified.len(), counts.classified["bittorrent"]), (1, 1, 1));
}

#[test]
fn content_that_nobody_knows_is_what_was_announced_if_one_side_sends() {
    for (named, answered, expected) in [
        ("ftp-data", &b""[..], "ftp-data"),
        ("ftp-data", b"1234", UNKNOWN),
        // DCC says how much has arrived.
        ("dcc", b"1234", "dcc"),
        ("dcc", b"12345", UNKNOWN),
        ("dcc", &[0; 68], UNKNOWN),
    ] {
        let mut core = announced(named, true);
        send(&mut core, &flow(1), b"content");
        answer(&mut core, answered);
        assert_eq!(name(&core), named);
        send(&mut core, &flow(1), b"?");
        assert_eq!(name(&core), expected, "{named}, {answered:?}");
        assert_eq!(core.counts().classified.keys().collect::<Vec<_>>(), [expected]);
        // It was found once.
        send(&mut core, &flow(1), b"=bittorrent");
        assert_eq!(name(&core), expected);
    }
}

#[test]
fn a_rule_waits_for_the_content_where_others_could_be_refused_by_an_announcement() {
    let mut core = announced("edonkey", true);
    assert!(core.refuses(&Id::of(&flow(1))));
    core = announced("edonkey", false);
    assert_eq!(core.commands(), [decide(flow(1), FlowAction::Pass, 0, 1)]);
    core.judge_again();
    assert_eq!(core.commands(), [KernelCommand::ForgetRefusals]);
    assert_eq!(send(&mut core, &flow(1), b"content"), PacketVerdict::Pass);
    assert_eq!(send(&mut core, &flow(1), b"?"), PacketVerdict::Drop);
    assert_eq!(core.counts().rules["no-mule"], 1);
}

#[test]
fn an_announced_flow_at_which_nobody_could_look_is_decided_by_on_failure() {
    let mut core = announced("ftp-data", true);
    core.inspect.0 = true;
    core.lose_forgotten();
    assert_eq!((name(&core), core.counts().lost), (UNKNOWN, 1));
}

#[test]
fn an_announced_flow_that_ends_early_is_counted_by_its_hint() {
    let mut core = announced("ftp-data", true);
    core.restarted(&counted(flow(1), 9));
    assert_eq!((core.counts().ended, core.counts().classified["ftp-data"]), (1, 1));
}
