//! `nigh mask` as people use it.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
};

const CAPTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gate/chat.pcap");

fn nigh(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nigh"));
    command.arg("mask").args(words).current_dir(folder).output().expect("nigh")
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_capture_is_masked_from_file_to_file_and_through_pipes() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    assert!(nigh(folder, &["key", "k"]).status.success());
    let words = ["file", "--policy", "research", "--key", "k", CAPTURE, "out.pcapng"];
    let done = nigh(folder, &words);
    assert!(done.status.success(), "{}", printed(&done));
    assert!(printed(&done).contains("packets masked"), "{}", printed(&done));
    let masked = fs::read(folder.join("out.pcapng")).expect("a capture");

    // The same through gzip, standard input and standard output.
    let mut command = Command::new(env!("CARGO_BIN_EXE_nigh"));
    command.args(["mask", "--json", "file", "--policy", "research", "--key", "k", "-", "-"]);
    command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("nigh");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut gzip = Command::new("gzip");
    let packed = gzip.args(["-c", CAPTURE]).output().expect("gzip").stdout;
    let writer = std::thread::spawn(move || stdin.write_all(&packed));
    let done = child.wait_with_output().expect("nigh");
    writer.join().expect("a thread").expect("written");
    assert!(done.status.success(), "{}", printed(&done));
    assert!(done.stdout == masked);
    let counts: serde_json::Value = serde_json::from_slice(&done.stderr).expect("JSON");
    assert_eq!(counts["frames"], counts["masked"]);

    // Another key gives other addresses, and one that is forgotten again others.
    assert!(nigh(folder, &["key", "other"]).status.success());
    for more in [&["--key", "other"][..], &["--forget"]] {
        let words = [&["file", "--policy", "research"], more, &[CAPTURE, "again.pcapng"]].concat();
        assert!(nigh(folder, &words).status.success());
        assert!(fs::read(folder.join("again.pcapng")).expect("a capture") != masked);
    }
}

#[test]
fn a_key_has_an_id_and_a_command_gives_it_as_a_file_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    assert!(nigh(folder, &["key", "k"]).status.success());
    let id = nigh(folder, &["key", "--id", "k"]);
    assert!(id.status.success(), "{}", printed(&id));
    let id = String::from_utf8(id.stdout).expect("text");
    assert!(id.len() == 9 && id.trim().bytes().all(|digit| digit.is_ascii_hexdigit()), "{id}");

    let masked = |more: &[&str]| {
        let words = [&["file", "--policy", "research", CAPTURE, "out.pcapng"], more].concat();
        let done = nigh(folder, &words);
        assert!(done.status.success(), "{}", printed(&done));
        fs::read(folder.join("out.pcapng")).expect("a capture")
    };
    let has = |capture: &[u8], text: &str| {
        capture.windows(text.len()).any(|window| window == text.as_bytes())
    };
    let by_file = masked(&["--key", "k"]);
    assert!(has(&by_file, &format!("; key {}", id.trim())));
    assert!(by_file == masked(&["--key-command", "cat 'k'"]));

    let rotated = masked(&["--key", "k", "--rotate", "hour"]);
    assert!(has(&rotated, &format!("; key {}, another one each hour", id.trim())));
    assert!(has(&rotated, "from here on key ") && !has(&by_file, "from here on key "));
}

#[test]
fn a_key_that_cannot_be_read_is_reported_and_nothing_is_masked() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (more, error) in [
        (
            &["--key-command", "nosuch secret"][..],
            "cannot run the key command nosuch: No such file",
        ),
        (&["--key-command", "false secret"], "the key command false gave no key (exit status: 1)"),
        (&["--key-command", "echo secret"], "what the key command echo writes holds no key"),
        (&["--key-ring", "nigh-test-none"], "no key \"nigh-test-none\" from the kernel's keyrings"),
    ] {
        let words = [&["file", "--policy", "research", CAPTURE, "out.pcapng"], more].concat();
        let done = nigh(folder, &words);
        assert_eq!(done.status.code(), Some(1), "{more:?}");
        assert!(printed(&done).contains(error), "{more:?}: {}", printed(&done));
        assert!(!printed(&done).contains("secret"), "{}", printed(&done));
        assert!(!folder.join("out.pcapng").exists());
    }
    // Standard input may be the capture, so the command reads nothing of it.
    fs::write(folder.join("k"), [7; 32]).expect("a key");
    let mut command = Command::new(env!("CARGO_BIN_EXE_nigh"));
    command.args(["mask", "file", "--policy", "research", "--key-command", "cat", CAPTURE, "-"]);
    let input = fs::File::open(folder.join("k")).expect("a key");
    let done = command.stdin(input).output().expect("nigh");
    assert!(
        printed(&done).contains("what the key command cat writes holds no key"),
        "{}",
        printed(&done)
    );

    let two = ["--key", "k", "--key-command", "cat k"];
    let done = nigh(folder, &[&["file", "--policy", "research", "in", "out"], &two[..]].concat());
    assert_eq!(done.status.code(), Some(2));
    assert!(printed(&done).contains("cannot be used with"), "{}", printed(&done));
}

#[test]
fn a_masked_capture_is_checked_against_its_original() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let words = ["file", "--policy", "research", "--forget", CAPTURE, "out.pcapng"];
    assert!(nigh(folder, &words).status.success());
    let done =
        nigh(folder, &["check", "out.pcapng", "--against", CAPTURE, "--html", "report.html"]);
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && text.contains("nothing was found"), "{text}");
    assert!(
        text.contains("groups that look alike") && text.contains("prefixes are kept"),
        "{text}"
    );
    let page = fs::read_to_string(folder.join("report.html")).expect("a page");
    assert!(page.contains("nothing was found") && page.contains("prefixes are kept"), "{page}");
    // The page is never written over a capture.
    fs::copy(CAPTURE, folder.join("in.pcap")).expect("a copy");
    for page in ["out.pcapng", "in.pcap"] {
        let before = fs::read(folder.join(page)).expect("a capture");
        let words = ["check", "out.pcapng", "--against", "in.pcap", "--html", page];
        let done = nigh(folder, &words);
        assert!(printed(&done).contains("give another file for the report"), "{}", printed(&done));
        assert!(fs::read(folder.join(page)).expect("it") == before);
    }
    let done = nigh(folder, &["check", CAPTURE, "--against", "none.pcap"]);
    assert_eq!(done.status.code(), Some(1));
    let done = nigh(folder, &["check", CAPTURE, "--against", CAPTURE, "--json"]);
    assert_eq!(done.status.code(), Some(4));
    // Also to who reads nothing of the report.
    let mut unread = Command::new(env!("CARGO_BIN_EXE_nigh"));
    unread.args(["mask", "check", CAPTURE, "--against", CAPTURE]).current_dir(folder);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let status = unread.stdout(writer).status().expect("nigh");
    assert_eq!(status.code(), Some(4));
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!(report["leaks"], true);
    assert_eq!(report["findings"][0]["what"], "ipv4");
    assert_eq!(report["anonymity"]["hosts_by"], "address");
    assert_eq!(report["injection"]["families"][0]["mapping"], "kept");
    assert_eq!(report["fingerprints"][0]["trace"], "tcp_timestamps");
}

#[test]
fn errors_come_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("bad.toml"), "about = \"\"\n[fields]\n\"ipv4.sorce\" = \"keep\"\n")
        .expect("a file");
    fs::write(folder.join("no.pcap"), "this is no capture").expect("a file");
    fs::copy(CAPTURE, folder.join("in.pcap")).expect("a copy");
    for (words, error) in [
        (&["file", "--policy", "research", "in.pcap", "out"][..], "needs a key: give `--key FILE`"),
        (
            &["file", "--policy", "nosuch", "in.pcap", "out"],
            "nigh has strict, research, flows, debug",
        ),
        (&["file", "--policy", "bad.toml", "in.pcap", "out"], "did you mean \"ipv4.source\"?"),
        (
            &["file", "--policy", "strict", "none.pcap", "out"],
            "cannot open none.pcap: No such file",
        ),
        (&["file", "--policy", "strict", "no.pcap", "out"], "no.pcap: neither pcap nor pcapng"),
        (&["file", "--policy", "strict", "in.pcap", "in.pcap"], "in.pcap is the capture itself"),
        (&["policy", "check", "bad.toml"], "there is no field \"ipv4.sorce\""),
        (&["key", "in.pcap"], "cannot create in.pcap: it exists; remove it or choose another name"),
    ] {
        let done = nigh(folder, words);
        assert_eq!(done.status.code(), Some(1), "{words:?}");
        assert!(printed(&done).contains(error), "{words:?}: {}", printed(&done));
    }
    // Nothing of it has touched the capture.
    assert!(fs::read(folder.join("in.pcap")).expect("a capture") == fs::read(CAPTURE).expect("it"));
}

#[test]
fn policies_are_listed_shown_checked_and_compiled() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let print = |words: &[&str]| {
        let done = nigh(folder, words);
        assert!(done.status.success(), "{}", printed(&done));
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    let list = print(&["policy", "list"]);
    assert!(
        ["strict", "research", "flows", "debug"].iter().all(|name| list.contains(name)),
        "{list}"
    );
    // What is shown is a policy again.
    fs::write(folder.join("mine.toml"), print(&["policy", "show", "research"])).expect("a file");
    assert_eq!(
        print(&["policy", "compile", "mine.toml"]),
        print(&["policy", "compile", "research"])
    );
    let check = print(&["policy", "check", "research"]);
    let line = check.lines().find(|line| line.contains("ipv4.source")).expect("a line");
    assert!(line.ends_with("Prefix"), "{line}");
    assert!(check.contains("Removed: ethernet.destination"), "{check}");
}

#[test]
fn a_packet_is_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = ["policy", "explain", "strict", CAPTURE, "--packet", "2"];
    let done = nigh(folder.path(), &words);
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{}", printed(&done));
    for part in ["Ethernet at byte 0", "ipv4.source", "-> 0.0.0.0  (removed)", "bytes are left"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let words = ["policy", "explain", "strict", CAPTURE, "--packet", "100000"];
    let done = nigh(folder.path(), &words);
    assert!(!done.status.success());
    assert!(printed(&done).contains("there is no packet 100000"), "{}", printed(&done));
}

#[test]
fn the_log_shows_who_masked_what() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    assert!(nigh(folder, &["key", "k"]).status.success());
    let words = ["file", "--policy", "research", "--key", "k", "--log", "log", CAPTURE, "out"];
    assert!(nigh(folder, &words).status.success());
    fs::write(folder.join("text"), "no capture").expect("written");
    let words = ["file", "--policy", "strict", "--log", "log", "text", "out"];
    assert!(!nigh(folder, &words).status.success());
    let log = fs::read_to_string(folder.join("log")).expect("a log");
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 4);
    let record = lines[0]["record"].as_str().expect("a record");
    let masked = fs::read(folder.join("out")).expect("a capture");
    assert!(record.contains("; key "), "{record}");
    assert!(!masked.is_empty() && lines[1]["counts"]["masked"].as_u64() > Some(0));
    assert!(lines[3]["error"].as_str().is_some_and(|it| it.contains("text")), "{log}");
    let key = fs::read_to_string(folder.join("k")).expect("a key");
    assert!(!log.contains(key.trim()));
}

#[test]
fn json_is_printed_where_programs_read_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let json = |words: &[&str]| {
        let done = nigh(folder, &[words, &["--json"]].concat());
        assert!(done.status.success(), "{words:?}: {}", printed(&done));
        serde_json::from_slice::<serde_json::Value>(&done.stdout)
            .unwrap_or_else(|error| panic!("{words:?}: {error}"))
    };
    let list = json(&["policy", "list"]);
    assert!(list.as_array().expect("rows").iter().any(|row| row["name"] == "research"));
    assert!(json(&["policy", "show", "research"])["fields"].is_object());
    let checked = json(&["policy", "check", "research"]);
    assert_eq!(checked["actions"]["ipv4.source"], "prefix");
    assert_eq!(checked["payload"], false);
    let compiled = json(&["policy", "compile", "strict"]);
    assert_eq!(compiled["sha256"].as_str().expect("a digest").len(), 64);
    let made = json(&["key", "k"]);
    assert_eq!(json(&["key", "--id", "k"])["id"], made["id"]);
    let done = json(&["file", "--policy", "strict", "--forget", CAPTURE, "out.pcapng"]);
    assert_eq!(done["frames"], done["masked"]);
}
