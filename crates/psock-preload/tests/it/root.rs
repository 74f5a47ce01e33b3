//! Unmodified programs with the library in LD_PRELOAD: curl, iperf3 and rsync between two namespaces with
//! two links, and what becomes of those who come without psock.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;
use testbed::{End, Finished, Namespace, Process, link, wait_until};

/// Long enough for a machine that does other things as well.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Two namespaces with two links, and a key for both.
struct Stage {
    left: Namespace,
    right: Namespace,
    folder: TempDir,
}

impl Stage {
    fn new() -> Self {
        let (left, right) = (Namespace::new("left").unwrap(), Namespace::new("right").unwrap());
        for n in 1..=2 {
            link(
                End::new(&left, &format!("p{n}")).address(&format!("10.1.{n}.1/24")),
                End::new(&right, &format!("p{n}")).address(&format!("10.1.{n}.2/24")),
            )
            .unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        psock::PresharedKey::generate().unwrap().write(&folder.path().join("key")).unwrap();
        Self { left, right, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// What stands before a program's words: the library and what it is to do, by options of env(1).
    fn with(&self, settings: &[String]) -> Vec<String> {
        let test = std::env::current_exe().unwrap();
        let library = test.parent().unwrap().join("libpsock_preload.so");
        assert!(library.exists(), "{} is not there", library.display());
        let mut words = vec!["env".to_owned(), format!("LD_PRELOAD={}", library.display())];
        words.push("PSOCK_VERBOSE=yes".to_owned());
        words.extend_from_slice(settings);
        words
    }

    /// The words of a program that connects to a port over both links.
    fn client(&self, port: u16, words: &[&str]) -> Vec<String> {
        let settings = [
            format!("PSOCK_PATHS=10.1.1.1>10.1.1.2:{port},10.1.2.1>10.1.2.2:{port}"),
            format!("PSOCK_KEY={}", self.text("key")),
            format!("PSOCK_COUNTERS={}", self.text("counters")),
        ];
        [self.with(&settings), words.iter().map(|word| (*word).to_owned()).collect()].concat()
    }

    /// Runs it to its end.
    fn run(&self, port: u16, words: &[&str]) -> Finished {
        let words = self.client(port, words);
        let words = words.iter().map(String::as_str).collect::<Vec<_>>();
        self.left.run(&words, TIMEOUT).unwrap()
    }

    /// Starts a program that takes sessions at a port, and waits until it does.
    fn serve(&self, port: u16, words: &[&str]) -> Process {
        let settings = [format!("PSOCK_LISTEN={port}"), format!("PSOCK_KEY={}", self.text("key"))];
        let mut all = self.with(&settings);
        all.extend(words.iter().map(|word| (*word).to_owned()));
        let all = all.iter().map(String::as_str).collect::<Vec<_>>();
        let process = self.right.spawn(&all).unwrap();
        wait_until("the server", TIMEOUT, || {
            let list = self.right.check(&["ss", "-Htln"]).unwrap();
            list.lines().any(|line| line.contains(&format!(":{port} ")))
        })
        .unwrap_or_else(|error| panic!("{error}: {}", process.stderr()));
        process
    }

    /// What the clients' sessions have counted, each as a line of JSON.
    fn counters(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.path("counters")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Whether a session has carried bytes on both links.
    fn both_links_carried(&self) -> bool {
        let carried = |link: &serde_json::Value| {
            let count = |key: &str| link[key].as_u64().unwrap_or_default();
            count("bytes_sent") + count("bytes_received") > 0
        };
        self.counters().iter().any(|session| {
            let links = session["counters"]["connections"].as_array().unwrap();
            links.len() == 2 && links.iter().all(carried)
        })
    }
}

/// Bytes that do not repeat.
fn content(length: u32) -> Vec<u8> {
    (0..length).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn curl_gets_a_file_and_the_server_sees_the_real_address() {
    let stage = Stage::new();
    let body = content(30_000_000);
    write(&stage.path("www/file"), &body);
    let server = ["python3", "-u", "-m", "http.server", "-d", &stage.text("www"), "8000"];
    let server = stage.serve(8000, &server);
    let copy = stage.text("copy");
    let words = ["curl", "-sS", "-w", "%{remote_ip} %{local_ip}", "-o", &copy];
    let got = stage.run(8000, &[&words[..], &["http://10.1.1.2:8000/file"]].concat());
    assert!(got.success(), "{}{}", got.stderr, server.stderr());
    assert!(std::fs::read(&copy).unwrap() == body, "not the same bytes");
    assert_eq!(got.stdout, "10.1.1.2 10.1.1.1");
    wait_until("the server's line", TIMEOUT, || server.stderr().contains("GET /file")).unwrap();
    assert!(server.stderr().starts_with("10.1.1.1 - - "), "{}", server.stderr());
}

#[test]
fn who_has_no_key_or_comes_without_psock_gets_nothing() {
    let stage = Stage::new();
    write(&stage.path("www/file"), b"only for those with the key");
    let server = ["python3", "-u", "-m", "http.server", "-d", &stage.text("www"), "8000"];
    let server = stage.serve(8000, &server);
    let url = "http://10.1.1.2:8000/file";
    // A client without the library meets TLS, or what expects it.
    let curl = ["curl", "-sS", "--max-time", "20", "--http0.9"];
    let got = stage.left.run(&[&curl[..], &[url]].concat(), TIMEOUT).unwrap();
    assert!(!got.stdout.contains("only for"), "{}", got.stdout);
    // One with another key is told that connecting failed, and why.
    psock::PresharedKey::generate().unwrap().write(&stage.path("other")).unwrap();
    let mut words = stage.client(8000, &[&curl[..], &[url]].concat());
    words.insert(words.len() - curl.len() - 1, format!("PSOCK_KEY={}", stage.text("other")));
    let words = words.iter().map(String::as_str).collect::<Vec<_>>();
    let got = stage.left.run(&words, TIMEOUT).unwrap();
    assert!(!got.success() && got.stdout.is_empty(), "{}", got.stdout);
    assert!(got.stderr.contains("psock: "), "{}", got.stderr);
    // The program's own socket is on loopback now: who connects to it there is not given to it.
    let list = stage.right.check(&["ss", "-Htln", "src", "127.0.0.1"]).unwrap();
    let inner = list.split_whitespace().find(|word| word.starts_with("127.0.0.1:")).unwrap();
    let local = stage.right.run(&[&curl[..], &[&format!("http://{inner}/file")]].concat(), TIMEOUT);
    let local = local.unwrap();
    assert!(!local.success() && local.stdout.is_empty(), "{}", local.stdout);
    assert!(!server.stderr().contains("GET"), "{}", server.stderr());
    // One with the key still gets it.
    let got = stage.run(8000, &[&curl[..], &[url]].concat());
    assert_eq!(got.stdout, "only for those with the key", "{}", got.stderr);
}

#[test]
fn a_wrong_setting_is_reported_and_never_ends_in_plain_tcp() {
    let stage = Stage::new();
    let wrong = stage.with(&["PSOCK_PATHS=10.1.1.2".to_owned()]);
    let mut words = wrong.iter().map(String::as_str).collect::<Vec<_>>();
    words.extend(["curl", "-sS", "--max-time", "20", "http://10.1.1.2:8000/file"]);
    let got = stage.left.run(&words, TIMEOUT).unwrap();
    assert!(!got.success());
    assert!(got.stderr.contains("psock: PSOCK_PATHS: "), "{}", got.stderr);
    // Without a key, nobody has chosen that there is none.
    let none = stage.with(&["PSOCK_PATHS=10.1.1.2:8000".to_owned()]);
    let mut words = none.iter().map(String::as_str).collect::<Vec<_>>();
    words.extend(["curl", "-sS", "--max-time", "20", "http://10.1.1.2:8000/file"]);
    let got = stage.left.run(&words, TIMEOUT).unwrap();
    assert!(!got.success());
    assert!(got.stderr.contains("psock: give one of: `key`"), "{}", got.stderr);
}

#[test]
fn iperf3_measures_both_ways() {
    let stage = Stage::new();
    for more in [&["-n", "40M"][..], &["-n", "40M", "-R"], &["-n", "40M", "-P", "3"]] {
        let server = stage.serve(5201, &["iperf3", "-s", "-1"]);
        let got = stage.run(5201, &[&["iperf3", "-J", "-c", "10.1.1.2"], more].concat());
        let report: serde_json::Value = serde_json::from_str(&got.stdout).unwrap();
        let words = format!("{more:?}: {}{}", report["error"], server.stdout());
        assert!(got.success() && report["error"].is_null(), "{words}");
        let bytes = |key: &str| report["end"][key]["bytes"].as_f64().unwrap();
        assert!(bytes("sum_sent") >= 40e6, "{words}");
        // What is still under way when the sender is done is not counted by the receiver.
        assert!(bytes("sum_received") > 1e6, "{words}");
        assert_eq!(report["start"]["connected"][0]["remote_host"], "10.1.1.2");
        let server = server.finish(TIMEOUT).unwrap();
        assert!(server.stdout.contains("Accepted connection from 10.1.1.1"), "{}", server.stdout);
    }
    assert!(stage.both_links_carried(), "{:?}", stage.counters());
}

#[test]
fn rsync_copies_a_tree_to_and_from_a_daemon_that_forks() {
    let stage = Stage::new();
    write(&stage.path("from/large"), &content(20_000_000));
    for n in 0..50 {
        write(&stage.path(&format!("from/{}/small{n}", n % 7)), &content(n * 100));
    }
    std::fs::create_dir_all(stage.path("to")).unwrap();
    let config = format!(
        "use chroot = no\nuid = 0\ngid = 0\nreverse lookup = no\nhosts allow = 10.1.1.1\n\
         [tree]\npath = {}\nread only = no\n",
        stage.text("to")
    );
    write(&stage.path("rsyncd.conf"), config.as_bytes());
    let config = format!("--config={}", stage.text("rsyncd.conf"));
    let server =
        ["rsync", "--daemon", "--no-detach", "--port=8730", "--log-file=/dev/stderr", &config];
    let server = stage.serve(8730, &server);
    let url = "rsync://10.1.1.2:8730/tree/";
    for words in
        [["rsync", "-a", &stage.text("from/"), url], ["rsync", "-a", url, &stage.text("back/")]]
    {
        let got = stage.run(8730, &words);
        assert!(got.success(), "{words:?}: {}{}", got.stderr, server.stderr());
    }
    for copy in ["to", "back"] {
        let words = ["diff", "-r", &stage.text("from"), &stage.text(copy)];
        stage.left.check(&words).unwrap();
    }
    assert!(stage.both_links_carried(), "{:?}", stage.counters());
}

#[test]
fn a_program_whose_other_thread_waits_for_stdin_can_end() {
    let stage = Stage::new();
    let (program, pipe) = (stage.text("exit"), stage.text("pipe"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/exit.c");
    let source = source.to_str().unwrap();
    stage.left.check(&["cc", "-Wall", "-Werror", "-o", &program, source, "-lpthread"]).unwrap();
    stage.left.check(&["mkfifo", &pipe]).unwrap();
    let server = "import socket\n\
                  s = socket.create_server(('10.1.1.2', 9000))\n\
                  c = s.accept()[0]\n\
                  print(c.makefile().read(), end='', flush=True)";
    let server = stage.serve(9000, &["python3", "-c", server]);
    // Its stdin is open and brings nothing.
    let script = format!("exec {program} 10.1.1.2 9000 <>{pipe}");
    let ended = stage.run(9000, &["sh", "-c", &script]);
    assert!(ended.success(), "{}", ended.stderr);
    let server = server.finish(TIMEOUT).unwrap();
    assert_eq!(server.stdout, "the end\n", "{}", server.stderr);
}

#[test]
fn a_socket_that_cannot_listen_stays_what_it_was() {
    let stage = Stage::new();
    let program = "import socket\n\
                   def at():\n  \
                     s = socket.socket()\n  \
                     s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n  \
                     s.bind(('10.1.1.2', 9000))\n  \
                     return s\n\
                   one, other = at(), at()\n\
                   one.listen()\n\
                   try:\n  \
                     other.listen()\n\
                   except OSError as error:\n  \
                     print(error.strerror, other.getsockname())\n\
                   one.close()\n\
                   other.listen()\n\
                   print(other.getsockname())";
    let settings = ["PSOCK_LISTEN=9000".to_owned(), format!("PSOCK_KEY={}", stage.text("key"))];
    let mut words = stage.with(&settings);
    words.extend(["python3", "-c", program].map(str::to_owned));
    let words = words.iter().map(String::as_str).collect::<Vec<_>>();
    let said = stage.right.run(&words, TIMEOUT).unwrap();
    let address = "('10.1.1.2', 9000)";
    let expected = format!("Address already in use {address}\n{address}\n");
    assert_eq!(said.stdout, expected, "{}", said.stderr);
}
