mod announced;

use super::*;
use crate::{
    config::{Day, Deny, GateConfig, Rate},
    policy::{Moment, Policy},
    service::classes::Change,
};
use classify::{
    flow::{Flow, Side, Transport},
    label::{Category, Certainty, Classification, Engine, Label},
    packet::Packet,
};
use std::{net::SocketAddr, sync::Arc};

/// Reads the application from the payload: `=name` names it, `~name` is what it is when no more comes, `?`
/// says that nobody ever will, `!` that nobody can look. With `true` all was forgotten.
struct Reader(bool);

impl Inspect for Reader {
    type State = Option<Label>;

    fn begin(&mut self, _: &Flow, _: [Option<u32>; 2]) -> Self::State {
        None
    }

    fn wants(&self, state: &Self::State) -> u32 {
        if state.is_some() { 32 } else { 8 }
    }

    fn give_up(&mut self, _: &Flow, state: &mut Self::State) -> Option<Classification> {
        Some(state.take().map_or(Classification::Unknown, Classification::Known))
    }

    fn learns(&self, _: &Self::State) -> bool {
        false
    }

    fn was_lost(&mut self) -> bool {
        std::mem::take(&mut self.0)
    }

    fn packet(
        &mut self,
        _: &Flow,
        state: &mut Self::State,
        packet: &Packet<'_>,
    ) -> Option<Classification> {
        let named = |name| label(&String::from_utf8_lossy(name));
        match packet.payload {
            [b'!'] => return None,
            [b'=', name @ ..] => return Some(Classification::Known(named(name))),
            [b'?'] => return Some(Classification::Unknown),
            [b'~', name @ ..] => *state = Some(named(name)),
            _ => {}
        }
        Some(Classification::Pending)
    }
}

fn label(application: &str) -> Label {
    Label {
        application: application.to_owned().into(),
        detail: None,
        category: if application == "http" { Category::Web } else { Category::PeerToPeer },
        certainty: Certainty::Certain,
        engine: Engine::Parser,
        reason: "it says so".into(),
    }
}

const NOON: Moment = Moment { day: Day::Tue, minute: 720 };
const EVENING: Moment = Moment { day: Day::Tue, minute: 1200 };
const SECOND: u64 = 1_000_000_000;

const RULES: &str = r#"
internal = ["eth1"]
[[time]]
name = "day"
from = "08:00"
to = "18:00"
[[limit]]
name = "slow"
to_internal = "1mbit"
each = "host"
[[rule]]
name = "no-mule"
application = ["edonkey"]
action = "deny"
deny = "drop"
[[rule]]
name = "by-day"
application = ["bittorrent"]
time = ["day"]
action = "deny"
[[rule]]
name = "slowly"
application = ["bittorrent"]
action = "limit"
limit = "slow"
"#;

fn policy(text: &str) -> Arc<Policy> {
    let config: GateConfig = toml::from_str(text).unwrap();
    assert_eq!(config.problems(), []);
    Arc::new(Policy::new(&config, &[]))
}

const BOUNDS: Bounds = Bounds {
    undecided: 10,
    packets: 8,
    idle_tcp_ns: 3600 * SECOND,
    idle_udp_ns: 60 * SECOND,
    on_failure: OnFailure::Pass,
};

fn core(text: &str, moment: Moment) -> Core<Reader> {
    Core::new(Reader(false), policy(text), BOUNDS, Labels::default(), moment, false)
}

fn flow(port: u16) -> Flow {
    Flow {
        transport: Transport::Tcp,
        client: SocketAddr::from(([10, 0, 0, 5], port)),
        server: SocketAddr::from(([192, 0, 2, 7], 6881)),
    }
}

fn send(core: &mut Core<Reader>, flow: &Flow, payload: &[u8]) -> PacketVerdict {
    acknowledge(core, flow, payload, 1)
}

/// The same, as of a client that has what the server sent up to there.
fn acknowledge(
    core: &mut Core<Reader>,
    flow: &Flow,
    payload: &[u8],
    acknowledgement: u32,
) -> PacketVerdict {
    let tcp = Some(Tcp { sequence: 1, acknowledgement, flags: Tcp::ACK });
    let packet = Packet { at_ns: 0, from: Side::Client, tcp, payload, length: 100 };
    core.packet(flow, Side::Client, [Some(0); 2], None, &packet)
}

#[test]
fn a_refusal_is_remembered_only_of_a_client_that_the_server_has_reached() {
    for (acknowledgement, remembered) in
        [(1, true), (1000, true), (0, false), (u32::MAX, false), (NEAR + 1, false)]
    {
        let mut core = core(RULES, NOON);
        acknowledge(&mut core, &flow(1), b"=edonkey", acknowledgement);
        let refuses = |command: &KernelCommand| matches!(command, KernelCommand::Refuse { .. });
        assert_eq!(core.commands().iter().any(refuses), remembered, "{acknowledgement}");
        assert!(core.refuses(&Id::of(&flow(1))), "the flow itself is refused");
    }
    // Where the server speaks first, the kernel knows what the client has acknowledged.
    for (taken, remembered) in [(Some(1), true), (Some(0), false), (None, false)] {
        let mut core = core(RULES, NOON);
        let tcp = Some(Tcp { sequence: 1, acknowledgement: 1, flags: Tcp::ACK });
        let payload = b"=edonkey";
        let packet = Packet { at_ns: 0, from: Side::Server, tcp, payload, length: 8 };
        core.packet(&flow(1), Side::Client, [Some(0); 2], taken, &packet);
        let refuses = |command: &KernelCommand| matches!(command, KernelCommand::Refuse { .. });
        assert_eq!(core.commands().iter().any(refuses), remembered, "{taken:?}");
    }
}

fn counted(flow: Flow, bytes: u64) -> Counted {
    Counted {
        flow,
        internal: Side::Client,
        decided: true,
        label: 0,
        managed: false,
        copied: 1,
        budget: 8,
        packets: [1, 1],
        bytes: [bytes, 0],
        flags: [0, 0],
        age_ns: SECOND,
        idle_ns: 0,
    }
}

fn decide(flow: Flow, action: FlowAction, class: u16, label: u32) -> KernelCommand {
    KernelCommand::Decide { flow, action, class, label }
}

#[test]
fn a_flow_is_decided_once_when_it_has_a_name() {
    let mut core = core(RULES, NOON);
    assert_eq!(send(&mut core, &flow(1), b"hello"), PacketVerdict::Pass);
    assert_eq!((core.commands(), core.sizes()), (vec![], (1, 0)));
    assert_eq!(send(&mut core, &flow(1), b"=edonkey"), PacketVerdict::Drop);
    let refuse = KernelCommand::Refuse { flow: flow(1), deny: Deny::Drop };
    let action = FlowAction::Refuse(Deny::Drop);
    assert_eq!(core.commands(), [decide(flow(1), action, 0, 1), refuse]);
    assert_eq!(send(&mut core, &flow(1), b"more"), PacketVerdict::Drop);
    assert_eq!((core.commands(), core.sizes()), (vec![], (0, 1)));
    send(&mut core, &flow(2), b"=http");
    send(&mut core, &flow(3), b"?");
    let pass = |port, label| decide(flow(port), FlowAction::Pass, 0, label);
    assert_eq!(core.commands(), [pass(2, 2), pass(3, 0)]);
    let counts = core.counts();
    assert_eq!(counts.classified.keys().collect::<Vec<_>>(), ["edonkey", "http", "unknown"]);
    assert_eq!((counts.seen, counts.refused["edonkey"], counts.rules["no-mule"]), (3, 1, 1));
}

#[test]
fn many_flows_are_judged_again_a_part_at_a_time() {
    const FLOWS: u16 = 5000;
    let mut core = core("internal = [\"eth1\"]", NOON);
    for port in 1..=FLOWS {
        send(&mut core, &flow(port), b"=bittorrent");
        core.commands();
    }
    core.set_policy(policy(RULES));
    let (mut parts, mut commanded) = (0, 0);
    while core.has_acts() {
        let commands = core.commands();
        let decided =
            commands.iter().filter(|act| matches!(act, KernelCommand::Decide { .. })).count();
        assert!(decided <= 1024);
        (parts, commanded) = (parts + 1, commanded + decided);
    }
    assert_eq!((parts, commanded), (5, usize::from(FLOWS)));
}

#[test]
fn flows_are_judged_again_when_a_time_ends_and_when_the_policy_changes() {
    let mut core = core(RULES, NOON);
    send(&mut core, &flow(1), b"=bittorrent");
    let reset = FlowAction::Refuse(Deny::Reset);
    let refuse = KernelCommand::Refuse { flow: flow(1), deny: Deny::Reset };
    assert_eq!(core.commands(), [decide(flow(1), reset, 0, 1), refuse.clone()]);
    core.tick(SECOND, NOON);
    assert_eq!(core.commands(), []);
    core.tick(2 * SECOND, EVENING);
    let limit = core.policy().limit(0).unwrap().clone();
    assert_eq!(limit.to_internal, Some(Rate(1_000_000)));
    let set = KernelCommand::Class(Change::Set(1, limit));
    assert_eq!(
        core.commands(),
        [KernelCommand::ForgetRefusals, set, decide(flow(1), FlowAction::Pass, 1, 1)]
    );
    core.set_policy(policy("internal = [\"eth1\"]"));
    assert_eq!(
        core.commands(),
        [KernelCommand::ForgetRefusals, decide(flow(1), FlowAction::Pass, 0, 1)]
    );
    core.begin_round();
    core.count(&counted(flow(1), 5), SECOND);
    core.end_round();
    assert_eq!(core.commands(), [KernelCommand::Class(Change::Remove(1))]);
    assert_eq!(core.flows().next().unwrap().label().unwrap().reason, "it says so");
}

#[test]
fn a_flood_costs_no_decided_flow_its_place() {
    let mut core = core(RULES, NOON);
    send(&mut core, &flow(1), b"=http");
    for port in 2..1002 {
        core.tick(u64::from(port), NOON);
        send(&mut core, &flow(port), b"hello");
    }
    assert_eq!(core.sizes(), (10, 1));
    assert_eq!(core.counts().evicted, 990);
    assert!(core.flows().any(|entry| entry.flow == flow(1)));
    assert!(core.flows().any(|entry| entry.flow == flow(1001)), "the latest are inspected");
}

#[test]
fn who_began_most_makes_room_for_what_is_inspected() {
    let began_by = |host: [u8; 4], port| Flow { client: (host, port).into(), ..flow(1) };
    let mut core = core(RULES, NOON);
    let others = [began_by([10, 0, 0, 6], 1), began_by([10, 0, 0, 7], 1)];
    for other in &others {
        send(&mut core, other, b"hello");
    }
    for port in 2..1002 {
        core.tick(u64::from(port), NOON);
        send(&mut core, &flow(port), b"hello");
    }
    assert_eq!((core.sizes(), core.counts().evicted), ((10, 0), 992));
    for other in &others {
        assert!(core.flow(&Id::of(other)).is_some(), "{other}");
    }
    // Where all have one, the oldest goes.
    for host in 1..=20 {
        send(&mut core, &began_by([10, 0, 1, host], 1), b"hello");
    }
    for (host, stays) in [(10, false), (11, true), (20, true)] {
        let id = Id::of(&began_by([10, 0, 1, host], 1));
        assert_eq!(core.flow(&id).is_some(), stays, "{host}");
    }
    // Those that are decided count no more.
    send(&mut core, &began_by([10, 0, 1, 20], 1), b"=http");
    assert_eq!(core.sizes(), (9, 1));
}

#[test]
fn a_connection_that_ended_and_one_that_is_silent_are_forgotten() {
    let mut core = core(RULES, NOON);
    for port in 1..=3 {
        send(&mut core, &flow(port), b"=http");
    }
    core.commands();
    core.begin_round();
    let closed = Counted { flags: [1, 1], idle_ns: 6 * SECOND, ..counted(flow(1), 9) };
    let half = Counted { flags: [1, 0], idle_ns: 6 * SECOND, ..counted(flow(2), 9) };
    let silent = Counted { idle_ns: 3601 * SECOND, ..counted(flow(3), 9) };
    for one in [closed, half, silent] {
        core.count(&one, SECOND);
    }
    core.end_round();
    assert_eq!(
        core.commands(),
        [KernelCommand::Forget { flow: flow(1) }, KernelCommand::Forget { flow: flow(3) }]
    );
    assert_eq!((core.sizes(), core.counts().ended), ((0, 1), 2));
}

#[test]
fn what_the_kernel_has_no_more_is_forgotten_here_too() {
    let mut core = core(RULES, NOON);
    send(&mut core, &flow(1), b"=http");
    for _ in 0..2 {
        core.begin_round();
        core.end_round();
    }
    assert_eq!(core.sizes(), (0, 0));
}

#[test]
fn flows_of_an_earlier_process_are_taken_over_with_their_labels() {
    let mut labels = Labels::default();
    let number = labels.number(&label("edonkey"));
    let bounds = Bounds { idle_tcp_ns: u64::MAX, idle_udp_ns: u64::MAX, ..BOUNDS };
    let mut core = Core::new(Reader(false), policy(RULES), bounds, labels, NOON, false);
    core.begin_round();
    core.count(&Counted { label: number, ..counted(flow(1), 9) }, SECOND);
    core.count(&counted(flow(2), 9), SECOND);
    core.end_round();
    let drop = FlowAction::Refuse(Deny::Drop);
    let pass = decide(flow(2), FlowAction::Pass, 0, 0);
    assert_eq!(core.commands(), [decide(flow(1), drop, 0, number), pass]);
    assert_eq!(core.sizes(), (0, 2));
}

#[test]
fn a_rate_is_what_came_since_the_last_round() {
    let mut core = core(RULES, NOON);
    core.tick(10 * SECOND, NOON);
    send(&mut core, &flow(1), b"=http");
    for (bytes, rate) in [(1000, 8000), (3000, 16_000), (3000, 0)] {
        core.begin_round();
        core.count(&counted(flow(1), bytes), SECOND);
        core.end_round();
        assert_eq!(core.flows().next().unwrap().rate, rate);
    }
}

#[test]
fn a_verdict_that_found_no_room_is_sent_again() {
    let mut core = core(RULES, NOON);
    send(&mut core, &flow(1), b"=edonkey");
    let commanded = core.commands();
    core.was_full(&flow(1));
    let fresh = Counted { decided: false, ..counted(flow(1), 9) };
    let round = |core: &mut Core<Reader>| {
        core.begin_round();
        core.count(&fresh, SECOND);
        core.end_round();
        core.commands()
    };
    assert_eq!(round(&mut core), commanded[..1]);
    assert_eq!(round(&mut core), [], "it was taken");
    core.was_full(&flow(1));
    assert_eq!(round(&mut core), commanded[..1]);
    assert_eq!(core.counts().refused["edonkey"], 1);
}

#[test]
fn who_has_most_flows_makes_room_in_a_full_table() {
    let mut core = core(RULES, NOON);
    let other = Flow { client: SocketAddr::from(([10, 0, 0, 6], 1)), ..flow(1) };
    let silent = |flow| Counted { idle_ns: 2000 * SECOND, ..counted(flow, 9) };
    for port in 1..=20 {
        send(&mut core, &flow(port), b"=http");
    }
    send(&mut core, &other, b"=http");
    send(&mut core, &flow(30), b"=edonkey");
    let refused = Counted { idle_ns: 200 * SECOND, ..counted(flow(30), 9) };
    for halved in [false, true] {
        core.commands();
        core.begin_round();
        core.count(&silent(flow(1)), SECOND);
        core.count(&silent(other), SECOND);
        core.count(&refused, SECOND);
        core.end_round();
        let forgotten = if halved { vec![KernelCommand::Forget { flow: flow(1) }] } else { vec![] };
        assert_eq!(core.commands(), forgotten);
        core.was_full(&flow(2));
        core.begin_round();
        for port in 1..=20 {
            core.count(&counted(flow(port), 9), SECOND);
        }
        core.end_round();
    }
    for _ in 0..5 {
        core.begin_round();
        core.count(&counted(flow(2), 9), SECOND);
        core.end_round();
    }
    core.commands();
    core.count(&silent(flow(2)), SECOND);
    assert_eq!(core.commands(), [], "there is room again");
}

#[test]
fn a_flow_whose_packets_are_spent_is_judged_by_what_was_seen() {
    let mut core = core(RULES, NOON);
    let spent = |port| Counted { decided: false, copied: 9, ..counted(flow(port), 9) };
    core.tick(10 * SECOND, NOON);
    send(&mut core, &flow(1), b"~edonkey");
    send(&mut core, &flow(2), b"hello");
    core.commands();
    let count = |core: &mut Core<Reader>, second: u64, counted: &[Counted]| {
        core.tick(second * SECOND, NOON);
        core.begin_round();
        counted.iter().for_each(|counted| core.count(counted, SECOND));
        core.end_round();
        core.commands()
    };
    assert_eq!(count(&mut core, 11, &[spent(1), spent(2)]), [], "others may be in flight");
    let refuse = KernelCommand::Refuse { flow: flow(1), deny: Deny::Drop };
    let drop = decide(flow(1), FlowAction::Refuse(Deny::Drop), 0, 1);
    let pass = |port| decide(flow(port), FlowAction::Pass, 0, 0);
    assert_eq!(count(&mut core, 12, &[spent(1), spent(2)]), [drop, refuse, pass(2)]);
    // Of this one nothing was ever seen: its packets were missed.
    let watch = KernelCommand::Watch { flow: flow(3), packets: 17 };
    assert_eq!(count(&mut core, 13, &[spent(3)]), [watch]);
    let again = Counted { copied: 17, budget: 17, idle_ns: 2 * SECOND, ..spent(3) };
    assert_eq!(count(&mut core, 14, &[again]), [pass(3)]);
}

#[test]
fn every_flow_that_was_seen_is_accounted_for() {
    let mut core = core(RULES, NOON);
    for port in 1..=30 {
        core.tick(u64::from(port), NOON);
        let says: &[u8] = if port % 3 == 0 { b"=http" } else { b"~edonkey" };
        send(&mut core, &flow(port), says);
    }
    let ended = Counted { bytes: [5, 7], flags: [4, 0], ..counted(flow(30), 0) };
    core.restarted(&ended);
    core.begin_round();
    let over = |port| Counted {
        decided: false,
        flags: [1, 1],
        idle_ns: 6 * SECOND,
        ..counted(flow(port), 0)
    };
    core.count(&over(29), SECOND);
    core.end_round();
    let counts = core.counts();
    let (undecided, decided) = core.sizes();
    let sum = [counts.ended, counts.ended_undecided, counts.evicted];
    assert_eq!((sum, undecided, decided), ([1, 1, 11], 8, 9));
    assert_eq!(counts.seen, 30);
    assert_eq!(counts.classified["edonkey"], 1, "it was named at its end");
}

#[test]
fn hosts_only_at_the_other_end_of_flows_are_external() {
    let mut core = core(RULES, NOON);
    let external = |core: &Core<_>, host: &str| core.is_external(&host.parse().unwrap());
    assert!(!external(&core, "192.0.2.7/32"), "nothing is known of it");
    send(&mut core, &flow(1), b"=http");
    for (host, expected) in [
        ("192.0.2.7/32", true),
        ("10.0.0.5/32", false),
        ("0.0.0.0/0", false),
        ("10.0.0.6/32", false),
    ] {
        assert_eq!(external(&core, host), expected, "{host}");
    }
}

#[test]
fn a_flow_has_ended_with_its_last_packet_whenever_that_is_noticed() {
    let mut core = core(RULES, NOON);
    core.news = Some(Vec::new());
    for (port, idle) in [(1, 6), (2, 3601)] {
        core.tick(SECOND, NOON);
        send(&mut core, &flow(port), b"=http");
        core.tick(9000 * SECOND, NOON);
        let flags = if port == 1 { [4, 0] } else { [0, 0] };
        core.count(&Counted { flags, idle_ns: idle * SECOND, ..counted(flow(port), 9) }, SECOND);
        let [News::Ended(entry, _)] = &core.news()[..] else { panic!("it is over") };
        assert_eq!(entry.seen_ns, (9000 - idle) * SECOND);
    }
}

#[test]
fn a_flow_counts_once_for_its_rule_whatever_is_given_beside() {
    let mut core = core(RULES, NOON);
    send(&mut core, &flow(1), b"=edonkey");
    let with_one_more = format!("{RULES}\n[[rule]]\nname = \"last\"\naction = \"allow\"");
    for text in [
        with_one_more
            .replacen(
                "[[rule]]",
                "[[rule]]\nname = \"first\"\ncategory = [\"web\"]\naction = \"allow\"\n[[rule]]",
                1,
            )
            .as_str(),
        RULES,
    ] {
        core.set_policy(policy(text));
    }
    assert_eq!(core.counts().rules["no-mule"], 1);
}

/// Learns from everything that is not marked as the last of it.
struct Pupil;

impl Inspect for Pupil {
    type State = bool;

    fn begin(&mut self, _: &Flow, _: [Option<u32>; 2]) -> bool {
        true
    }

    fn wants(&self, _: &bool) -> u32 {
        8
    }

    fn give_up(&mut self, _: &Flow, _: &mut bool) -> Option<Classification> {
        Some(Classification::Unknown)
    }

    fn was_lost(&mut self) -> bool {
        false
    }

    fn learns(&self, state: &bool) -> bool {
        *state
    }

    fn packet(
        &mut self,
        _: &Flow,
        state: &mut bool,
        packet: &Packet<'_>,
    ) -> Option<Classification> {
        *state = packet.payload != b"last";
        Some(Classification::Known(label("directconnect")))
    }
}

#[test]
fn what_is_learnt_and_what_is_managed_of_a_flow_do_not_undo_each_other() {
    let mut core = Core::new(Pupil, policy(RULES), BOUNDS, Labels::default(), NOON, false);
    let send = |core: &mut Core<Pupil>, payload: &[u8]| {
        let packet = Packet { at_ns: 0, from: Side::Client, tcp: None, payload, length: 100 };
        core.packet(&flow(1), Side::Client, [None; 2], None, &packet)
    };
    let all = Manage { copy: true, ..Manage::default() };
    let file = Manage { copy: true, skip_to: Some(7), brief: true, hold_from: Some(9) };
    send(&mut core, b"first");
    // The manager's wish goes with the verdict that the kernel does not have yet.
    core.manage(&flow(1), [file, Manage::default()]);
    assert_eq!(core.commands(), [decide(flow(1), FlowAction::Pass, 0, 1)]);
    let held = Manage { skip_to: None, brief: false, ..file };
    assert_eq!(core.managed(&flow(1)), [held, all]);
    // Another policy takes neither away.
    core.set_policy(policy(RULES));
    core.commands();
    assert_eq!(core.managed(&flow(1)), [held, all]);
    send(&mut core, b"last");
    assert_eq!(core.commands(), [KernelCommand::Manage { flow: flow(1) }]);
    assert_eq!(core.managed(&flow(1)), [file, Manage::default()]);
    // A refused flow is neither copied nor held.
    let by = ByFile { rule: "a rule".into(), file: None };
    core.refuse_for_file(&flow(1), by);
    assert_eq!(core.managed(&flow(1)), [Manage::default(); 2]);
}

#[test]
fn a_flow_of_which_more_is_worth_a_look_is_watched_for_longer() {
    let mut core = core(RULES, NOON);
    send(&mut core, &flow(1), b"hello");
    assert_eq!(core.commands(), []);
    send(&mut core, &flow(1), b"~edonkey");
    assert_eq!(core.commands(), [KernelCommand::Watch { flow: flow(1), packets: 32 }]);
    send(&mut core, &flow(1), b"more");
    assert_eq!(core.commands(), [], "it is sent once");
}

#[test]
fn flows_at_which_nobody_can_look_are_decided_by_on_failure_and_counted() {
    for (on_failure, verdict, action) in [
        (OnFailure::Pass, PacketVerdict::Pass, FlowAction::Pass),
        (OnFailure::Drop, PacketVerdict::Drop, FlowAction::Refuse(Deny::Drop)),
    ] {
        let mut core = core(RULES, NOON);
        core.set_bounds(Bounds { on_failure, ..BOUNDS });
        assert_eq!(send(&mut core, &flow(1), b"!"), verdict);
        assert_eq!(core.commands(), [decide(flow(1), action, 0, 0)]);
        // One that was named before keeps its name, one of which nothing is known any more has none.
        send(&mut core, &flow(2), b"=http");
        send(&mut core, &flow(3), b"the beginning");
        core.commands();
        core.lose_forgotten();
        assert!(!core.has_acts());
        core.inspect_mut().0 = true;
        core.lose_forgotten();
        assert_eq!(core.commands(), [decide(flow(3), action, 0, 0)]);
        assert_eq!((core.counts().lost, core.sizes()), (2, (0, 3)));
        let rule = |port| core.flow(&Id::of(&flow(port))).unwrap();
        let decided = |port| match &rule(port).phase {
            Phase::Decided(decided) => decided.rule().map(str::to_owned),
            Phase::Inspecting(_) => None,
        };
        assert_eq!((decided(2), decided(3).as_deref()), (None, Some("gate.on_failure")));
    }
}
