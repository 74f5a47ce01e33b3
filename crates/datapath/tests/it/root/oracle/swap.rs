//! Tables change under load: every answer is that of one of them, whole.

use super::frame::Frame;
use super::model::{self, Outcome};
use super::network::Network;
use super::random::candidate;
use crate::root::common::Random;
use datapath::oracle::{MAX_BLOCKS, MAX_GROUPS, PublishError, Verdict};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

#[test]
fn an_answer_is_never_a_mixture() {
    let settings = super::settings();
    let mut random = Random::new(3);
    // Alike but for everything: groups, rows, and the row of the source.
    let networks = [Network::random(&mut random, 40), Network::random(&mut random, 200)];
    let Some(program) = super::program(&settings, &networks[0]) else { return };
    let candidates: Vec<_> = (0..363).map(|_| candidate(&mut random, &networks[0])).collect();
    let frame = Frame::request(&candidates).bytes();
    let answers =
        networks.each_ref().map(|network| match model::judge(&settings, Some(network), &frame) {
            Outcome::Answered(reply) => reply,
            other => panic!("{other:?}"),
        });
    assert_ne!(answers[0], answers[1]);
    let done = AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        let asking: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut seen = [0_u64; 2];
                    while !done.load(Ordering::Relaxed) {
                        let (verdict, out) = program.run(&frame).unwrap();
                        assert_eq!(verdict, Verdict::Tx);
                        let which = answers.iter().position(|answer| *answer == out);
                        seen[which.expect("the answer of one of the two tables")] += 1;
                    }
                    seen
                })
            })
            .collect();
        for round in 1..=60 {
            networks[round % 2].publish(&program).unwrap();
            // Settings change meanwhile, too.
            program.configure(&settings).unwrap();
        }
        done.store(true, Ordering::Relaxed);
        asking.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let sum = |which: usize| seen.iter().map(|seen| seen[which]).sum::<u64>();
    assert!(sum(0) > 0 && sum(1) > 0, "{seen:?}");
    let ledger = program.ledger().unwrap();
    assert_eq!((ledger.answered, ledger.received()), (sum(0) + sum(1), sum(0) + sum(1)));
}

/// What does not fit is not half in force: nothing is.
#[test]
fn tables_that_do_not_fit_leave_everything_to_the_sockets() {
    let network = Network::random(&mut Random::new(4), 5);
    let Some(program) = super::program(&super::settings(), &network) else { return };
    let frame = Frame::request(&[[1, 2, 3, 4]]).bytes();
    let verdict = || program.run(&frame).unwrap().0;
    assert_eq!(verdict(), Verdict::Tx);
    let error = program.publish([], MAX_GROUPS + 1, &[]).unwrap_err();
    assert_eq!(error, PublishError::Groups(MAX_GROUPS + 1));
    assert_eq!(verdict(), Verdict::Pass);
    network.publish(&program).unwrap();
    assert_eq!(verdict(), Verdict::Tx);
    let hosts =
        (0..=MAX_BLOCKS as u32).map(|i| (super::network::net((i << 8 | 1).to_be_bytes(), 32), 1));
    assert_eq!(program.publish(hosts, 400, &network.metrics), Err(PublishError::Blocks));
    assert_eq!(verdict(), Verdict::Pass);
    network.publish(&program).unwrap();
    assert_eq!(verdict(), Verdict::Tx);
    program.withdraw();
    assert_eq!(verdict(), Verdict::Pass);
    assert_eq!(program.ledger().unwrap().passed_table, 3);
}
