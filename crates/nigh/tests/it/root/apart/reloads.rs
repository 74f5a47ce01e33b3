//! A change of one job's section leaves the others as they are: their sockets, threads, sessions, programs
//! and counters are the same ones.

use super::{
    super::anycast::site::{LIMIT, SERVICE4, is_same_session},
    site::{JOBS, Site},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use testbed::{Pings, pings, wait_until};

/// What a job has, by which one knows that it is the same one.
#[derive(Debug, Default, PartialEq)]
struct Held {
    /// Sockets of the process: inode, and address.
    sockets: BTreeSet<(String, String)>,
    /// Threads: number and name.
    threads: BTreeSet<(String, String)>,
    /// The programs on its interfaces, and what else lasts.
    others: BTreeMap<&'static str, String>,
}

/// Which job a socket of the node is of, by its local address and the other end's.
fn job_of_socket(local: &str, peer: &str) -> Option<&'static str> {
    let port = |address: &str| address.rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
    match (port(local)?, port(peer)) {
        (179, _) | (_, Some(179)) => Some("echo"),
        (8899 | 6671, _) => Some("oracle"),
        (862 | 8620, _) | (_, Some(862 | 8620)) => Some("probe"),
        _ => None,
    }
}

fn job_of_thread(name: &str) -> Option<&'static str> {
    let starts = |names: &[&str]| names.iter().any(|start| name.starts_with(start));
    match name {
        _ if starts(&["oracle", "alto"]) => Some("oracle"),
        _ if starts(&["probe", "delay", "archive"]) => Some("probe"),
        _ if starts(&["gate"]) => Some("gate"),
        _ => None,
    }
}

/// What all jobs of node a have.
fn held(site: &Site) -> BTreeMap<&'static str, Held> {
    let node = site.core.node(0);
    let mut all = BTreeMap::from(JOBS.map(|job| (job, Held::default())));
    // Sockets that are closed wait for a while; their process has none.
    for line in node.check(&["ss", "-Hantuep", "state", "all"]).unwrap().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [protocol, state, _, _, local, peer, rest @ ..] = words.as_slice() else { continue };
        let inode = rest.iter().find_map(|word| word.strip_prefix("ino:"));
        if let (Some(inode), Some(job)) =
            (inode.filter(|inode| *inode != "0"), job_of_socket(local, peer))
        {
            let text = format!("{protocol} {state} {local} {peer}");
            all.get_mut(job).unwrap().sockets.insert((inode.to_owned(), text));
        }
    }
    for task in std::fs::read_dir(format!("/proc/{}/task", site.pid())).unwrap().flatten() {
        let Ok(name) = std::fs::read_to_string(task.path().join("comm")) else { continue };
        // Threads for blocking work come and go.
        if let Some(job) = job_of_thread(&name).filter(|_| !name.starts_with("alto-work")) {
            let number = task.file_name().into_string().unwrap();
            all.get_mut(job).unwrap().threads.insert((number, name.trim().to_owned()));
        }
    }
    let link = |name| {
        let text = node.check(&["ip", "-j", "-d", "link", "show", name]).unwrap();
        let link: serde_json::Value = serde_json::from_str(&text).unwrap();
        link[0]["xdp"]["prog"]["id"].to_string()
    };
    let session = site.core.bird.query("show protocols a").unwrap();
    let others = &mut all.get_mut("echo").unwrap().others;
    others.extend([("program", link("eth0")), ("session", session)]);
    others.insert("imports", site.core.imports(0).to_string());
    let links = node.check(&["bpftool", "-j", "net"]).unwrap();
    all.get_mut("gate").unwrap().others.insert("programs", links);
    let builds = site.status("oracle")["tables"]["builds"].to_string();
    all.get_mut("oracle").unwrap().others.insert("builds of tables", builds);
    all
}

/// Numbers that only grow while a job runs.
fn counted(site: &Site) -> BTreeMap<&'static str, u64> {
    let sum = |value: &serde_json::Value| value.as_u64().unwrap();
    let echo = site.status("echo")["ledger"]["rows"].clone();
    let rows = echo.as_array().unwrap().iter().map(|row| sum(&row["answered"]));
    let gate = site.status("gate")["packets"].clone();
    let packets = gate.as_object().unwrap().values().map(|counter| sum(&counter["received"]));
    BTreeMap::from([
        ("echo", rows.sum()),
        ("oracle", sum(&site.status("oracle")["queries"]["received"])),
        ("probe", sum(&site.status("probe")["station"]["requests"])),
        ("gate", packets.sum()),
    ])
}

#[test]
fn a_change_of_one_section_leaves_the_other_jobs_alone() {
    let site = Site::start();
    let running = Pings::start(&site.core.client, SERVICE4, Duration::from_millis(5)).unwrap();
    let old = site.sections.clone();
    let changes = [
        ("echo", "echo", {
            let echo = old.echo.replace("rate = 0", "rate = 5000\nburst = 5000");
            echo.replace("addresses = [", "addresses = [\"203.0.113.1\", ")
        }),
        ("echo", "anycast", old.echo.replace("quiet = \"500ms\"", "quiet = \"600ms\"")),
        ("oracle", "oracle", old.oracle.replace("threads", "cost = \"-as_number\"\nthreads")),
        ("probe", "probe", {
            old.probe.clone()
                + "[[probe.test]]\nname = \"far\"\nwhat = \"ping\"\nfrom = [\"a\"]\nto = [\"b\"]\n\
                   interval = \"1h\"\n"
        }),
        ("gate", "gate", {
            old.gate.clone()
                + "[[gate.limit]]\nname = \"slow\"\nto_internal = \"20mbit\"\n\
                   [[gate.rule]]\nname = \"new\"\naction = \"limit\"\nlimit = \"slow\"\n"
        }),
    ];
    for (job, section, text) in changes {
        let mut sections = old.clone();
        *match job {
            "echo" => &mut sections.echo,
            "oracle" => &mut sections.oracle,
            "probe" => &mut sections.probe,
            _ => &mut sections.gate,
        } = text;
        assert_ne!(sections.text(), old.text(), "{section}");
        let (before, counts) = (held(&site), counted(&site));
        assert!(before.iter().all(|(_, held)| *held != Held::default()), "{before:#?}");
        site.reload(&sections);
        site.await_jobs(&JOBS);
        let (after, grown) = (held(&site), counted(&site));
        for other in JOBS.into_iter().filter(|other| *other != job) {
            let (before, after) = (&before[other], &after[other]);
            assert_eq!(before.sockets, after.sockets, "{other}, for [{section}]");
            assert_eq!(before.threads, after.threads, "{other}, for [{section}]");
            for (what, value) in &before.others {
                let same = match *what {
                    "session" => is_same_session(value, &after.others[what]),
                    _ => *value == after.others[what],
                };
                assert!(same, "{what} of {other}, for [{section}]: {value} {}", after.others[what]);
            }
            assert!(
                grown[other] >= counts[other],
                "{other}, for [{section}]: {counts:?} {grown:?}"
            );
        }
        site.reload(&old);
    }
    wait_until("replies", LIMIT, || running.replies().len() > 100).unwrap();
    let replies = running.finish().unwrap();
    assert_eq!(pings::lost(&replies), 0, "of {}", replies.len());
}
