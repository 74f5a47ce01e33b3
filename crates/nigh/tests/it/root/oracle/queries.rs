//! What clients get.

use super::stage::{Asker, EAST, LIMIT, NETWORK, Stage, UNKNOWN, WEST, metric};
use oracle::proxidor::Rcode;
use serde_json::json;
use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};
use testbed::wait_until;

#[test]
fn a_plain_socket_gets_the_order_and_a_change_of_a_link_moves_it() {
    let stage = Stage::start("");
    assert_eq!(stage.order(), [WEST, EAST, UNKNOWN]);
    let changed = stage.done(&["set", "link", "10.0.0.3", "east", "bandwidth", "1000"]);
    assert_eq!(changed, "link 10.0.0.3 -> east: bandwidth 1000 Mbit/s\n");
    // The change is in force when it is answered.
    assert_eq!(stage.order(), [EAST, WEST, UNKNOWN]);
    let changed = stage.done(&["set", "interface", "10.0.0.3", "3", "down"]);
    assert_eq!(changed, "interface 3 of router 10.0.0.3: down\n");
    assert_eq!(stage.order(), [WEST, UNKNOWN, EAST], "the east cannot be reached");
    stage.done(&["set", "interface", "10.0.0.3", "3", "up"]);
    assert_eq!(stage.order(), [EAST, WEST, UNKNOWN]);
    let changed = stage.done(&["set", "metric", "default", "as_number"]);
    assert_eq!(changed, "metric default: as_number\n");
    assert_eq!(stage.order(), [WEST, EAST, UNKNOWN]);
    // A reload of the files forgets it all.
    stage.done(&["set", "link", "berlin", "10.0.0.2", "loss", "1", "--both"]);
    assert_eq!(stage.done(&["reload"]), "the topology files were read again\n");
    assert_eq!(stage.order(), [WEST, EAST, UNKNOWN]);
    assert!(!stage.done(&["print", "metrics"]).contains("as_number"));
}

#[test]
fn metrics_sum_up() {
    let stage = Stage::start("");
    for _ in 0..20 {
        stage.order();
    }
    stage.client.enter(|| {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.connect("192.0.2.1:8899").unwrap();
        // Too short for a header: dropped. A header of version 15: not supported.
        socket.send(&[0; 3]).unwrap();
        socket.send(&[0xf0; 12]).unwrap();
        socket.send(&[0x00; 12]).unwrap();
    });
    assert_eq!(stage.order(), [WEST, EAST, UNKNOWN]);
    // What has no reply is perhaps read by another thread than the last question, and later.
    wait_until("all to be counted", LIMIT, || stage.status()["queries"]["received"] == 24).unwrap();
    let (code, text) = stage.nigh.http(&stage.node, "/metrics").unwrap();
    assert_eq!(code, 200);
    let received = metric(&text, "nigh_oracle_received_total", &[]);
    let replies = metric(&text, "nigh_oracle_replies_total", &[]);
    let dropped = metric(&text, "nigh_oracle_dropped_total", &[]);
    assert_eq!(received, replies + dropped, "{text}");
    assert_eq!(metric(&text, "nigh_oracle_replies_total", &["rcode=\"no_error\""]), 21.0);
    assert_eq!(metric(&text, "nigh_oracle_dropped_total", &["reason=\"short\""]), 1.0);
    let queries = &stage.status()["queries"];
    assert_eq!(queries["received"].as_f64().unwrap(), received);
    let threads = stage.nigh.control(&json!({"do": "oracle", "request": {"do": "threads"}}));
    let threads = threads.unwrap();
    let threads = threads.as_array().unwrap();
    assert_eq!(threads.len(), 2);
    let sum: u64 = threads.iter().map(|thread| thread["received"].as_u64().unwrap()).sum();
    assert_eq!(sum as f64, received);
    assert!(metric(&text, "nigh_oracle_tables_generation", &[]) > 0.0);
    assert_eq!(metric(&text, "nigh_oracle_feed_state", &["configuration", "live"]), 1.0);
}

/// While tables are swapped as fast as it goes, every request is answered, with the order of the tables
/// before or of those after, and with nothing in between.
#[test]
fn snapshots_swapped_under_load_lose_no_reply_and_give_no_half_new_answer() {
    let stage = Stage::start("");
    let asked = AtomicU64::new(0);
    let over = AtomicBool::new(false);
    let seen: Mutex<BTreeSet<Vec<String>>> = Mutex::default();
    let whole = [[WEST, EAST, UNKNOWN], [EAST, WEST, UNKNOWN]];
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                stage.client.enter(|| {
                    let mut asker = Asker::new("192.0.2.1:8899");
                    while !over.load(Ordering::Relaxed) {
                        let (rcode, order) = asker.rank(&[UNKNOWN, EAST, WEST]);
                        assert_eq!(rcode, Rcode::NO_ERROR);
                        seen.lock().unwrap().insert(order);
                        asked.fetch_add(1, Ordering::Relaxed);
                    }
                })
            });
        }
        // Both links change in one request each, so that orders alternate between two. A busy machine
        // may make all changes before a client asks twice: go on until both orders were seen.
        let begin = Instant::now();
        for round in 0.. {
            let both = seen.lock().unwrap().len() >= whole.len();
            if round >= 200 && (both || begin.elapsed() > LIMIT) {
                break;
            }
            let value = if round % 2 == 0 { 1000.0 } else { 50.0 };
            let request = json!({"do": "set-link", "from": "10.0.0.3", "to": "10.8.0.2",
                                 "property": "bandwidth", "value": value});
            stage.nigh.control(&json!({"do": "oracle", "request": request})).unwrap();
        }
        over.store(true, Ordering::Relaxed);
    });
    let seen = seen.into_inner().unwrap();
    for order in &seen {
        assert!(whole.iter().any(|whole| order == whole), "a partial change: {order:?}");
    }
    assert_eq!(seen.len(), 2, "both orders were seen");
    let status = stage.status();
    assert_eq!(status["queries"]["replies"]["no_error"], asked.load(Ordering::Relaxed));
    assert!(status["tables"]["generation"].as_u64().unwrap() > 200, "{status}");
}

#[test]
fn settings_follow_a_reload_and_counters_stay() {
    let stage = Stage::start("");
    assert_eq!(stage.order(), [WEST, EAST, UNKNOWN]);
    let builds = stage.status()["tables"]["builds"].clone();
    // Another cost, another thread count and another port beside the first.
    let more = "listen = [\"0.0.0.0:8899\", \"0.0.0.0:8900\"]\nthreads = 1\ncost = \"-as_number\"\nttl = \"5s\"";
    stage.reload(NETWORK, &more.replace("threads = 1\n", "")).unwrap();
    assert_eq!(stage.order(), [EAST, WEST, UNKNOWN]);
    let other = stage.client.enter(|| Asker::new("192.0.2.1:8900").rank(&[WEST, EAST]));
    assert_eq!(other, (Rcode::NO_ERROR, vec![EAST.to_owned(), WEST.to_owned()]));
    let status = stage.status();
    assert_eq!(status["queries"]["received"], 3, "{status}");
    assert!(status["tables"]["builds"].as_u64() > builds.as_u64());
    stage
        .reload(NETWORK, "[[oracle.adjust]]\nprefix = \"203.0.113.0/24\"\ndo = \"prefer\"")
        .unwrap();
    assert_eq!(stage.order(), [EAST, WEST, UNKNOWN]);
    assert_eq!(stage.status()["queries"]["received"], 4);
}

#[test]
fn the_clients_of_the_program_are_answered() {
    let stage = Stage::start("default_router = \"10.0.0.1\"");
    let line = [super::stage::BINARY, "oracle", "rank", "--server", "192.0.2.1", EAST, WEST];
    let finished = stage.client.run(&line, super::stage::LIMIT).unwrap();
    assert!(finished.success(), "{}", finished.stderr);
    let west = finished.stdout.find(WEST).unwrap();
    assert!(west < finished.stdout.find(EAST).unwrap(), "{}", finished.stdout);
}
