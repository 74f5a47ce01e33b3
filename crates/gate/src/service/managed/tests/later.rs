//! Flows that are read from the middle, rules that come later, and flows that nobody manages.

use super::*;
use crate::service::managed::waiting::MAX_SETTLING;

impl Bench {
    /// The flow is taken up in the middle.
    fn adopt(&mut self, application: &'static str, interrupted: bool) {
        let id = Id::of(&self.flow);
        let flow = self.flow;
        let label = Some(label(application));
        self.with(|managers, around, commands| {
            managers.forget(&id);
            let new = NewFlow {
                flow,
                internal: Side::Client,
                label,
                began_ns: 0,
                expectation: None,
                syns: [None; 2],
                now: None,
            };
            managers.adopt(new, interrupted, around, commands);
        });
    }

    fn denied(&mut self) -> bool {
        self.send(Side::Client, "GET /f.exe HTTP/1.1\r\n\r\n");
        self.send(Side::Server, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789");
        self.outcome().1
    }
}

#[test]
fn flows_of_an_earlier_process_are_read_on_and_what_it_had_begun_is_counted_or_refused() {
    for (application, on_failure, interrupted, unscanned, refused) in [
        ("http", "pass", false, 0, false),
        ("http", "refuse", false, 0, false),
        ("http", "pass", true, 1, false),
        ("http", "refuse", true, 1, true),
        // Nobody can read on in these.
        ("ftp-data", "pass", true, 1, false),
        ("ftp-data", "refuse", true, 1, true),
    ] {
        let mut bench = Bench::new(&format!("{DENY}on_failure = \"{on_failure}\"\n"));
        bench.outcome();
        bench.adopt(application, interrupted);
        let case = format!("{application} {on_failure} {interrupted}");
        let reported =
            bench.commands.iter().any(|command| matches!(command, WorkerCommand::Manage(..)));
        assert_eq!(reported, application == "http", "{case}");
        assert_eq!(bench.outcome().1, refused, "{case}");
        assert_eq!(bench.managers.counts.unscanned, unscanned, "{case}");
        if application == "http" && !refused {
            bench.send(Side::Server, "the rest of a body");
            assert!(bench.denied(), "{case}");
        }
    }
}

#[test]
fn rules_about_files_that_come_later_act_on_running_flows() {
    let audit = "[audit]\nfolder = \"/nowhere\"\n";
    for (before, managed) in [("", 0), (audit, 1)] {
        let mut bench = Bench::new(before);
        assert_eq!(bench.managers.len(), managed);
        bench.send(Side::Client, "GET /a HTTP/1.1\r\n\r\n");
        let config = config(&format!("{DENY}{before}"));
        bench.policy = Policy::new(&config, &[]);
        bench.managers.configure(&config);
        bench.with(|managers, _, _| managers.configured());
        if managed == 0 {
            bench.adopt("http", false);
        }
        bench.send(Side::Server, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789");
        assert!(bench.denied());
    }
}

/// A flow that is decided while packets wait: what comes behind them does not overtake them, and is held
/// no longer than that.
#[test]
fn packets_of_a_flow_that_nobody_manages_keep_their_order() {
    let mut bench = Bench::of("ssh", "hold = true");
    let (flow, id) = (bench.flow, Id::of(&bench.flow));
    let tcp = Some(Tcp { sequence: 7, acknowledgement: 9, flags: Tcp::ACK });
    let packet = Packet { at_ns: 0, from: Side::Server, tcp, payload: b"ssh", length: 3 };
    let hold = |from| Manage { hold_from: Some(from), ..Manage::default() };
    let held = || Some(held(&flow, Side::Server, b"ssh"));
    let words = |commands: &mut Vec<WorkerCommand>| -> Vec<[Manage; 2]> {
        let reported = commands.drain(..).filter_map(|command| match command {
            WorkerCommand::Manage(_, words) => Some(words),
            _ => None,
        });
        reported.collect()
    };
    for batches in [1, 3, 100] {
        bench.managers.settle_in(id, flow, &packet, &mut bench.commands);
        assert_eq!(words(&mut bench.commands), [[hold(9), hold(7)]]);
        let mut took = 0;
        while bench.managers.waits() {
            took += 1;
            assert!(words(&mut bench.commands).is_empty());
            if took <= batches {
                bench.with(|managers, around, commands| {
                    managers.packet(id, &packet, held(), None, around, commands);
                });
                assert_eq!(bench.outcome().0, 3, "it goes on at once");
            }
            bench.managers.settled(&mut bench.commands);
        }
        assert_eq!(words(&mut bench.commands), [[Manage::default(); 2]]);
        assert_eq!(took, (batches + 1).min(MAX_SETTLING.into()));
    }
}
