//! A session that learns a link-state database, on tokio.

use crate::{
    clock::now,
    config::{BgpUpstream, Password},
    driver::{Driver, SHUTDOWN_TEXT},
    fsm::{Event, Purpose},
    observed::{Counters, State},
};
use tokio::sync::{mpsc, oneshot};

/// What happens on the session.
#[derive(Clone, Debug, PartialEq)]
pub enum Learned {
    /// It is established: the speaker is about to advertise its whole database.
    Up,
    /// The bodies of UPDATEs.
    Updates(Vec<Vec<u8>>),
    /// It is lost, with the reason.
    Down(String),
    /// An attempt to open it failed, with the reason.
    Failed(String),
}

/// One session with a speaker; dropping it ends the session at once.
#[derive(Debug)]
pub struct Learner {
    stop: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<()>,
}

impl Learner {
    /// Starts a session that reconnects for ever. Every event goes into `sender`; while that is full, the
    /// speaker is not read from. Must be called on a tokio runtime.
    pub fn start(
        config: &BgpUpstream,
        port: u16,
        password: Option<Password>,
        sender: mpsc::Sender<Learned>,
    ) -> Self {
        let driver = Driver::new(config, password, port, Purpose::LearnLinkState);
        let (stop, stopped) = oneshot::channel();
        let task = panics::spawn(run(driver, config.name.clone(), sender, stopped));
        Self { stop: Some(stop), task }
    }

    /// Sends Cease / Administrative Shutdown and ends.
    pub async fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        let _ = (&mut self.task).await;
    }
}

impl Drop for Learner {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(
    mut driver: Driver,
    name: String,
    sender: mpsc::Sender<Learned>,
    mut stop: oneshot::Receiver<()>,
) {
    driver.fsm.handle(Event::Start, now());
    let (mut shown, mut problem) = (State::Idle, None);
    loop {
        let Counters { established, lost, .. } = driver.fsm.counters();
        driver.act().await;
        tokio::select! {
            biased;
            _ = &mut stop => break,
            () = driver.step() => {}
        }
        let (state, counters) = (driver.fsm.state(), driver.fsm.counters());
        let updates = driver.fsm.learned();
        let mut news = Vec::new();
        if counters.established > established {
            news.push(Learned::Up);
        }
        if !updates.is_empty() {
            news.push(Learned::Updates(updates));
        }
        let why = driver.fsm.problem();
        if counters.lost > lost {
            news.push(Learned::Down(why.clone().unwrap_or_default()));
        } else if matches!(state, State::Idle | State::Active) && why != problem {
            news.extend(why.clone().map(Learned::Failed));
        }
        if state != shown {
            let because = why.as_deref().unwrap_or_default();
            tracing::info!(speaker = %name, from = %shown, to = %state, problem = because, "session");
        }
        (shown, problem) = (state, why);
        for item in news {
            tokio::select! {
                biased;
                _ = &mut stop => return farewell(driver).await,
                sent = sender.send(item) => if sent.is_err() {
                    return farewell(driver).await;
                }
            }
        }
    }
    farewell(driver).await;
}

async fn farewell(mut driver: Driver) {
    driver.fsm.handle(Event::Stop(SHUTDOWN_TEXT), now());
    driver.act().await;
}
