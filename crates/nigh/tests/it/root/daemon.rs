//! The daemon from start to stop, in a namespace of its own.

use nigh::http::Who;
use nix::sys::signal::{SigSet, Signal};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        net::UnixStream,
    },
    path::Path,
    process::{Command, Stdio},
};
use testbed::{End, Finished, LIMIT, Namespace, Nigh, Receiver, link, wait_until};

const BINARY: &str = env!("CARGO_BIN_EXE_nigh");

/// Two ends of a link: the node, and a neighbour that sends it pings.
struct Site {
    node: Namespace,
    neighbour: Namespace,
    _receiver: Receiver,
}

impl Site {
    /// Whether the neighbour's ping to the service address is answered.
    fn answers(&self) -> bool {
        let line = ["ping", "-c", "1", "-W", "1", "198.51.100.1"];
        self.neighbour.run(&line, LIMIT).unwrap().success()
    }

    /// What of the daemon is left in the node's network: a program on the link, an address on `lo`.
    fn left(&self) -> (bool, usize) {
        let link = self.node.check(&["ip", "-d", "link", "show", "eth0"]).unwrap();
        let lo = self.node.check(&["ip", "addr", "show", "lo"]).unwrap();
        (link.contains("prog/xdp"), lo.matches("198.51.100.1/32").count())
    }
}

fn site() -> Site {
    let node = Namespace::new("node").unwrap();
    let neighbour = Namespace::new("peer").unwrap();
    link(
        End::new(&node, "eth0").address("192.0.2.1/30"),
        End::new(&neighbour, "eth0").address("192.0.2.2/30"),
    )
    .unwrap();
    neighbour.check(&["ip", "route", "add", "198.51.100.1", "via", "192.0.2.1"]).unwrap();
    let receiver = Receiver::new(&neighbour, "eth0").unwrap();
    Site { node, neighbour, _receiver: receiver }
}

/// The sections that all tests but one use; `more` is added to `[echo]`.
fn sections(more: &str) -> String {
    format!("[echo]\ninterfaces = [\"eth0\"]\naddresses = [\"198.51.100.1\"]\n{more}\n")
}

fn start(site: &Site) -> Nigh {
    Nigh::start(&site.node, Path::new(BINARY), "node-a", &sections("")).unwrap()
}

/// Runs a sub-command against the daemon's control socket.
fn ask(site: &Site, nigh: &Nigh, words: &[&str]) -> Finished {
    let socket = nigh.socket();
    let line = [&[BINARY][..], words, &["--socket", socket.to_str().unwrap()]].concat();
    site.node.run(&line, LIMIT).unwrap()
}

fn status(nigh: &Nigh) -> Value {
    nigh.control(&json!({"do": "status"})).unwrap()
}

/// Sends raw bytes to the control socket and reads one line.
fn raw(nigh: &Nigh, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(nigh.socket()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    // The daemon may answer and close before it has read all of it.
    let _ = stream.write_all(bytes);
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

#[test]
fn status_and_its_copies_agree() {
    let site = site();
    let nigh = start(&site);
    let mode = std::fs::metadata(nigh.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);

    wait_until("health", LIMIT, || nigh.http(&site.node, "/healthz").unwrap().0 == 200).unwrap();
    let value = status(&nigh);
    assert_eq!(value["node"]["name"], "node-a");
    assert_eq!(value["node"]["drained"], false);
    let printed = ask(&site, &nigh, &["status", "--json"]);
    assert!(printed.success(), "{}", printed.stderr);
    let printed: Value = serde_json::from_str(&printed.stdout).unwrap();
    let (code, body) = nigh.http(&site.node, "/api/v1/status").unwrap();
    assert_eq!(code, 200);
    let served: Value = serde_json::from_str(&body).unwrap();
    for other in [&printed, &served] {
        assert_eq!(other["node"]["pid"], value["node"]["pid"]);
        assert_eq!(other["echo"]["interfaces"], value["echo"]["interfaces"]);
    }
    let text = ask(&site, &nigh, &["status"]);
    assert!(text.success());
    assert!(text.stdout.starts_with("node node-a: nigh "), "{}", text.stdout);
    let by_file = nigh.configuration();
    let by_file = [BINARY, "status", "-c", by_file.to_str().unwrap()];
    assert!(site.node.run(&by_file, LIMIT).unwrap().success());
    let of_job = ask(&site, &nigh, &["echo", "status", "--json"]);
    assert!(of_job.success(), "{}", of_job.stderr);
    let of_job: Value = serde_json::from_str(&of_job.stdout).unwrap();
    assert_eq!(of_job["interfaces"], value["echo"]["interfaces"]);
    let absent = ask(&site, &nigh, &["oracle", "status"]);
    assert_eq!(absent.status.code(), Some(1));
    assert!(absent.stderr.contains("there is no section [oracle]"), "{}", absent.stderr);
}

#[test]
fn the_status_of_a_node_that_is_not_healthy_exits_with_5() {
    let site = site();
    let nigh = start(&site);
    wait_until("health", LIMIT, || ask(&site, &nigh, &["status"]).success()).unwrap();
    site.node.check(&["ip", "link", "set", "eth0", "down"]).unwrap();
    for words in [&["status"][..], &["status", "--json"], &["echo", "status"]] {
        wait_until("the fault", LIMIT, || !ask(&site, &nigh, words).success()).unwrap();
        let status = ask(&site, &nigh, words);
        assert_eq!((status.status.code(), status.stderr.as_str()), (Some(5), ""), "{words:?}");
        assert!(status.stdout.contains("eth0"), "{}", status.stdout);
    }
}

#[test]
fn http_answers_by_its_own_names_only() {
    let site = site();
    // They begin in `[node]`.
    let sections = format!("http_names = [\"node-a.example.net\"]\n{}", sections(""));
    let nigh = Nigh::start(&site.node, Path::new(BINARY), "node-a", &sections).unwrap();
    wait_until("health", LIMIT, || nigh.http(&site.node, "/healthz").unwrap().0 == 200).unwrap();
    let named = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for (host, code) in [
        ("127.0.0.1:9160", "200"),
        ("localhost", "200"),
        (named.trim(), "200"),
        ("node-a.example.net:9160", "200"),
        ("evil.example:9160", "421"),
        ("node-a.example.net.evil.example", "421"),
    ] {
        let header = format!("Host: {host}");
        let url = "http://127.0.0.1:9160/api/v1/status";
        let curl = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", &header, url];
        assert_eq!(site.node.check(&curl).unwrap(), code, "{host}");
    }
}

#[test]
fn what_tells_of_peoples_traffic_is_for_local_administrators_and_the_token() {
    const TOKEN: &str = "0123456789abcdef";
    let site = site();
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    config::file::write_private(&token, TOKEN.as_bytes()).unwrap();
    let sections = format!("http_token = {token:?}\n{}", sections(""));
    let mut nigh = Nigh::start(&site.node, Path::new(BINARY), "node-a", &sections).unwrap();
    wait_until("health", LIMIT, || nigh.http(&site.node, "/healthz").unwrap().0 == 200).unwrap();
    let code = |user: &str, path: &str, token: &str| {
        let header = format!("Authorization: Bearer {token}");
        let url = format!("http://127.0.0.1:9160{path}");
        let setpriv = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups"];
        let curl = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", &header, &url];
        site.node.check(&[&setpriv[..], &curl].concat()).unwrap()
    };
    for (_, path, who, _) in nigh::http::routes() {
        let (nobody, bearer, root) = match who {
            Who::Anyone => ("200", "200", "200"),
            Who::Viewers if path.contains("/echo/") || path.ends_with("/status") => {
                ("401", "200", "200")
            }
            // Of jobs that this node does not run.
            Who::Viewers => ("401", "404", "404"),
            Who::Requesters => continue,
        };
        assert_eq!(code("65534", path, "0123456789abcdeg"), nobody, "{path}");
        assert_eq!(code("65534", path, TOKEN), bearer, "{path}");
        assert_eq!(code("0", path, ""), root, "{path}");
    }
    assert!(!nigh.process().stderr().contains(TOKEN), "the token is in the log");
}

#[test]
fn http_serves_the_page_health_and_metrics_and_nothing_else() {
    let site = site();
    let nigh = start(&site);
    wait_until("health", LIMIT, || nigh.http(&site.node, "/healthz").unwrap().0 == 200).unwrap();
    let (_, body) = nigh.http(&site.node, "/healthz").unwrap();
    assert_eq!(body, "ok\n");
    let (code, page) = nigh.http(&site.node, "/").unwrap();
    assert_eq!(code, 200);
    assert!(!page.contains("http://") && !page.contains("https://"), "the page loads nothing else");
    for path in ["/status.css", "/status.js"] {
        assert!(page.contains(&path[1..]), "{path}");
        assert_eq!(nigh.http(&site.node, path).unwrap().0, 200);
    }
    assert_eq!(nigh.http(&site.node, "/api/v1/echo/ledger").unwrap().0, 200);
    for path in ["/nothing", "/api/v1/gate", "/api/v1/gate/top", "/api/v1/probe/show"] {
        assert_eq!(nigh.http(&site.node, path).unwrap().0, 404, "{path}");
    }

    let of = |line: &str, header: &str| {
        format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\r\n\r\n")
    };
    let post = of("POST /api/v1/status", "Content-Length: 0");
    let long = of("GET /", &format!("X: {}", "a".repeat(64 << 10)));
    for (request, code) in [(post, "405"), (long, "431")] {
        let answer = site.node.enter(|| {
            let mut stream = TcpStream::connect("127.0.0.1:9160").unwrap();
            stream.set_read_timeout(Some(LIMIT)).unwrap();
            let _ = stream.write_all(request.as_bytes());
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).unwrap();
            String::from_utf8(answer.to_vec()).unwrap()
        });
        assert_eq!(answer, format!("HTTP/1.1 {code}"));
    }
}

#[test]
fn metrics_are_well_formed() {
    let site = site();
    let nigh = start(&site);
    let (code, text) = nigh.http(&site.node, "/metrics").unwrap();
    assert_eq!(code, 200);
    assert!(text.ends_with("# EOF\n"), "OpenMetrics 1.0: the exposition ends with # EOF");
    let mut families = BTreeSet::new();
    let mut samples = BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let name = rest.split(' ').next().unwrap();
            assert!(families.insert(name.to_owned()), "{name} is declared twice");
        } else if !line.starts_with('#') {
            let (series, value) = line.rsplit_once(' ').unwrap();
            assert!(samples.insert(series.to_owned()), "{series} stands there twice");
            assert!(value.parse::<f64>().is_ok(), "{line}");
            let name = series.split('{').next().unwrap();
            let known = families.iter().any(|family| name.starts_with(family.as_str()));
            assert!(known, "{name} is not declared");
        }
    }
    for name in ["nigh_build", "nigh_uptime_seconds", "process_cpu_seconds", "process_open_fds"] {
        assert!(families.contains(name), "{name} is missing");
    }
    let build =
        format!("nigh_build_info{{version=\"{}\",node=\"node-a\"}}", env!("CARGO_PKG_VERSION"));
    assert!(samples.contains(&build), "{samples:?}");
}

#[test]
fn a_reload_changes_what_is_good_and_nothing_when_it_is_not() {
    let site = site();
    let mut nigh = start(&site);
    nigh.configure("node-a", &sections("[echo.limit]\nrate = 7")).unwrap();
    let good = ask(&site, &nigh, &["reload", "--json"]);
    assert!(good.success(), "{}", good.stderr);
    let answer: Value = serde_json::from_str(&good.stdout).unwrap();
    assert_eq!(answer["restart_to_apply"], json!([]));
    let before = status(&nigh);
    assert_eq!(before["echo"]["limit"]["rate"], 7);

    nigh.configure("node-a", &sections("[echo.limit]\nrat = 8")).unwrap();
    let bad = ask(&site, &nigh, &["reload"]);
    assert_eq!(bad.status.code(), Some(1));
    let expected = format!(
        "nigh: nothing was changed: {}:11:1: echo.limit.rat: unknown key `rat`: did you mean `rate`?\n",
        nigh.configuration().display()
    );
    assert_eq!(bad.stderr, expected);
    assert_eq!(status(&nigh)["echo"]["limit"], before["echo"]["limit"]);
    // By signal it says the same, in the log.
    nigh.process().signal(Signal::SIGHUP).unwrap();
    wait_until("the warning", LIMIT, || {
        nigh.process().stderr().matches("nothing was changed").count() == 2
    })
    .unwrap();
    assert_eq!(status(&nigh)["echo"]["limit"], before["echo"]["limit"]);

    nigh.configure("node-b", &sections("[echo.limit]\nrate = 9")).unwrap();
    nigh.process().signal(Signal::SIGHUP).unwrap();
    wait_until("the reload", LIMIT, || status(&nigh)["echo"]["limit"]["rate"] == 9).unwrap();
    let reply = ask(&site, &nigh, &["reload"]);
    assert!(
        reply.stdout.contains("node.name changed: restart the daemon to apply"),
        "{}",
        reply.stdout
    );
    assert_eq!(status(&nigh)["node"]["name"], "node-a");
}

#[test]
fn a_reload_attaches_without_the_right_to_load() {
    let site = site();
    let other = Namespace::new("other").unwrap();
    link(End::new(&site.node, "eth1"), End::new(&other, "eth1")).unwrap();
    let nigh = start(&site);
    let two = sections("").replace("[\"eth0\"]", "[\"eth0\", \"eth1\"]");
    nigh.configure("node-a", &two).unwrap();
    let reload = ask(&site, &nigh, &["reload"]);
    assert!(reload.success(), "{}", reload.stderr);
    let modes = |value: &Value| {
        let list = value["echo"]["interfaces"].as_array().unwrap().clone();
        list.iter().map(|item| item["mode"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(modes(&status(&nigh)), ["native", "native"]);
    // The kernel can take over, but not give back: that takes a program, and to load one the start.
    nigh.configure("node-a", &sections("mode = \"kernel\"")).unwrap();
    assert!(ask(&site, &nigh, &["reload"]).success());
    assert_eq!((modes(&status(&nigh)), site.answers()), (vec!["kernel".to_owned()], true));
    nigh.configure("node-a", &sections("mode = \"auto\"")).unwrap();
    let refused = ask(&site, &nigh, &["reload"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stderr.contains("restart the daemon to apply"), "{}", refused.stderr);
    assert_eq!(modes(&status(&nigh)), ["kernel"]);
}

#[test]
fn an_undrain_ends_a_drain_that_still_waits() {
    let site = site();
    let anycast = "[anycast]\nprefixes = [\"198.51.100.0/24\"]\nquiet = \"20s\"\n\
                   [[anycast.upstream]]\nname = \"isp\"\ntype = \"bgp\"\npeer = \"192.0.2.2\"\n\
                   peer_as = 64500\nlocal_as = 64501\n";
    let nigh = Nigh::start(&site.node, Path::new(BINARY), "node-a", &sections(anycast)).unwrap();
    std::thread::scope(|scope| {
        let drain = scope.spawn(|| ask(&site, &nigh, &["drain"]));
        wait_until("the drain", LIMIT, || status(&nigh)["echo"]["drain"] != "serving").unwrap();
        assert!(ask(&site, &nigh, &["undrain"]).success());
        let drain = drain.join().unwrap();
        assert_eq!(drain.status.code(), Some(1));
        assert!(drain.stderr.contains("ended by `nigh undrain`"), "{}", drain.stderr);
    });
    assert_eq!(status(&nigh)["echo"]["drain"], "serving");
    assert_eq!(status(&nigh)["node"]["drained"], false);
}

#[test]
fn a_drain_lasts_over_a_restart() {
    let site = site();
    let mut nigh = start(&site);
    let drained = ask(&site, &nigh, &["drain"]);
    assert!(drained.success(), "{}", drained.stderr);
    assert_eq!(status(&nigh)["node"]["drained"], true);
    nigh.restart(&site.node, Path::new(BINARY), "node-a", &sections("")).unwrap();
    assert_eq!(status(&nigh)["node"]["drained"], true);
    assert!(ask(&site, &nigh, &["status"]).stdout.contains("drained by the operator"));
    assert!(ask(&site, &nigh, &["undrain"]).success());
    assert_eq!(status(&nigh)["node"]["drained"], false);
    nigh.restart(&site.node, Path::new(BINARY), "node-a", &sections("")).unwrap();
    assert_eq!(status(&nigh)["node"]["drained"], false);
}

#[test]
fn sigterm_stops_and_leaves_nothing() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let site = site();
        // A program that blocks signals passes that on to those that it starts.
        let blocked = [signal].into_iter().collect::<SigSet>();
        blocked.thread_block().unwrap();
        let mut nigh = start(&site);
        blocked.thread_unblock().unwrap();
        assert_eq!((site.left(), site.answers()), ((true, 1), true));
        nigh.process().signal(signal).unwrap();
        let mut code = None;
        wait_until("the end", LIMIT, || {
            code = nigh.process().ended().map(|status| status.code());
            code.is_some()
        })
        .unwrap();
        assert_eq!(code, Some(Some(0)), "{}", nigh.process().stderr());
        assert!(!nigh.socket().exists());
        // The kernel removes the address half a minute later, if nobody takes it over.
        assert_eq!(site.left(), (false, 1));
        if signal == Signal::SIGINT {
            wait_until("no address", 2 * LIMIT, || site.left() == (false, 0)).unwrap();
        }
        // The stop is not a drain by the operator.
        nigh.restart(&site.node, Path::new(BINARY), "node-a", &sections("")).unwrap();
        assert_eq!(status(&nigh)["node"]["drained"], false);
    }
}

/// While the daemon is away the kernel answers, and the next one takes the address over.
#[test]
fn a_restart_loses_no_ping() {
    let site = site();
    let mut nigh = start(&site);
    let ping = site.neighbour.spawn(&["ping", "-i", "0.002", "198.51.100.1"]).unwrap();
    let answers = || ping.stdout().matches("icmp_seq=").count();
    let more = |from: usize| {
        wait_until("more answers", LIMIT, || answers() > from + 100).unwrap();
    };
    more(0);
    nigh.process().signal(Signal::SIGTERM).unwrap();
    wait_until("the end", LIMIT, || nigh.process().ended().is_some()).unwrap();
    more(answers());
    assert_eq!(site.left(), (false, 1));
    nigh.restart(&site.node, Path::new(BINARY), "node-a", &sections("")).unwrap();
    more(answers());
    assert_eq!(site.left(), (true, 1));
    let lo = site.node.check(&["ip", "addr", "show", "dev", "lo", "to", "198.51.100.1"]).unwrap();
    assert!(lo.contains("valid_lft forever"), "{lo}");
    ping.signal(Signal::SIGINT).unwrap();
    let printed = ping.finish(LIMIT).unwrap().stdout;
    let (_, numbers) = printed.split_once("icmp_seq=").unwrap();
    let numbers = numbers.split("icmp_seq=").map(|rest| rest.split(' ').next().unwrap());
    // In order, and none is missing.
    for (number, wanted) in numbers.zip(1..) {
        assert_eq!(number, wanted.to_string(), "{printed}");
    }
}

#[test]
fn a_killed_daemon_is_replaced_and_a_living_one_is_not() {
    let site = site();
    let mut nigh = start(&site);
    let file = nigh.configuration();
    let run = [BINARY, "run", "--user", "root", "-c", file.to_str().unwrap()];
    let second = site.node.run(&run, LIMIT).unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(
        second.stderr.contains("another nigh runs with the state directory"),
        "{}",
        second.stderr
    );
    // The same socket under another state directory.
    let text = std::fs::read_to_string(&file).unwrap();
    let elsewhere = nigh.socket().with_file_name("elsewhere.toml");
    std::fs::write(&elsewhere, text.replace("/state\"", "/state2\"")).unwrap();
    let run = [BINARY, "run", "--user", "root", "-c", elsewhere.to_str().unwrap()];
    let second = site.node.run(&run, LIMIT).unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(second.stderr.contains("a daemon already answers at"), "{}", second.stderr);
    // The first one did not suffer.
    let pid = status(&nigh)["node"]["pid"].clone();

    nigh.process().kill();
    assert!(nigh.socket().exists(), "a killed daemon leaves its socket");
    assert!(!site.left().0, "a killed daemon's program is detached by the kernel");
    nigh.restart(&site.node, Path::new(BINARY), "node-a", &sections("")).unwrap();
    assert_eq!((site.left(), site.answers()), ((true, 1), true));
    assert_ne!(status(&nigh)["node"]["pid"], pid);

    nigh.process().kill();
    std::fs::remove_file(nigh.socket()).unwrap();
    std::fs::write(nigh.socket(), "precious").unwrap();
    let run = [BINARY, "run", "--user", "root", "-c", file.to_str().unwrap()];
    let third = site.node.run(&run, LIMIT).unwrap();
    assert!(third.stderr.contains("exists and is not a socket"), "{}", third.stderr);
    assert_eq!(std::fs::read_to_string(nigh.socket()).unwrap(), "precious");
}

#[test]
fn the_control_socket_is_bounded() {
    let site = site();
    let nigh = start(&site);
    for (bytes, expected) in [
        (&b"nonsense\n"[..], "this is not a request"),
        (b"{\"do\":\"explode\"}\n", "this is not a request"),
        (b"{\"do\":\"drain\",\"now\":1}\n", "this is not a request"),
        (b"\xff\xfe\n", "this is not a request"),
        (&[b' '; 80 << 10], "a request has at most 65536 bytes"),
    ] {
        let answer = raw(&nigh, bytes);
        assert!(answer.starts_with("{\"error\":") && answer.contains(expected), "{answer}");
    }
    // Several requests on one connection are answered in order.
    let mut stream = UnixStream::connect(nigh.socket()).unwrap();
    stream.write_all(b"{\"do\":\"status\"}\nx\n{\"do\":\"undrain\"}\n").unwrap();
    let lines: Vec<String> = BufReader::new(stream).lines().take(3).map(Result::unwrap).collect();
    let starts: Vec<&str> = lines.iter().map(|line| &line[..5]).collect();
    assert_eq!(starts, ["{\"ok\"", "{\"err", "{\"ok\""]);
    // Idle connections beyond the limit are turned away, and room is made again.
    let idle: Vec<_> = (0..32).map(|_| UnixStream::connect(nigh.socket()).unwrap()).collect();
    wait_until("the limit", LIMIT, || raw(&nigh, b"").contains("32 control connections")).unwrap();
    drop(idle);
    wait_until("room", LIMIT, || nigh.control(&json!({"do": "status"})).is_ok()).unwrap();
}

#[test]
fn few_capabilities_are_kept() {
    let site = site();
    let nigh = start(&site);
    let pid = status(&nigh)["node"]["pid"].as_u64().unwrap();
    let threads = testbed::few_capabilities(pid as u32);
    assert!(threads.values().all(|has| *has == testbed::KEPT), "{threads:?}");
}

#[test]
fn a_check_tells_what_the_daemons_user_may_not_do() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let here = folder.path().display();
    let file = folder.path().join("nigh.toml");
    let text = format!(
        "[node]\nstate = \"{here}/state\"\n\
         [gate]\ninternal = [\"no-such-if\"]\n[gate.audit]\nfolder = \"{here}\"\n\
         addresses = {{ mapping = \"crypto-pan\", key = \"{here}/key\" }}\n"
    );
    std::fs::write(&file, text).unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, [7; 32]).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let check = |user: &str| {
        let mut command = Command::new(BINARY);
        command.args(["check", "--host", "--user", user, "-c"]).arg(&file);
        testbed::Process::start(command).unwrap().finish(LIMIT).unwrap()
    };
    let missing = "there is no interface no-such-if now";
    let root = check("root");
    assert!(root.success() && root.stderr.contains(missing), "{}", root.stderr);
    let nobody = check("nobody");
    assert_eq!(nobody.status.code(), Some(1), "{}", nobody.stderr);
    let cannot = [format!("cannot read {here}/key"), format!("cannot write to {here}: ")];
    for part in cannot.iter().map(String::as_str).chain([missing, "gate.audit.addresses.key"]) {
        assert!(nobody.stderr.contains(part), "{part}: {}", nobody.stderr);
    }
}

/// Every job waits for an interface that is not there yet, says so, and uses it when it appears.
#[test]
fn a_missing_interface_is_waited_for() {
    let site = site();
    let sections = "[echo]\ninterfaces = [\"eth1\"]\naddresses = [\"198.51.100.1\"]\n\
                    [oracle]\ninterfaces = [\"eth2\"]\nlisten = [\"127.0.0.1:5300\"]\n\
                    [probe.reflector]\ninterfaces = [\"eth3\"]\n\
                    [gate]\ninternal = [\"eth4\"]\n";
    let nigh = Nigh::start(&site.node, Path::new(BINARY), "node-a", sections).unwrap();
    let problems = || {
        let problems = status(&nigh)["node"]["problems"].clone();
        problems.as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect()
    };
    let names = ["eth1", "eth2", "eth3", "eth4"];
    let missing = |problems: &[String]| {
        let says =
            |name: &&str| problems.iter().any(|it| it.contains(*name) && it.contains("not exist"));
        names.iter().copied().filter(says).collect::<Vec<_>>()
    };
    let mut last: Vec<String> = Vec::new();
    wait_until("all are missed", LIMIT, || {
        last = problems();
        missing(&last) == names
    })
    .unwrap_or_else(|error| panic!("{error}: {last:?}"));
    let peer = Namespace::new("far").unwrap();
    for (number, name) in names.iter().enumerate() {
        let address = |end| format!("10.0.{number}.{end}/30");
        let (near, far) = (address(1), address(2));
        link(End::new(&site.node, name).address(&near), End::new(&peer, name).address(&far))
            .unwrap();
    }
    // What it reports stays for a minute; what runs shows at once.
    wait_until("all are used", LIMIT, || {
        let on = |name: &str| {
            let link = site.node.check(&["ip", "-d", "link", "show", name]).unwrap();
            link.contains("prog/xdp")
        };
        on("eth1") && on("eth2") && on("eth3") && {
            let _ = peer.run(&["ping", "-c", "1", "-W", "1", "10.0.3.1"], LIMIT);
            let state = nigh.control(&json!({"do": "status", "job": "gate"})).unwrap();
            state["packets"]["from_internal"]["received"].as_u64() > Some(0)
        }
    })
    .unwrap_or_else(|error| panic!("{error}: {}", nigh.wrote()));
}

/// What root starts runs as another user, whom its state and socket belong to; both may ask it.
#[test]
fn root_becomes_the_user() {
    let site = site();
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let here = folder.path().display();
    let file = folder.path().join("nigh.toml");
    let sections = sections("[gate]\ninternal = [\"eth0\"]");
    let node = format!("[node]\ncontrol = \"{here}/run/c\"\nstate = \"{here}/state\"\n{sections}");
    std::fs::write(&file, node).unwrap();
    let binary = folder.path().join("nigh");
    std::fs::copy(BINARY, &binary).unwrap();
    let start = |user: &str| {
        // In a mount namespace of its own, for the BPF file system.
        let mut command = Command::new("unshare");
        command.arg("--mount").arg(&binary).args(["run", "--user", user, "-c"]).arg(&file);
        site.node.start(command).unwrap()
    };
    let unknown = start("no-such-user").finish(LIMIT).unwrap();
    assert!(unknown.stderr.contains("there is no user no-such-user"), "{}", unknown.stderr);

    let mut daemon = start("nobody");
    let socket = folder.path().join("run/c");
    let words = ["status", "--json", "--socket", socket.to_str().unwrap()];
    let binary = binary.to_str().unwrap();
    let as_root = [&[binary][..], &words].concat();
    wait_until("health", LIMIT, || {
        assert!(daemon.ended().is_none(), "{}", daemon.stderr());
        site.node.run(&as_root, LIMIT).unwrap().success()
    })
    .unwrap();
    let setpriv = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", binary];
    let as_user = site.node.run(&[&setpriv[..], &words].concat(), LIMIT).unwrap();
    assert!(as_user.success(), "{}", as_user.stderr);
    testbed::few_capabilities(daemon.pid());
    for task in std::fs::read_dir(format!("/proc/{}/task", daemon.pid())).unwrap() {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        for ids in ["Uid:", "Gid:"] {
            let line = status.lines().find_map(|line| line.strip_prefix(ids)).unwrap();
            assert!(line.split_whitespace().all(|id| id == "65534"), "{ids} {line}");
        }
    }
    for path in [folder.path().join("state"), folder.path().join("run"), socket] {
        assert_eq!(std::fs::metadata(&path).unwrap().uid(), 65534, "{}", path.display());
    }
    daemon.signal(Signal::SIGHUP).unwrap();
    wait_until("a reload", LIMIT, || daemon.stderr().contains("reloaded")).unwrap();
    daemon.signal(Signal::SIGTERM).unwrap();
    let finished = daemon.finish(LIMIT).unwrap();
    assert!(finished.success(), "{}", finished.stderr);
    assert_eq!(site.left(), (false, 1), "{}", finished.stderr);
}

#[test]
fn a_user_with_the_capabilities_of_the_unit_can_run_it() {
    let site = site();
    // Capabilities, and how maps are kept, are read from the unit that operators are given.
    let unit = include_str!("../../../../../contrib/nigh.service");
    let prepare = unit.lines().find(|line| line.starts_with("ExecStartPre=-+")).unwrap();
    let (_, prepare) = prepare.split_once(" /bin/sh -c '").unwrap();
    let prepare = prepare.strip_suffix('\'').unwrap();
    let words = unit.lines().find_map(|line| line.strip_prefix("AmbientCapabilities=")).unwrap();
    let words = words.to_lowercase().replace("cap_", "+").replace(' ', ",");
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(folder.path(), Some(65534), Some(65534)).unwrap();
    let here = folder.path().display();
    let file = folder.path().join("nigh.toml");
    let sections = sections("[gate]\ninternal = [\"eth0\"]");
    let node = format!("[node]\ncontrol = \"{here}/c\"\nstate = \"{here}/state\"\n{sections}");
    std::fs::write(&file, node).unwrap();
    // That user may not be able to reach the folder where this was built.
    let binary = folder.path().join("nigh");
    std::fs::copy(BINARY, &binary).unwrap();
    // In a mount namespace of its own, as a unit has.
    let prepare = prepare.replace("/run/nigh ", &format!("{here} "));
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &format!("{prepare} && exec setpriv \"$@\""), "sh"]);
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.args(["--inh-caps", &words, "--ambient-caps", &words]);
    command.args(["--bounding-set", &format!("-all,{words}"), "--no-new-privs"]);
    command.arg(&binary).arg("run").arg("-c").arg(&file).stdin(Stdio::null());
    let mut daemon = site.node.start(command).unwrap();
    wait_until("an answer", LIMIT, || {
        assert!(daemon.ended().is_none(), "{}", daemon.stderr());
        site.left() == (true, 1) && site.answers()
    })
    .unwrap();
    // No debugger of its user may look into it: its folder in /proc belongs to root then. Nor is it dumped.
    let of = |name: &str| format!("/proc/{}/{name}", daemon.pid());
    assert_eq!(std::fs::metadata(of("status")).unwrap().uid(), 0);
    let limits = std::fs::read_to_string(of("limits")).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().collect::<Vec<_>>()[4..6], ["0", "0"], "{core}");
    // Its gate's maps would outlive it.
    let pins = format!("/proc/{}/root/run/nigh-bpf/nigh/gate", daemon.pid());
    let gate = std::fs::read_dir(pins).unwrap().next().unwrap().unwrap().path();
    assert!(gate.join("gate_decided").exists());
    daemon.signal(Signal::SIGTERM).unwrap();
    let finished = daemon.finish(LIMIT).unwrap();
    assert!(finished.success(), "{}", finished.stderr);
    assert_eq!(site.left(), (false, 1), "{}", finished.stderr);
}
