//! A job that panics has failed; the others go on.

use config::Problem;
use job::{
    Error, Job, Metrics, Node, Pulse, Registry, Running, Section, Service,
    file::{Document, Reader, Report},
    pulse::Beat,
};
use serde_json::{Value, json};
use std::{
    fmt,
    path::Path,
    sync::{Arc, Mutex},
};

/// What jobs did, in order.
type Log = Arc<Mutex<Vec<String>>>;

/// A job whose section is a word: where it panics.
struct Test(&'static str, Log);

/// Running, with a loop that beats when it is told to.
struct TestService {
    name: &'static str,
    log: Log,
    pulse: Pulse,
    beat: Beat,
}

impl TestService {
    fn log(&self, what: &str) {
        self.log.lock().unwrap().push(format!("{} {what}", self.name));
    }
}

impl Job for Test {
    type Config = String;
    type Opened = String;
    type Service = TestService;

    fn name(&self) -> &'static str {
        self.0
    }

    fn sections(&self) -> Vec<Section> {
        vec![Section::new::<String>(self.0)]
    }

    fn read(&self, file: &mut Reader<'_, '_>, _: &Node) -> Option<String> {
        file.section(self.0)?
    }

    fn problems(&self, word: &String) -> Vec<Problem> {
        assert_ne!(word, "problems");
        Vec::new()
    }

    async fn open(&self, word: String, _: bool) -> Result<String, Error> {
        assert_ne!(word, "open");
        Ok(word)
    }

    async fn start(&self, word: String) -> Result<TestService, Error> {
        assert_ne!(word, "start");
        let pulse = Pulse::default();
        let beat = pulse.beat("loop");
        Ok(TestService { name: self.0, log: self.1.clone(), pulse, beat })
    }
}

impl Service for TestService {
    type Config = String;
    type Request = String;
    type Prepared = String;

    fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    fn problems(&self) -> Vec<String> {
        Vec::new()
    }

    fn status(&self) -> Value {
        json!({ "name": self.name })
    }

    fn render(&self) -> String {
        format!("{}\n", self.name)
    }

    fn collect(&self, metrics: &mut Metrics<'_>) -> fmt::Result {
        metrics.gauge(&format!("nigh_{}", self.name), "Is there", 1)
    }

    async fn control(&self, request: String) -> Result<Value, Error> {
        match request.as_str() {
            "thread" => drop(panics::thread("part", || panic!("in a part"))?.join()),
            "task" => drop(panics::spawn(async { panic!("in a part") }).await),
            "call" => panic!("in a part"),
            _ => self.beat.beat(),
        }
        // A request waits for nothing of a job that has failed.
        if request != "good" { std::future::pending().await } else { Ok(true.into()) }
    }

    async fn prepare(&self, word: String) -> Result<String, Error> {
        assert_ne!(word, "prepare");
        Ok(word)
    }

    async fn commit(&self, word: &mut String) -> Result<(), Error> {
        assert_ne!(word, "commit");
        Ok(())
    }

    async fn finish(&self, word: String) {
        assert_ne!(word, "finish");
        self.log(&format!("has {word}"));
    }

    async fn roll_back(&self, word: String) {
        self.log(&format!("has not {word}"));
    }

    async fn stop(&self) {
        self.log("stop");
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// Jobs with their words, as the file has them.
fn configured(registry: &Registry, words: &[(&str, &str)]) -> job::Configured {
    let text: String = words.iter().map(|(job, word)| format!("{job} = {word:?}\n")).collect();
    let mut report = Report::new(Path::new("test.toml"));
    let document = Document::parse(text.as_bytes(), &mut report).unwrap();
    let mut reader = Reader::new(&document, registry.renamed());
    registry.read(&mut reader, &Node { name: "test".into(), state: "/nonexistent".into() })
}

/// Failures are for the whole process: each test has names of its own.
fn registry(names: &[&'static str], log: &Log) -> Registry {
    panics::install();
    names.iter().fold(Registry::default(), |all, name| all.with(Test(name, log.clone())))
}

async fn start(registry: &Registry, words: &[(&str, &str)]) -> Result<Running, Error> {
    configured(registry, words).open(false).await?.start(registry).await
}

#[test]
fn a_panic_on_any_thread_is_the_jobs_failure_alone() {
    run(async {
        let names = ["call", "task", "thread", "other"];
        let log = Log::default();
        let registry = registry(&names, &log);
        let running = start(&registry, &names.map(|name| (name, "good"))).await.unwrap();
        let running = Arc::new(running);
        let mut contained = std::pin::pin!(running.contain());
        for name in ["call", "task", "thread"] {
            let failed = running.control(name, name.into()).await.unwrap_err().to_string();
            assert!(
                failed.starts_with(&format!("{name}: failed: panicked at crates/job")),
                "{failed}"
            );
            assert!(failed.contains("in a part"), "{failed}");
            // What is left of it is stopped at once.
            let stopped = async {
                while *log.lock().unwrap() != [format!("{name} stop")] {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                () = &mut contained => panic!("one is left"),
                () = stopped => {}
            }
            log.lock().unwrap().clear();
            let state = running.of(name).await.unwrap();
            assert_eq!(
                state.status(),
                json!({ "failed": true, "healthy": false, "problems": [failed] })
            );
            assert_eq!(state.render(), format!("{failed}\n"));
        }
        assert_eq!(running.problems().len(), 3);
        assert_eq!(running.control("other", "good".into()).await.unwrap(), json!(true));
        assert_eq!(running.of("other").await.unwrap().status()["healthy"], true);
        // The watchdog waits for the loop of the other alone.
        assert_eq!(running.silent(), [""; 0]);
        assert_eq!(running.silent(), ["other (loop)"]);

        let words = names.map(|name| (name, "new"));
        let failed = running.reload(configured(&registry, &words)).await.unwrap();
        assert_eq!(failed, ["call", "task", "thread"]);
        running.drain().await;
        let of = running.clone();
        let text = job::metrics::text(move |metrics| of.collect(metrics)).unwrap();
        for line in [
            "nigh_job_panics_total{job=\"call\"} 1\n",
            "nigh_job_panics_total{job=\"other\"} 0\n",
            "nigh_other 1\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(!text.contains("nigh_call"), "{text}");
        running.stop().await;
        assert_eq!(*log.lock().unwrap(), ["other has new", "other stop"]);
    });
}

#[test]
fn when_all_have_failed_nothing_is_left() {
    run(async {
        let log = Log::default();
        let registry = registry(&["only"], &log);
        let running = start(&registry, &[("only", "good")]).await.unwrap();
        let (asked, ()) = tokio::join!(running.control("only", "call".into()), running.contain());
        assert!(asked.is_err());
        running.stop().await;
        assert_eq!(*log.lock().unwrap(), ["only stop"]);
    });
}

#[test]
fn a_panic_in_a_reload_is_that_of_a_job() {
    run(async {
        for (step, left, failing) in [
            ("prepare", "has not prepare", "first"),
            ("commit", "has not commit", "second"),
            ("finish", "has finish", "third"),
        ] {
            let (log, other) = (Log::default(), "beside");
            let registry = registry(&[other, failing], &log);
            let words = [(other, "good"), (failing, "good")];
            let running = start(&registry, &words).await.unwrap();
            let words = [(other, &*format!("{step} ")), (failing, step)];
            let reloaded = running.reload(configured(&registry, &words)).await;
            match reloaded {
                Ok(failed) => assert_eq!((step, failed), ("finish", vec![failing])),
                Err(error) => assert!(error.to_string().contains("panicked at"), "{error}"),
            }
            assert_eq!(*log.lock().unwrap(), [format!("{other} {left} ")]);
            assert_eq!(running.problems().len(), 1);
        }
    });
}

#[test]
fn a_panic_before_the_start_refuses_it() {
    run(async {
        for (step, name) in [("open", "opening"), ("start", "starting"), ("problems", "checked")] {
            let registry = registry(&[name], &Log::default());
            let configured = configured(&registry, &[(name, step)]);
            let error = match configured.problems().as_slice() {
                [problem] => problem.message.clone(),
                _ => start(&registry, &[(name, step)]).await.unwrap_err().to_string(),
            };
            assert!(error.contains("failed: panicked at"), "{step}: {error}");
        }
    });
}
