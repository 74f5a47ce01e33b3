//! Rules: one application is denied and the others pass, by the file, by what is given beside it, and by a
//! reload.

use super::{
    site::{EXTERNAL, INTERNAL, LIMIT, Site, count, exact},
    talk::Talk,
    web::{WEB, Web},
};
use crate::commandline::offered;
use socket2::{Domain, Protocol, Socket, Type};
use std::{
    net::UdpSocket,
    time::{Duration, Instant},
};
use testbed::{clients::noise, wait_until};
use wire::{IpProtocol, checksum::pseudo};

const NO_WEB: &str = "hold = true\nrefuse_for = \"0s\"\n[[gate.rule]]\nname = \"no-web\"\n\
                      application = [\"http\"]\naction = \"deny\"\n";

#[test]
fn one_application_is_denied_and_the_others_pass() {
    let site = Site::start(NO_WEB);
    let web = Web::start(&site);
    web.offer("page", b"a page");
    let page = || web.fetch(&site, "length", "page").is_some();
    assert!(!page(), "{}", site.state());
    Talk::open(&site.internal, &site.external, EXTERNAL).send(b"no web at all");
    let status = site.wait("a refusal", |status| count(&status["refused"], "http") >= 1);
    assert_eq!(count(&status["rules"][0], "count"), 1, "{status:#}");
    let flows = site.flows("http");
    assert!(flows.iter().all(|row| row["verdict"] == "reset" && row["rule"] == "no-web"));
    let [client, server] = ["client", "server"].map(|end| &flows[0]["flow"][end]);
    let why = site.ask(&["why", "tcp", client.as_str().unwrap(), server.as_str().unwrap()]);
    assert!(why.stdout.contains("no-web") && why.stdout.contains("http"), "{}", why.stdout);

    // What is given comes before the file; all is switched off at one stroke.
    site.ask(&["allow", "http"]);
    assert!(page(), "{}", site.state());
    let socket = site.nigh.socket();
    let words = ["nigh", "gate", "--socket", socket.to_str().unwrap(), "forget", "run"];
    // A busy daemon may answer too late for the shell.
    wait_until("the name of the rule", LIMIT, || offered(&words) == ["runtime-1"]).unwrap();
    site.ask(&["forget", "--all"]);
    assert!(!page(), "{}", site.state());
    site.ask(&["bypass", "on"]);
    assert!(page(), "{}", site.state());
    site.ask(&["bypass", "off"]);
    assert!(!page(), "{}", site.state());

    // A reload judges by the new file, and once more by the old one.
    site.reload("");
    assert!(page(), "{}", site.state());
    site.reload(NO_WEB);
    assert!(!page(), "{}", site.state());
    site.wait("exact counters", exact);
}

/// Requests that the server never reads do not hide those that it does.
#[test]
fn packets_with_a_wrong_checksum_hide_nothing() {
    const DECOYS: u64 = 50;
    let site = Site::start(
        "[[gate.rule]]\nname = \"no-sharing\"\napplication = [\"bittorrent\"]\naction = \"deny\"\n",
    );
    let server = site.external.enter(|| UdpSocket::bind((EXTERNAL, 6881))).unwrap();
    let client = site.internal.enter(|| UdpSocket::bind((INTERNAL, 0))).unwrap();
    client.connect((EXTERNAL, 6881)).unwrap();
    let raw = || Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::UDP));
    let raw = site.internal.enter(raw).unwrap();
    for number in 0..DECOYS {
        let payload = noise(number, 40);
        let [from, to] = [&client, &server].map(|socket| socket.local_addr().unwrap());
        let header = |check| [from.port(), to.port(), 8 + 40, check].map(u16::to_be_bytes).concat();
        let sum = pseudo(from.ip(), to.ip(), 8 + 40, IpProtocol::UDP).unwrap();
        let right = sum.bytes(&header(0)).bytes(&payload).finish();
        // Zero would say that there is none (RFC 768).
        let wrong = right.wrapping_add(1).max(1);
        raw.send_to(&[header(wrong), payload].concat(), &to.into()).unwrap();
        // Each is inspected before the next one comes.
        site.wait("a decoy", |status| count(&status["copies"], "bad_checksum") == number + 1);
    }
    assert_eq!(site.status()["flows"]["seen"], 0, "{}", site.state());
    client.send(b"d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:qe").unwrap();
    site.wait("the refusal", |status| count(&status["refused"], "bittorrent") == 1);
}

#[test]
fn a_file_is_denied_by_its_name() {
    let site = Site::start(
        "refuse_for = \"0s\"\n[[gate.file]]\nname = \"no-film\"\nnames = [\"*.avi\"]\n\
         action = \"deny\"\n[[gate.file]]\nname = \"no-archive\"\ntypes = [\"zip\"]\n\
         action = \"deny\"\n",
    );
    let web = Web::start(&site);
    let text = b"nothing but text ".repeat(10_000);
    let archive = [b"PK\x03\x04\x14\0\0\0\x08\0".as_slice(), &text].concat();
    for (name, content, passes) in [
        ("clean.bin", &text, true),
        ("Film.AVI", &text, false),
        ("archive.bin", &archive, false),
        ("clean.zip", &text, true),
    ] {
        web.offer(name, content);
        let got = web.fetch(&site, "length", name);
        assert_eq!(got.as_ref() == Some(content), passes, "{name}: {}", site.state());
    }
    site.wait("both denied", |status| count(&status["files"], "denied") == 2);
}

#[test]
fn a_limited_application_is_no_faster_than_its_rate() {
    let site = Site::start(
        "hold = true\n[[gate.limit]]\nname = \"slow\"\nto_internal = \"80mbit\"\n[[gate.rule]]\n\
         name = \"slow-web\"\napplication = [\"http\"]\naction = \"limit\"\nlimit = \"slow\"\n",
    );
    let web = Web::start(&site);
    let content = noise(8, 40_000_000);
    web.offer("large.bin", &content);
    let begin = Instant::now();
    let got = web.fetch(&site, "length", "large.bin");
    let took = begin.elapsed();
    assert!(got.as_ref() == Some(&content), "{}", site.state());
    // Four seconds at this rate, and the bucket is full at first. Without `hold` a busy machine may pass
    // all of it before the flow is known.
    assert!(took >= Duration::from_secs(3), "{took:?}: {}", site.state());
    let status = site.status();
    assert!(count(&status["limits"][0], "bytes_to_internal") > 30_000_000, "{status:#}");
}

#[test]
fn a_rule_of_a_group_is_for_its_hosts_alone() {
    let site = Site::start(
        "hold = true\nrefuse_for = \"0s\"\n[[gate.group]]\nname = \"students\"\n\
         hosts = [\"10.61.0.128/25\"]\n[[gate.rule]]\nname = \"no-web\"\n\
         application = [\"http\"]\ngroup = [\"students\"]\naction = \"deny\"\n",
    );
    let web = Web::start(&site);
    web.offer("page", b"a page");
    site.internal.check(&["ip", "address", "add", "10.61.0.130/24", "dev", "eth0"]).unwrap();
    let url = format!("http://{WEB}/length/page");
    for (address, passes) in [(INTERNAL, true), ("10.61.0.130", false)] {
        let got = site.client(&["curl", "-sS", "-m", "20", "--interface", address, &url]);
        assert_eq!(got, passes, "{address}: {}", site.state());
    }
    site.wait("one refusal", |status| count(&status["refused"], "http") == 1);
}

/// The time of day at another moment, such as `+1 hour`.
fn hour(site: &Site, when: &str) -> String {
    site.gate.check(&["date", "-d", when, "+%H:%M"]).unwrap().trim().to_owned()
}

/// No web and nothing that nobody can name between two times of day.
fn lessons(from: &str, to: &str) -> String {
    format!(
        "hold = true\nrefuse_for = \"0s\"\n[[gate.time]]\nname = \"lessons\"\nfrom = \"{from}\"\n\
         to = \"{to}\"\n[[gate.rule]]\nname = \"learn\"\napplication = [\"http\", \"unknown\"]\n\
         time = [\"lessons\"]\naction = \"deny\"\n"
    )
}

#[test]
fn a_rule_of_a_time_holds_within_it_and_begins_with_it() {
    let site = Site::start("");
    let web = Web::start(&site);
    web.offer("page", b"a page");
    let page = || web.fetch(&site, "length", "page").is_some();
    for (from, to, passes) in [("-2 hours", "-1 hour", true), ("-1 hour", "+1 hour", false)] {
        site.reload(&lessons(&hour(&site, from), &hour(&site, to)));
        assert_eq!(page(), passes, "{from}: {}", site.state());
    }
    // The next minute but for the last seconds of this one, in which it would begin too early.
    site.reload(&lessons(&hour(&site, "+75 seconds"), &hour(&site, "+2 hours")));
    assert!(page(), "{}", site.state());
    let mut talk = Talk::open(&site.internal, &site.external, EXTERNAL);
    // A flow of few bytes would be inspected for longer.
    (0..16).for_each(|_| talk.send(&b"before the lesson".repeat(10)));
    let verdict = |verdict: &str| site.flows("unknown").iter().any(|row| row["verdict"] == verdict);
    wait_until("the flow's name", LIMIT, || verdict("pass")).unwrap();
    wait_until("the lesson's beginning", LIMIT, || verdict("reset")).unwrap();
    assert!(!page(), "{}", site.state());
}
