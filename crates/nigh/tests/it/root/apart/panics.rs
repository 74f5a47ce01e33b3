//! A panic on any thread of a job, and in what the daemon's own thread calls of it.

use super::{
    super::anycast::site::LIMIT,
    site::{ALTO, JOBS, PROXIDOR, STATION, Site, rank},
};
use nix::sys::signal::Signal;
use std::{io::ErrorKind, net::UdpSocket, time::Duration};
use testbed::wait_until;

/// A panic at a point of a job, and what brings its code there.
type Case<'a> = (&'a str, &'a dyn Fn(&Site));

/// Panics at each point, in a daemon of its own. The job has `ended` then; the others work, and so does all
/// after the next start.
fn fails(job: &str, cases: &[Case<'_>], ended: impl Fn(&Site) -> bool) {
    let mut site = Site::start();
    for (point, poke) in cases {
        site.a.panic(point).unwrap();
        let panicked = wait_until(&format!("a panic in {point}"), LIMIT, || {
            poke(&site);
            site.a.has_panicked(point)
        });
        assert!(panicked.is_ok(), "{point}: {}", site.a.wrote());
        let what = format!("the end of {job} after a panic in {point}");
        assert!(wait_until(&what, LIMIT, || ended(&site)).is_ok(), "{what}: {}", site.a.wrote());

        let state = site.status(job);
        assert_eq!((&state["healthy"], &state["failed"]), (&false.into(), &true.into()));
        let problem = state["problems"][0].as_str().unwrap();
        assert!(problem.starts_with(&format!("{job}: failed: panicked at ")), "{problem}");
        assert!(problem.contains(&format!("a test wants a panic in {point}")), "{problem}");
        let (code, health) = site.a.http(site.core.node(0), "/healthz").unwrap();
        assert!(code == 503 && health.contains(problem), "{code} {health}");
        let metrics = site.a.http(site.core.node(0), "/metrics").unwrap().1;
        for name in JOBS {
            let line =
                format!("nigh_job_panics_total{{job=\"{name}\"}} {}\n", u8::from(name == job));
            assert!(metrics.contains(&line), "{metrics}");
        }
        let reloaded = site.reload(&site.sections);
        assert_eq!(reloaded["restart_to_apply"], serde_json::json!([job]));
        let others: Vec<&str> = JOBS.into_iter().filter(|name| *name != job).collect();
        site.await_jobs(&others);
        assert_eq!(site.status(job)["healthy"], false);
        site.a.process().signal(Signal::SIGTERM).unwrap();
        wait_until("the end", LIMIT, || site.a.process().ended().is_some()).unwrap();
        assert!(site.a.process().ended().unwrap().success(), "{}", site.a.wrote());
        site.restart();
    }
}

const NOTHING: &dyn Fn(&Site) = &|_| ();
/// The daemon's own thread asks each job.
const LOOK: &dyn Fn(&Site) = &|site| drop(site.a.http(site.core.node(0), "/healthz"));

#[test]
fn echo_withdraws() {
    let link = |site: &Site| {
        site.core.node(0).check(&["ip", "link", "set", "eth0", "alias", "panic"]).unwrap();
        site.core.node(0).check(&["ip", "link", "set", "eth0", "alias", "other"]).unwrap();
    };
    let cases: [Case<'_>; 5] = [
        ("echo-worker", NOTHING),
        ("echo-command", NOTHING),
        ("echo-links", &link),
        ("echo-bgp", NOTHING),
        ("echo", LOOK),
    ];
    fails("echo", &cases, |site| {
        let node = site.core.node(0);
        let link = node.check(&["ip", "-d", "link", "show", "eth0"]).unwrap();
        let lo = node.check(&["ip", "addr", "show", "lo"]).unwrap();
        site.core.routes(0) == [false; 2] && !link.contains("prog/xdp") && !lo.contains("50.50")
    });
}

#[test]
fn the_oracle_answers_nobody() {
    let ask = |site: &Site| {
        let _ = site.core.router.enter(rank);
    };
    let change = |site: &Site| {
        let mut text = std::fs::read_to_string(site.network()).unwrap();
        text = text.replacen("weight = 10", "weight = 11", 1);
        std::fs::write(site.network(), text).unwrap();
        // It fails when the tables do.
        let request = serde_json::json!({"do": "oracle", "request": {"do": "reload"}});
        let _ = site.a.control(&request);
    };
    let visit = |site: &Site| {
        site.connects(ALTO);
    };
    let cases: [Case<'_>; 5] = [
        ("oracle-udp", &ask),
        ("oracle-builder", &change),
        ("oracle-tables", &change),
        ("alto", &visit),
        ("oracle", LOOK),
    ];
    fails("oracle", &cases, |site| {
        let refused = || {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.connect(PROXIDOR).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
            let _ = socket.send(b"anything");
            let answer = socket.recv(&mut [0]);
            answer.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
        };
        site.core.router.enter(refused) && !site.connects(ALTO)
    });
}

#[test]
fn the_station_serves_nobody() {
    let measure = |site: &Site| {
        site.is_measured();
    };
    let measured = |site: &Site| {
        let test = serde_json::json!({"do": "run", "what": "owd", "to": "b", "duration": "100ms"});
        let _ = site.a.control(&serde_json::json!({"do": "probe", "request": test}));
    };
    let visit = |site: &Site| {
        site.connects(STATION);
    };
    let cases: [Case<'_>; 6] = [
        ("probe-station", &visit),
        ("probe-timetable", NOTHING),
        ("delay", &measure),
        ("clock", NOTHING),
        ("archive", &measured),
        ("probe", LOOK),
    ];
    fails("probe", &cases, |site| {
        let sockets = site.core.node(0).check(&["ss", "-Huln"]).unwrap();
        !site.connects(STATION) && !sockets.contains(":862 ")
    });
}

#[test]
fn the_gate_stays_in_force_without_its_thread() {
    let cases: [Case<'_>; 3] = [("gate-worker", NOTHING), ("gate-audit", NOTHING), ("gate", LOOK)];
    fails("gate", &cases, |site| {
        let folder = site.core.node(0).enter(datapath::gate::home).unwrap();
        let task = format!("/proc/{}/task", site.pid());
        let names = std::fs::read_dir(task).unwrap().flatten().map(|task| task.path().join("comm"));
        let mut threads = names.filter_map(|name| std::fs::read_to_string(name).ok());
        folder.join("gate_decided").exists() && !threads.any(|name| name.starts_with("gate"))
    });
}
