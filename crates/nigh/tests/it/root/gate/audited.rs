//! The audit log of what passes: flows, files and plain-text chat, as lines in the form of
//! EVE and as IPFIX.

use super::{
    site::{EXTERNAL, INTERNAL, Site},
    web::Web,
};
use serde_json::Value;
use std::{net::Ipv4Addr, os::unix::fs::PermissionsExt, path::Path};
use testbed::{
    Namespace,
    clients::{Ngircd, Prosody, Script, noise},
    wait_until,
};

/// The lines of a log that are whole.
fn lines(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("eve.json")).unwrap_or_default();
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits until there is such a line, and returns it.
pub(super) fn line(
    site: &Site,
    folder: &Path,
    what: &str,
    wanted: impl Fn(&Value) -> bool,
) -> Value {
    let mut found = None;
    let done = wait_until(what, super::site::LIMIT, || {
        found = lines(folder).into_iter().find(&wanted);
        found.is_some()
    });
    assert!(done.is_ok(), "{what}: {:#?}\n{}", lines(folder), site.state());
    found.unwrap_or_default()
}

/// One who speaks in a room by ii, an IRC client made of files.
fn irc(host: &Namespace, home: &Path, nick: &str, text: &str) -> testbed::Process {
    let at = home.to_str().unwrap();
    let client = host.spawn(&["ii", "-s", EXTERNAL, "-i", at, "-n", nick]).unwrap();
    for (folder, line) in [("", "/j #room"), ("#room", text)] {
        let pipe = home.join(EXTERNAL).join(folder).join("in");
        wait_until("ii's pipe", super::site::LIMIT, || pipe.exists()).unwrap();
        std::fs::write(&pipe, format!("{line}\n")).unwrap();
    }
    client
}

#[test]
fn files_chat_and_flows_are_written_down_and_passwords_are_not() {
    let log = tempfile::tempdir().unwrap();
    let folder = log.path();
    // What passes before its flow is known is seen for sure only where it waits for that.
    let site = Site::start(&format!(
        "hold = true\n[gate.audit]\nfolder = \"{}\"\n[gate.audit.ipfix]\nfile = true\n",
        folder.display()
    ));
    let content = noise(17, 400_000);

    let web = Web::start(&site);
    web.offer("page.bin", &content);
    assert!(web.fetch(&site, "length", "page.bin").as_ref() == Some(&content));
    let file = |name: &'static str| {
        move |line: &Value| {
            line["event_type"] == "fileinfo"
                && line["fileinfo"]["filename"].as_str().is_some_and(|path| path.ends_with(name))
        }
    };
    let row = line(&site, folder, "the file of HTTP", file("page.bin"));
    assert_eq!((&row["src_ip"], &row["app_proto"]), (&EXTERNAL.into(), &"http".into()), "{row:#}");
    assert_eq!(row["fileinfo"]["size"], 400_000, "{row:#}");

    let served = tempfile::tempdir().unwrap();
    std::fs::write(served.path().join("report.bin"), &content).unwrap();
    let at = served.path().to_str().unwrap();
    let _ftp = Script::start(&site.external, "ftp_server.py", &[EXTERNAL, at]).unwrap();
    let url = format!("ftp://anonymous:hidden-word@{EXTERNAL}/report.bin");
    assert!(site.client(&["curl", "-s", "-S", "-m", "20", "-o", "/dev/null", &url]));
    let row = line(&site, folder, "the file of FTP", file("report.bin"));
    assert_eq!(row["src_ip"], EXTERNAL, "{row:#}");

    let _server = Ngircd::start(&site.external, EXTERNAL).unwrap();
    let home = tempfile::tempdir().unwrap();
    let _ann = irc(&site.internal, home.path(), "ann", "good evening");
    let has_text = |text: &'static str| {
        move |line: &Value| line["event_type"] == "chat" && line.to_string().contains(text)
    };
    let row = line(&site, folder, "the IRC message", has_text("good evening"));
    assert!(row.to_string().contains("#room") && row.to_string().contains("ann"), "{row:#}");

    let _xmpp = Prosody::start(&site.external, EXTERNAL, &["bob", "cid"]).unwrap();
    let mut bob = Script::start(
        &site.internal,
        "xmpp_client.py",
        &[EXTERNAL, "bob@test.example", "secret", "wait"],
    )
    .unwrap();
    let words = [EXTERNAL, "cid@test.example", "secret", "send", "bob@test.example", "good night"];
    Script::check(&site.internal, "xmpp_client.py", &words).unwrap();
    wait_until("the message", super::site::LIMIT, || bob.process().stdout().contains("good night"))
        .unwrap();
    let row = line(&site, folder, "the XMPP message", has_text("good night"));
    assert!(row.to_string().contains("cid@test.example"), "{row:#}");

    let web_flow = |line: &Value| line["event_type"] == "flow" && line["dest_port"] == 8080;
    let row = line(&site, folder, "the flow of HTTP", web_flow);
    assert_eq!(row["app_proto"], "http", "{row:#}");
    assert!(row["flow"]["bytes_toclient"].as_u64() >= Some(400_000), "{row:#}");

    let text = std::fs::read_to_string(folder.join("eve.json")).unwrap();
    // "\0cid\0secret" in BASE64 is what XMPP's PLAIN sends.
    for secret in ["hidden-word", "secret", "AGNpZABzZWNyZXQ"] {
        assert!(!text.contains(secret), "{secret}");
    }
    // A reader of other people's reads the same flow.
    let ipfix = folder.join("flows.ipfix");
    let words = ["tshark", "-r", ipfix.to_str().unwrap(), "-V"];
    let mut shown = String::new();
    let read = wait_until("the flow in IPFIX", super::site::LIMIT, || {
        shown = site.gate.check(&words).unwrap_or_default();
        shown.contains("http") && shown.contains("8080")
    });
    assert!(read.is_ok(), "{shown}");
}

/// A file that ends with its connection is whole in the audit, however soon that is.
#[test]
fn a_file_that_is_over_before_its_flow_is_known_is_written_down_whole() {
    let log = tempfile::tempdir().unwrap();
    let site = Site::start(&format!("[gate.audit]\nfolder = {:?}\n", log.path()));
    let web = Web::start(&site);
    let content = noise(3, 1000);
    for number in 0..10 {
        let name = format!("{number}.bin");
        web.offer(&name, &content);
        assert!(web.fetch(&site, "close", &name).as_ref() == Some(&content));
        let row = line(&site, log.path(), "the file", |line| {
            line["fileinfo"]["filename"].as_str().is_some_and(|path| path.ends_with(&name))
        });
        let file = &row["fileinfo"];
        assert_eq!((&file["size"], &file["state"]), (&1000.into(), &"CLOSED".into()), "{row:#}");
    }
}

/// Log and IPFIX do not show which hosts they were, but show that they were the same.
#[test]
fn addresses_have_other_names_in_a_log_that_maps_them() {
    let log = tempfile::tempdir().unwrap();
    let folder = log.path().join("log");
    let key = log.path().join("key");
    std::fs::write(&key, [7; 32]).unwrap();
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    let site = Site::start(&format!(
        "hold = true\n[gate.audit]\nfolder = {folder:?}\n\
         addresses = {{ mapping = \"crypto-pan\", key = {key:?} }}\n\
         [gate.audit.ipfix]\nfile = true\n"
    ));
    let web = Web::start(&site);
    web.offer("page.bin", b"0123456789");
    assert!(web.fetch(&site, "length", "page.bin").is_some());
    let _server = Ngircd::start(&site.external, EXTERNAL).unwrap();
    let home = tempfile::tempdir().unwrap();
    let words = format!("I am {INTERNAL} and talk to {EXTERNAL}");
    let _ann = irc(&site.internal, home.path(), "ann", &words);

    let printed = |line: &Value| line.to_string().contains("and talk to");
    let chat = line(&site, &folder, "the IRC message", printed);
    let web_flow = |line: &Value| line["event_type"] == "flow" && line["dest_port"] == 8080;
    let flow = line(&site, &folder, "the flow of HTTP", web_flow);
    let file = line(&site, &folder, "the file", |line| line["event_type"] == "fileinfo");
    let [internal, external] = [&flow["src_ip"], &flow["dest_ip"]].map(|ip| ip.as_str().unwrap());
    assert_eq!((&file["src_ip"], &file["dest_ip"]), (&flow["dest_ip"], &flow["src_ip"]));
    let same = format!("I am {internal} and talk to {external}");
    assert!(chat.to_string().contains(&same), "{chat:#}");

    let mapping = mask::mapping::CryptoPan::new(&[7; 32]);
    assert_eq!(mapping.map(EXTERNAL.parse().unwrap()).to_string(), external);
    let ipfix = folder.join("flows.ipfix");
    let octets = |ip: &str| ip.parse::<Ipv4Addr>().unwrap().octets();
    let has = |bytes: &[u8], ip: &str| bytes.windows(4).any(|four| four == octets(ip));
    let read = || std::fs::read(&ipfix).unwrap_or_default();
    wait_until("the flow in IPFIX", super::site::LIMIT, || has(&read(), external)).unwrap();
    let text = std::fs::read_to_string(folder.join("eve.json")).unwrap();
    for ip in [INTERNAL, EXTERNAL] {
        assert!(!text.contains(ip), "{ip}: {text}");
        assert!(!has(&read(), ip), "{ip}");
    }
}

#[test]
fn a_key_that_others_can_read_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let (key, file) = (folder.path().join("key"), folder.path().join("nigh.toml"));
    std::fs::write(&key, [7; 32]).unwrap();
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
    let text = format!(
        "[gate]\ninternal = [\"eth1\"]\n[gate.audit]\nfolder = \"/var/log/nigh\"\n\
         addresses = {{ mapping = \"ipcrypt-pfx\", key = {key:?} }}\n"
    );
    std::fs::write(&file, text).unwrap();
    let check = std::process::Command::new(env!("CARGO_BIN_EXE_nigh"))
        .args(["check", "-c"])
        .arg(&file)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&check.stderr);
    assert!(!check.status.success());
    assert!(printed.contains("gate.audit.addresses") && printed.contains("chmod 600"), "{printed}");
}
