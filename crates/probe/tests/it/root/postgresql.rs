//! The shared archive in Debian's PostgreSQL: every record gets there once, whatever happens to the server.
//!
//! Each test has a server of its own, in a temporary folder, on a Unix socket; the one with TLS in a
//! network namespace. `scripts/setup test` installs the package and leaves its service off.

use nix::{sys::signal::Signal, unistd::User};
use probe::{
    archive::{Archive, ArchiveConfig, FILE, PostgresqlConfig, Sending},
    record::{Bounded, Figures, Record, Series},
};
use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use tempfile::TempDir;
use testbed::{Namespace, Process, wait_until};
use tokio_postgres::{NoTls, SimpleQueryMessage};

/// 2026-01-01 00:00 UTC.
const BEGIN_NS: i64 = 1_767_225_600_000_000_000;
/// A busy machine takes its time.
const LIMIT: Duration = Duration::from_secs(120);

/// A server of the system's newest version, run by the user `postgres`.
struct Server {
    folder: TempDir,
    programs: PathBuf,
    process: Option<Process>,
}

impl Server {
    /// Makes the database files; does not start.
    fn new() -> Self {
        testbed::need_root();
        let versions = fs::read_dir("/usr/lib/postgresql").expect("the package postgresql");
        let newest = versions.flatten().map(|entry| entry.path()).max().expect("a version");
        let folder = TempDir::new().expect("a folder");
        let user = User::from_name("postgres").expect("users").expect("the user postgres");
        chown(folder.path(), Some(user.uid.as_raw()), Some(user.gid.as_raw())).expect("given away");
        let server = Self { folder, programs: newest.join("bin"), process: None };
        let mut initdb = server.command("initdb");
        initdb.args([
            "--no-sync",
            "--auth=trust",
            "--username=nigh",
            "--encoding=UTF8",
            "-D",
            "data",
        ]);
        let made = Process::start(initdb).expect("initdb").finish(LIMIT).expect("its end");
        assert!(made.success(), "{}{}", made.stdout, made.stderr);
        server
    }

    /// A program of PostgreSQL as the user who owns the folder.
    fn command(&self, program: &str) -> Command {
        let user = User::from_name("postgres").expect("users").expect("the user postgres");
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(self.folder.path()).env("LC_ALL", "C.UTF-8");
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
        command
    }

    /// A file in its folder that only it can read.
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("rights");
        let user = User::from_name("postgres").expect("users").expect("the user postgres");
        chown(&path, Some(user.uid.as_raw()), Some(user.gid.as_raw())).expect("given away");
        path
    }

    fn server(&self, settings: &[&str]) -> Command {
        let mut command = self.command("postgres");
        command.args(["-D", "data", "-k"]).arg(self.folder.path()).args(["-c", "fsync=off"]);
        for setting in settings {
            command.args(["-c", setting]);
        }
        command
    }

    fn start(&mut self) {
        let command = self.server(&["listen_addresses="]);
        self.process = Some(Process::start(command).expect("a server"));
        self.wait();
    }

    /// Until it answers.
    fn wait(&self) {
        wait_until("the server answers", LIMIT, || self.ask("SELECT 1").is_some())
            .expect("a server");
    }

    /// It dies at once and recovers at the next start (SIGQUIT is PostgreSQL's immediate shutdown).
    fn crash(&mut self) {
        let process = self.process.take().expect("a server");
        process.signal(Signal::SIGQUIT).expect("a signal");
        process.finish(LIMIT).expect("its end");
    }

    /// Asks in a connection of its own: the first row's values.
    fn ask(&self, sql: &str) -> Option<Vec<String>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let (client, connection) = self.settings().connect(NoTls).await.ok()?;
            let task = tokio::spawn(connection);
            let rows = client.simple_query(sql).await.ok()?;
            drop(client);
            let _ = task.await;
            rows.into_iter().find_map(|row| match row {
                SimpleQueryMessage::Row(row) => {
                    let values = (0..row.len()).map(|n| row.get(n).unwrap_or("").to_owned());
                    Some(values.collect())
                }
                _ => None,
            })
        })
    }

    fn settings(&self) -> tokio_postgres::Config {
        let mut config = tokio_postgres::Config::new();
        config.host_path(self.folder.path()).user("nigh").dbname("postgres");
        config
    }

    /// Records in the table and different numbers of them, when there is a table.
    fn count(&self) -> Option<(u64, u64)> {
        let row = self.ask("SELECT count(*), count(DISTINCT (archive, id)) FROM nigh.record")?;
        Some((row.first()?.parse().ok()?, row.get(1)?.parse().ok()?))
    }

    /// Until so many records are in the table, each once.
    fn wait_for(&self, count: u64, archive: &Archive) {
        let all = || self.count() == Some((count, count));
        let waited = wait_until("all records are there", LIMIT, all);
        waited
            .unwrap_or_else(|error| panic!("{error}: {:?}, {:?}", self.count(), archive.status()));
    }

    fn config(&self) -> ArchiveConfig {
        let connection = format!("host={} user=nigh dbname=postgres", self.folder.path().display());
        config(PostgresqlConfig { connection, password_file: None, authority: None })
    }
}

fn config(postgresql: PostgresqlConfig) -> ArchiveConfig {
    let keep = Duration::ZERO;
    let postgresql = Some(postgresql);
    let config = ArchiveConfig { keep, keep_hours: keep, keep_days: keep, ..Default::default() };
    ArchiveConfig { postgresql, ..config }
}

fn open(folder: &TempDir, config: &ArchiveConfig) -> Archive {
    assert_eq!(config.problems(), []);
    Archive::open(folder.path(), config).expect("an archive")
}

fn ping(n: i64, reason: Option<&str>) -> Record {
    let median = Bounded { estimate_ns: 1000 + n, low_ns: Some(900 + n), high_ns: None };
    let series = Series { sent: 10, lost: 1, median: Some(median), ..Series::default() };
    Record {
        at_ns: BEGIN_NS + n * 1_000_000_000 + 123_456_789,
        lasted_ns: 5,
        from: "prague".to_owned(),
        to: "brno\twith\\odd\nname".to_owned(),
        test: "mesh".to_owned(),
        figures: match reason {
            Some(reason) => Figures::Failed { reason: reason.to_owned() },
            None => Figures::Ping(series),
        },
    }
}

fn put(archive: &Archive, range: std::ops::Range<i64>) {
    for n in range {
        archive.put(&ping(n, None));
    }
    assert!(archive.flush());
}

fn sending(archive: &Archive) -> Sending {
    archive.status().postgresql.expect("a shared archive")
}

#[test]
fn records_arrive_once_each_and_whole_while_the_server_comes_and_goes() {
    let mut server = Server::new();
    let folder = TempDir::new().expect("a folder");
    // It is not there yet: nothing waits for it.
    let archive = open(&folder, &server.config());
    put(&archive, 0..500);
    wait_until("the error is reported", LIMIT, || sending(&archive).error.is_some())
        .expect("an error");
    server.start();
    server.wait_for(500, &archive);
    put(&archive, 500..3000);
    server.wait_for(3000, &archive);
    server.crash();
    put(&archive, 3000..6000);
    server.start();
    server.wait_for(6000, &archive);
    let well = || sending(&archive) == Sending { sent: 6000, ..Sending::default() };
    wait_until("all is sent", LIMIT, well).expect("all is sent");
    let row = server.ask(
        "SELECT station, target, test, kind, at AT TIME ZONE 'UTC', at_ns, lasted_ns, \
         figures->'median'->>'estimate_ns' FROM nigh.record ORDER BY id LIMIT 1 OFFSET 4242",
    );
    let expected = [
        "prague",
        "brno\twith\\odd\nname",
        "mesh",
        "ping",
        "2026-01-01 01:10:42.123456",
        "1767229842123456789",
        "5",
        "5242",
    ];
    assert_eq!(row.expect("a row"), expected);
    let checks = server.ask(
        "SELECT count(DISTINCT at_ns), min(at_ns), max(at_ns), count(DISTINCT archive) FROM nigh.record",
    );
    let last = (BEGIN_NS + 5999 * 1_000_000_000 + 123_456_789).to_string();
    let first = (BEGIN_NS + 123_456_789).to_string();
    assert_eq!(checks.expect("a row"), ["6000", first.as_str(), last.as_str(), "1"]);
}

#[test]
fn a_server_that_dies_within_a_copy_gets_every_record_once() {
    let mut server = Server::new();
    server.start();
    let folder = TempDir::new().expect("a folder");
    let archive = open(&folder, &server.config());
    put(&archive, 0..1);
    server.wait_for(1, &archive);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    for round in 0..2 {
        // A COPY waits for this lock, with its records in progress.
        let client = runtime.block_on(async {
            let (client, connection) = server.settings().connect(NoTls).await.expect("a client");
            tokio::spawn(connection);
            client.batch_execute("BEGIN; LOCK TABLE nigh.record").await.expect("a lock");
            client
        });
        put(&archive, 1 + round * 1000..1 + (round + 1) * 1000);
        let copying = "SELECT 1 FROM pg_stat_activity \
                       WHERE query LIKE 'COPY nigh.record%' AND wait_event_type = 'Lock'";
        wait_until("a COPY waits", LIMIT, || server.ask(copying).is_some()).expect("a COPY");
        server.crash();
        drop(client);
        server.start();
        server.wait_for(1 + (round as u64 + 1) * 1000, &archive);
    }
    // It took all, and died before we could keep in mind that it did: as if nothing had been sent.
    drop(archive);
    let connection = rusqlite::Connection::open(folder.path().join(FILE)).expect("the database");
    connection.execute("UPDATE mark SET through = 7", ()).expect("an old mark");
    drop(connection);
    let archive = open(&folder, &server.config());
    put(&archive, 2001..2011);
    server.wait_for(2011, &archive);
    assert_eq!(sending(&archive).refused, 0);
}

#[test]
fn old_copies_do_not_give_numbers_again_and_what_the_server_refuses_stops_nothing() {
    let mut server = Server::new();
    server.start();
    let folder = TempDir::new().expect("a folder");
    let archive = open(&folder, &server.config());
    put(&archive, 0..10);
    server.wait_for(10, &archive);
    drop(archive);
    let file = folder.path().join(FILE);
    let old = fs::read(&file).expect("the database");
    let archive = open(&folder, &server.config());
    put(&archive, 10..20);
    server.wait_for(20, &archive);
    drop(archive);
    // Somebody brings the old copy back.
    fs::write(&file, old).expect("an old copy");
    let archive = open(&folder, &server.config());
    let agreed = || rows(&file, "SELECT through FROM mark WHERE name = 'postgresql'") == 20;
    wait_until("it is seen", LIMIT, agreed).expect("it is seen");
    put(&archive, 20..30);
    server.wait_for(30, &archive);
    // PostgreSQL's jsonb has no NUL; everything around such a record arrives.
    for n in 30..100 {
        archive.put(&ping(n, (n == 61).then_some("a \0 in it")));
    }
    assert!(archive.flush());
    server.wait_for(99, &archive);
    wait_until("it is counted", LIMIT, || sending(&archive).refused == 1).expect("counted");
    assert_eq!(sending(&archive).error, None);
    assert_eq!(rows(&file, "SELECT count(*) FROM record"), 90);
}

/// A number from our own database.
fn rows(file: &Path, sql: &str) -> i64 {
    let connection = rusqlite::Connection::open(file).expect("the database");
    connection.query_row(sql, (), |row| row.get(0)).expect("a number")
}

#[test]
fn over_a_network_it_is_tls_with_the_right_authority_and_a_password_from_a_file() {
    let mut server = Server::new();
    let key = rcgen::KeyPair::generate().expect("a key");
    let named = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
    let certificate = named.self_signed(&key).expect("a certificate");
    let authority = server.write("server.crt", &certificate.pem());
    let key = server.write("server.key", &key.serialize_pem());
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("another");
    let other = server.write("other.crt", &other.cert.pem());
    server.write("data/pg_hba.conf", "local all all trust\nhostssl all all all scram-sha-256\n");
    let namespace = Namespace::new("postgres").expect("a namespace");
    let names = [("ssl_cert_file", &authority), ("ssl_key_file", &key)];
    let [certificate, key] = names.map(|(name, path)| format!("{name}={}", path.display()));
    let command = server.server(&["listen_addresses=127.0.0.1", "ssl=on", &certificate, &key]);
    server.process = Some(namespace.start(command).expect("a server"));
    server.wait();
    server.ask("ALTER USER nigh PASSWORD 'pass-word-of-nigh'");
    let right = server.write("password", "pass-word-of-nigh\n");
    let wrong = server.write("wrong", "wrong-password\n");
    let readable = server.write("readable", "pass-word-of-nigh\n");
    fs::set_permissions(&readable, fs::Permissions::from_mode(0o644)).expect("rights");
    let attempt = |password: &Path, authority: &Path| {
        config(PostgresqlConfig {
            connection: "host=localhost hostaddr=127.0.0.1 user=nigh dbname=postgres".to_owned(),
            password_file: Some(password.to_owned()),
            authority: Some(authority.to_owned()),
        })
    };
    namespace.enter(|| {
        for (config, why) in [
            (attempt(&right, &other), "certificate"),
            (attempt(&wrong, &authority), "password authentication failed"),
            (attempt(&readable, &authority), "others than its owner can use"),
            (
                attempt(Path::new("/nonexistent"), &authority),
                "the password: cannot open /nonexistent",
            ),
        ] {
            let folder = TempDir::new().expect("a folder");
            let archive = open(&folder, &config);
            let error = || sending(&archive).error.is_some();
            wait_until("the error is reported", LIMIT, error).expect("an error");
            let status = format!("{:?}", archive.status());
            assert!(status.contains(why), "{why}: {status}");
            assert!(
                !status.contains("pass-word") && !status.contains("wrong-password"),
                "{status}"
            );
        }
        let folder = TempDir::new().expect("a folder");
        let archive = open(&folder, &attempt(&right, &authority));
        put(&archive, 0..10);
        server.wait_for(10, &archive);
    });
}
