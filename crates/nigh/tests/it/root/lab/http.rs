//! A lab over HTTP: the same values as the commands print, to authorized clients, and nothing can be
//! changed.

use super::{
    LIMIT, TWO_HOSTS, binary,
    using::{ask, follow_events, ping, text_of},
};
use serde_json::Value;
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    process::Command,
};
use testbed::{Lab, wait_until};

/// A lab that is shown over HTTP, and where.
fn shown(scene: &str) -> (Lab, SocketAddr) {
    let lab = Lab::start_with(binary(), scene, &["--http", "127.0.0.1:0"]).unwrap();
    let url = lab.started().unwrap()["http"].as_str().unwrap().to_owned();
    let address = url.strip_prefix("http://").and_then(|url| url.strip_suffix('/')).unwrap();
    (lab, address.parse().unwrap())
}

/// Sends bytes; the status, the head and the body of the answer.
fn send(address: SocketAddr, request: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    (status, head.to_owned(), body.to_owned())
}

fn get(address: SocketAddr, path: &str) -> (u16, String, String) {
    send(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"))
}

/// An answer that is there.
fn value(address: SocketAddr, path: &str) -> Value {
    let (status, head, body) = get(address, path);
    assert_eq!(status, 200, "{path}: {body}");
    assert!(head.contains("content-type: application/json"), "{head}");
    assert!(head.contains("cache-control: no-store"), "{head}");
    serde_json::from_str(&body).unwrap()
}

#[test]
fn every_answer_is_what_the_command_prints() {
    let (mut lab, address) = shown(TWO_HOSTS);
    text_of(&mut lab, &["link", "r1>r2", "set", "loss=10%", "rate=10Mbit"]);
    ping(&lab, "10");
    for (path, words) in [
        ("links", &["links"][..]),
        ("links?sort=drops&limit=1", &["links", "--sort", "drops", "--count", "1"]),
        ("links?all=true", &["links", "--all"]),
        ("link?name=r1-r2", &["link", "r1-r2"]),
        ("link?name=r2%3Er1", &["link", "r2>r1"]),
        ("path?from=pc&to=server", &["path", "pc", "server"]),
        ("path?from=r2&to=2001:db8:20::10", &["path", "r2", "2001:db8:20::10"]),
        ("node?name=r1", &["node", "r1"]),
    ] {
        assert_eq!(value(address, &format!("/api/v1/{path}")), ask(&mut lab, words), "{path}");
    }
    // What docs/lab.md has jq show.
    assert!(value(address, "/api/v1/path?from=pc&to=server").get("delay").is_some());
    // Time goes on between the two, and hosts look for their neighbours.
    let mut answers = [Value::Null, Value::Null];
    let agree = wait_until("two answers of the same moment", LIMIT, || {
        answers = [value(address, "/api/v1/status"), ask(&mut lab, &["status"])];
        for answer in &mut answers {
            assert!(answer["runs"].take().is_string());
        }
        answers[0] == answers[1]
    });
    agree.unwrap_or_else(|error| panic!("{error}: {answers:#?}"));
    assert_eq!(answers[0]["hosts"][0]["name"], "pc");

    let nodes = value(address, "/api/v1/nodes");
    assert_eq!(nodes["total"], 2);
    for (at, name) in ["r1", "r2"].into_iter().enumerate() {
        assert_eq!(nodes["nodes"][at], ask(&mut lab, &["node", name]));
    }
    let page = value(address, "/api/v1/nodes?limit=1");
    assert_eq!(
        (&page["nodes"][0]["name"], page["nodes"].as_array().unwrap().len()),
        (&"r1".into(), 1)
    );
    let page = value(address, "/api/v1/nodes?limit=1&after=r1");
    assert_eq!(page["nodes"][0]["name"], "r2");
    let page = value(address, "/api/v1/nodes?after=r2");
    assert_eq!(page["nodes"], serde_json::json!([]));
}

#[test]
fn events_are_sent_once_to_who_asks_again() {
    let (mut lab, address) = shown(TWO_HOSTS);
    let events = follow_events(&mut lab);
    let seen = value(address, "/api/v1/events");
    let after = seen["after"].as_u64().unwrap();
    assert_eq!(seen["events"].as_array().unwrap().len() as u64, after);

    text_of(&mut lab, &["node", "r2", "down"]);
    let printed = |kind: &str| -> Vec<Value> {
        let lines = events.stdout();
        let all = lines.lines().filter_map(|line| serde_json::from_str(line).ok());
        all.filter(|event: &Value| event["event"] == kind).collect()
    };
    wait_until("what routing does", LIMIT, || printed("routing").len() == 2).unwrap();
    let new = value(address, &format!("/api/v1/events?after={after}"));
    let reported = |kind: &str| -> Vec<Value> {
        let all = new["events"].as_array().unwrap().iter();
        all.filter(|event| event["event"] == kind).cloned().collect()
    };
    assert_eq!(reported("node"), printed("node"));
    assert_eq!(reported("routing"), printed("routing"));
    assert_eq!(reported("link"), Vec::<Value>::new());
    let first = value(address, &format!("/api/v1/events?after={after}&limit=1"));
    assert_eq!(first["after"], after + 1);
    assert_eq!(first["events"][0]["event"], "node");
    let path = format!("/api/v1/events?after={}", new["after"]);
    assert_eq!(value(address, &path)["events"], serde_json::json!([]));
}

#[test]
fn the_map_of_a_large_network_is_a_part_of_it_around_hosts_and_load() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("internet.nigh");
    let made = Command::new(binary())
        .args(["lab", "gen", "--nodes", "20000", "--seed", "7"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(made.status.success());
    let scene = format!(
        "[lab]\nnetwork = \"{}\"\nrouting = \"valley-free\"\n\
         [[host]]\nname = \"pc\"\nattach = \"as20\"\naddress = \"20.0.0.10/24\"\n\
         [[host]]\nname = \"server\"\nattach = \"as900\"\naddress = \"30.0.0.10/24\"\n",
        file.display()
    );
    let (mut lab, address) = shown(&scene);
    ping(&lab, "3");
    let map = value(address, "/api/v1/map?limit=50&with=as500");
    assert_eq!(map["nodes_total"], 20_000);
    let nodes = map["nodes"].as_array().unwrap();
    assert!(nodes.len() <= 50, "{}", nodes.len());
    let has = |name: &str| nodes.iter().any(|node| node["name"] == name);
    assert!(has("as20") && has("as900") && has("as500"));
    // The whole path between the hosts, because it is the busiest part.
    let path = ask(&mut lab, &["path", "pc", "server"]);
    let hops = path["hops"].as_array().unwrap();
    assert!(hops.len() > 2, "{path}");
    for hop in hops {
        assert!(has(hop["node"].as_str().unwrap()), "{hop}");
    }
    for link in map["links"].as_array().unwrap() {
        assert!(has(link["from"].as_str().unwrap()) && has(link["to"].as_str().unwrap()), "{link}");
    }
    let (status, _, body) = get(address, "/api/v1/nodes?limit=10001");
    assert_eq!(status, 400);
    assert!(body.contains("at most 10000"), "{body}");
}

#[test]
fn what_is_not_understood_is_refused_with_a_sentence() {
    let (mut lab, address) = shown(TWO_HOSTS);
    for (path, status, sentence) in [
        ("/api/v1/path?from=pc", 400, "to=... is missing"),
        (
            "/api/v1/path?from=pcc&to=server",
            404,
            "there is no host and no node pcc: did you mean pc?",
        ),
        ("/api/v1/path?from=pc&to=9.9.9.9", 404, "no node of this network has 9.9.9.9"),
        ("/api/v1/link?name=r1", 400, "a link is two nodes"),
        ("/api/v1/link?name=r1-r9", 404, "there is no node r9"),
        ("/api/v1/node?name=r9", 404, "there is no node r9"),
        ("/api/v1/node?name=r2&up=false", 400, "there is no parameter up here"),
        ("/api/v1/nodes?after=r9", 404, "there is no node r9"),
        ("/api/v1/links?sort=name", 400, "bytes, packets, drops and number"),
        ("/api/v1/links?limit=-1", 400, "limit=-1 is invalid"),
        ("/api/v1/links?limit=1&limit=2", 400, "limit is given more than once"),
        ("/api/v1/map?limit=401", 400, "at most 400"),
        ("/api/v1/events?after=yesterday", 400, "after=yesterday is invalid"),
        ("/api/v1/status?%ff=1", 400, "there is no parameter"),
        ("/api/v1/nothing", 404, "there is no such page"),
        ("/../etc/passwd", 404, "there is no such page"),
    ] {
        let (code, head, body) = get(address, path);
        assert_eq!(code, status, "{path}: {body}");
        assert!(head.contains("content-type: application/json"), "{path}: {head}");
        let error: Value = serde_json::from_str(&body).unwrap();
        let printed = error["error"].as_str().unwrap();
        assert!(printed.contains(sentence), "{path}: {printed}");
    }
    let request = |line: &str, host: &str, more: &str| {
        format!("{line} HTTP/1.1\r\n{host}Connection: close\r\n{more}\r\n")
    };
    let status = "/api/v1/status";
    let long = format!("X: {}\r\n", "a".repeat(64 << 10));
    for (request, code) in [
        (request(&format!("GET {status}"), "Host: localhost\r\n", ""), 200),
        (request(&format!("GET {status}"), "Host: evil.example\r\n", ""), 421),
        (request("GET /", "Host: evil.example:80\r\n", ""), 421),
        (request(&format!("GET {status}"), "", ""), 400),
        (request(&format!("POST {status}"), "Host: localhost\r\n", "Content-Length: 0\r\n"), 405),
        (request(&format!("GET {status}"), "Host: localhost\r\n", &long), 431),
        ("what is this\r\n\r\n".to_owned(), 400),
    ] {
        let (status, _, body) = send(address, &request);
        assert_eq!(status, code, "{request:.80}: {body}");
    }
    // Nothing of it has changed anything.
    assert_eq!(ask(&mut lab, &["status"])["down"], serde_json::json!([]));
    assert_eq!(ask(&mut lab, &["status"])["touched"], serde_json::json!([]));
}

#[test]
fn no_thread_but_the_first_has_capabilities() {
    let (mut lab, address) = shown(TWO_HOSTS);
    value(address, "/api/v1/status");
    let tasks = format!("/proc/{}/task", lab.process().pid());
    let main = lab.process().pid().to_string();
    let mut names = Vec::new();
    for task in std::fs::read_dir(tasks).unwrap().map(Result::unwrap) {
        let status = std::fs::read_to_string(task.path().join("status")).unwrap();
        let field = |key: &str| {
            let line = status.lines().find(|line| line.starts_with(key)).unwrap();
            line.split_whitespace().nth(1).unwrap().to_owned()
        };
        names.push(field("Name:"));
        if task.file_name().to_string_lossy() != main {
            assert_eq!(field("CapPrm:"), "0000000000000000", "{names:?}");
            assert_eq!(field("CapEff:"), "0000000000000000", "{names:?}");
        }
    }
    assert!(names.contains(&"http".to_owned()), "{names:?}");
}

#[test]
fn an_address_in_use_is_reported_before_anything_is_made() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let scene = folder.path().join("scene.toml");
    std::fs::write(&scene, TWO_HOSTS).unwrap();
    let run = |http: &str| {
        let mut command = Command::new(binary());
        let output = command.args(["lab", "run", "--http", http]).arg(&scene).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, printed) = run(&address);
    assert_eq!(code, Some(1), "{printed}");
    assert!(
        printed.contains(&format!("cannot listen on {address}")) && printed.contains("--http"),
        "{printed}"
    );
    let (code, printed) = run("localhost:80");
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("expected an address with a port"), "{printed}");
}

#[test]
fn the_page_and_its_scripts_come_from_the_lab() {
    let (_lab, address) = shown(TWO_HOSTS);
    let (status, head, page) = get(address, "/");
    assert_eq!(status, 200);
    assert!(head.contains("content-type: text/html"), "{head}");
    let policy =
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';";
    assert!(head.contains(policy) && !head.contains("unsafe"), "{head}");
    // What is asked for begins where the page is.
    assert!(!page.contains("http://") && !page.contains("https://"));
    let (status, head, _) = get(address, "/map.css");
    assert!(status == 200 && head.contains("content-type: text/css"), "{head}");
    let folder = tempfile::tempdir().unwrap();
    for name in ["map-text.js", "map.js"] {
        assert!(page.contains(&format!("<script src=\"{name}\"")), "{page}");
        let (status, head, script) = get(address, &format!("/{name}"));
        assert!(status == 200 && head.contains("content-type: text/javascript"), "{head}");
        assert!(head.contains(policy), "{head}");
        let file = folder.path().join(name);
        std::fs::write(&file, script).unwrap();
        let checked = Command::new("node").arg("--check").arg(&file).output();
        let checked = checked.expect("nodejs, which `scripts/setup test` installs");
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    }
}
