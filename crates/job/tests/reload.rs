//! A reload is all or nothing over all jobs, whichever job fails at whichever step.

use config::Problem;
use job::{
    Capabilities, Configured, Error, Job, Metrics, Node, Pulse, Registry, ReloadError, Running,
    Service,
    file::{Document, Reader, Report, Severity},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    fmt,
    path::Path,
    sync::{Arc, Mutex},
};

/// The section of a test job.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Section {
    value: u32,
    #[serde(default)]
    fails: Fails,
}

/// The step at which a configuration fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Fails {
    #[default]
    Never,
    Open,
    Start,
    Prepare,
    Commit,
}

/// What jobs did, in order.
type Log = Arc<Mutex<Vec<String>>>;

/// A job that counts what it holds: each configuration that it prepares, and each that it commits.
struct Test {
    name: &'static [&'static str],
    log: Log,
}

struct Running1 {
    name: &'static str,
    log: Log,
    /// What is in force, what is committed beside it, and how many are prepared.
    state: Mutex<(u32, Option<u32>, u32)>,
    back: tokio::sync::Notify,
    pulse: Pulse,
}

impl Running1 {
    fn log(&self, what: &str) {
        self.log.lock().unwrap().push(format!("{} {what}", self.name));
    }
}

impl Job for Test {
    type Config = Section;
    type Opened = Section;
    type Service = Running1;

    fn name(&self) -> &'static str {
        self.name[0]
    }

    fn sections(&self) -> Vec<job::Section> {
        self.name.iter().map(|name| job::Section::new::<Section>(name)).collect()
    }

    fn renamed(&self) -> job::Renamed {
        match self.name[0] {
            "one" => &[("one.number", "one.value"), ("old", "one")],
            _ => &[],
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { start: &[job::Capability::CAP_BPF], keep: &[] }
    }

    fn read(&self, file: &mut Reader<'_, '_>, _: &Node) -> Option<Section> {
        file.section(self.name[0])?
    }

    fn problems(&self, config: &Section) -> Vec<Problem> {
        let key = format!("{}.value", self.name[0]);
        (config.value == 0).then(|| Problem::new(key, "must not be 0")).into_iter().collect()
    }

    async fn open(&self, config: Section, _: bool) -> Result<Section, Error> {
        self.log.lock().unwrap().push(format!("{} open", self.name[0]));
        if config.fails == Fails::Open { Err("cannot open".into()) } else { Ok(config) }
    }

    async fn start(&self, opened: Section) -> Result<Running1, Error> {
        if opened.fails == Fails::Start {
            return Err("cannot start".into());
        }
        let state = Mutex::new((opened.value, None, 0));
        Ok(Running1 {
            name: self.name[0],
            log: self.log.clone(),
            state,
            back: tokio::sync::Notify::new(),
            pulse: Pulse::default(),
        })
    }

    async fn close(&self, _: Section) {
        self.log.lock().unwrap().push(format!("{} close", self.name[0]));
    }
}

impl Service for Running1 {
    type Config = Section;
    type Request = u32;
    type Prepared = Section;

    fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    fn problems(&self) -> Vec<String> {
        Vec::new()
    }

    fn status(&self) -> Value {
        let state = self.state.lock().unwrap();
        json!({ "value": state.0, "committed": state.1, "prepared": state.2 })
    }

    async fn refresh(&self) {
        self.log("refresh");
    }

    fn render(&self) -> String {
        format!("{}\n", self.status())
    }

    fn collect(&self, _: &mut Metrics<'_>) -> fmt::Result {
        Ok(())
    }

    async fn control(&self, request: u32) -> Result<Value, Error> {
        if request == 0 { Err("0 is refused".into()) } else { Ok(json!(request + 1)) }
    }

    async fn prepare(&self, config: Section) -> Result<Section, Error> {
        if config.fails == Fails::Prepare {
            return Err("cannot prepare".into());
        }
        self.state.lock().unwrap().2 += 1;
        Ok(config)
    }

    async fn commit(&self, config: &mut Section) -> Result<(), Error> {
        // Some of it is done when it fails.
        self.state.lock().unwrap().1 = Some(config.value);
        tokio::task::yield_now().await;
        if config.fails == Fails::Commit { Err("cannot commit".into()) } else { Ok(()) }
    }

    async fn finish(&self, _: Section) {
        self.log("finish");
        let mut state = self.state.lock().unwrap();
        let committed = state.1.take().expect("what is finished was committed");
        *state = (committed, None, state.2 - 1);
    }

    async fn roll_back(&self, _: Section) {
        self.log("roll back");
        let mut state = self.state.lock().unwrap();
        *state = (state.0, None, state.2 - 1);
    }

    async fn drain(&self) {
        self.log("drain");
        if self.name == "one" {
            self.back.notified().await;
        }
    }

    async fn undrain(&self) {
        self.log("undrain");
        self.back.notify_waiters();
    }

    async fn stop(&self) {
        self.log("stop");
    }
}

const NAMES: [&str; 3] = ["one", "two", "three"];

fn registry(log: &Log) -> Registry {
    let job = |name| Test { name, log: log.clone() };
    Registry::default().with(job(&["one"])).with(job(&["two"])).with(job(&["three"]))
}

/// Reads a file; the findings where it is wrong.
fn read(registry: &Registry, text: &str) -> Result<Configured, Vec<String>> {
    let mut report = Report::new(Path::new("test.toml"));
    let document = Document::parse(text.as_bytes(), &mut report).unwrap();
    let mut reader = Reader::new(&document, registry.renamed());
    reader.sections(&registry.sections().map(|section| section.name).collect::<Vec<_>>());
    let node = Node { name: "test".into(), state: "/nonexistent".into() };
    let configured = registry.read(&mut reader, &node);
    report.findings = reader.into_findings();
    document.add_problems(configured.problems(), &mut report);
    report.finish();
    let errors = report.findings.iter().filter(|finding| finding.severity == Severity::Error);
    let errors: Vec<String> = errors.map(|it| format!("{}: {}", it.key, it.message)).collect();
    if errors.is_empty() { Ok(configured) } else { Err(errors) }
}

/// A file with all jobs, of which one may fail.
fn file(value: u32, fails: Option<(&str, &str)>) -> String {
    let section = |name: &&str| {
        let fails = fails.filter(|(job, _)| job == name).map_or("never", |(_, step)| step);
        format!("[{name}]\nvalue = {value}\nfails = \"{fails}\"\n")
    };
    NAMES.iter().map(section).collect()
}

async fn start(registry: &Registry, text: &str) -> Result<Running, Error> {
    read(registry, text).unwrap().open(false).await?.start(registry).await
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn status(running: &Running) -> Value {
    let mut state = serde_json::Map::new();
    running.status(&mut state);
    state.into()
}

fn in_force(value: u32) -> Value {
    // The last two keys are added to what the job reports.
    let state = json!({
        "value": value, "committed": null, "prepared": 0, "healthy": true, "problems": []
    });
    json!({ "one": state, "two": state, "three": state })
}

#[test]
fn each_jobs_failure_leaves_all_as_they_were() {
    run(async {
        for name in NAMES {
            for (step, message) in [("prepare", "cannot prepare"), ("commit", "cannot commit")] {
                let log = Log::default();
                let registry = registry(&log);
                let running = start(&registry, &file(1, None)).await.unwrap();
                log.lock().unwrap().clear();
                let bad = read(&registry, &file(2, Some((name, step)))).unwrap();
                let error = running.reload(bad).await.unwrap_err().to_string();
                assert_eq!(error, message, "{name}");
                assert_eq!(status(&running), in_force(1), "{name} fails to {step}");
                let log = log.lock().unwrap().clone();
                assert!(log.iter().all(|line| line.ends_with("roll back")), "{log:?}");
                // And what is good is applied still.
                let good = read(&registry, &file(3, None)).unwrap();
                running.reload(good).await.unwrap();
                assert_eq!(status(&running), in_force(3));
            }
        }
    });
}

#[test]
fn a_section_that_comes_or_goes_changes_nothing() {
    run(async {
        let registry = registry(&Log::default());
        let running = start(&registry, &file(1, None)).await.unwrap();
        let less = read(&registry, "[one]\nvalue = 2\n[three]\nvalue = 2\n").unwrap();
        let error = running.reload(less).await.unwrap_err();
        assert!(matches!(error, ReloadError::Section("two")));
        assert_eq!(status(&running), in_force(1));
    });
}

#[test]
fn a_stop_waits_for_a_reload() {
    run(async {
        for (fails, last_step) in [(None, "finish"), (Some(("three", "commit")), "roll back")] {
            let log = Log::default();
            let registry = registry(&log);
            let running = start(&registry, &file(1, None)).await.unwrap();
            log.lock().unwrap().clear();
            let new = read(&registry, &file(2, fails)).unwrap();
            // The stop begins while the first commit waits.
            let (reloaded, ()) = tokio::join!(running.reload(new), running.stop());
            assert_eq!(reloaded.is_ok(), fails.is_none());
            let log = log.lock().unwrap();
            let steps: Vec<&str> = log.iter().map(|line| line.split_once(' ').unwrap().1).collect();
            let expected = [[last_step; 3], ["stop"; 3]].concat();
            assert_eq!(steps, expected, "{log:?}");
        }
    });
}

#[test]
fn a_start_that_fails_leaves_nothing_behind() {
    run(async {
        let log = Log::default();
        let registry = registry(&log);
        assert!(start(&registry, &file(1, Some(("two", "open")))).await.is_err());
        let expected = ["three open", "two open", "three close"];
        assert_eq!(*log.lock().unwrap(), expected);
        log.lock().unwrap().clear();
        assert!(start(&registry, &file(1, Some(("two", "start")))).await.is_err());
        let expected = ["three open", "two open", "one open", "one stop", "three close"];
        assert_eq!(*log.lock().unwrap(), expected);
        log.lock().unwrap().clear();
        let opened = read(&registry, &file(1, None)).unwrap().open(false).await.unwrap();
        opened.close().await;
        let log = log.lock().unwrap();
        assert_eq!(log[3..], ["one close", "two close", "three close"]);
    });
}

#[test]
fn a_job_is_asked_by_its_noun() {
    run(async {
        let registry = registry(&Log::default());
        let running = start(&registry, "[two]\nvalue = 1\n").await.unwrap();
        assert_eq!(running.control("two", json!(4)).await.unwrap(), json!(5));
        let error = async |name: &str, request| {
            running.control(name, request).await.unwrap_err().to_string()
        };
        assert_eq!(error("two", json!(0)).await, "0 is refused");
        let malformed = error("two", json!("x")).await;
        assert!(malformed.starts_with("this is not a request: invalid type"), "{malformed}");
        let absent = "there is no section [one] in the configuration of this node";
        assert_eq!(error("one", json!(1)).await, absent);
        assert!(running.knows("one") && !running.knows("four"));
        assert!(running.get::<Running1>().is_some() && running.get::<Test>().is_none());
    });
}

#[test]
fn the_state_of_one_job_is_refreshed_before_it_is_shown() {
    run(async {
        let log = Log::default();
        let registry = registry(&log);
        let running = start(&registry, &file(1, None)).await.unwrap();
        log.lock().unwrap().clear();
        assert_eq!(status(&running), in_force(1));
        assert!(log.lock().unwrap().is_empty());
        let state = running.of("two").await.unwrap();
        assert_eq!(state.status(), in_force(1)["two"]);
        assert_eq!(*log.lock().unwrap(), ["two refresh"]);
        let error = running.of("four").await.err().unwrap().to_string();
        assert_eq!(error, "there is no section [four] in the configuration of this node");
    });
}

#[test]
fn an_old_key_is_refused_with_the_new_one_named() {
    let registry = registry(&Log::default());
    let errors = |text: &str| read(&registry, text).err().unwrap_or_default();
    // The new key is not missing: it is there, under its old name.
    let old = "one.number: `number` was renamed to `one.value`";
    assert_eq!(errors("[one]\nnumber = 5\n"), [old]);
    // Other mistakes of the section are reported with it, and other sections have their own keys.
    let unknown = "two.number: unknown key `number`: there are `value`, `fails`";
    let missing = "two.value: `value` is missing";
    let found = errors("[one]\nnumber = 5\nfails = \"always\"\n[two]\nnumber = 5\n");
    let always = "one.fails: unknown value `always`: there are `never`, `open`, `start`, `prepare`, `commit`";
    assert_eq!(found, [old, always, missing, unknown]);
    // So is a section's.
    assert_eq!(errors("[old]\nvalue = 1\n[two]\nvalue = 1\n"), ["old: `old` was renamed to `one`"]);
    assert_eq!(errors(""), [": no job is configured: add a section `[one]`, `[two]` or `[three]`"]);
}

#[tokio::test]
async fn after_undrain_no_job_is_drained() {
    let log = Log::default();
    let registry = registry(&log);
    let opened = read(&registry, &file(1, None)).unwrap().open(false).await.unwrap();
    let running = opened.start(&registry).await.unwrap();
    let undrain = async {
        tokio::task::yield_now().await;
        running.undrain().await;
    };
    tokio::join!(running.drain(), undrain);
    let log = log.lock().unwrap();
    let last = log.iter().rfind(|line| line.starts_with("two")).unwrap();
    assert_eq!(last, "two undrain", "{log:?}");
}
