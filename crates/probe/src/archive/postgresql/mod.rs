//! The shared archive of many stations: records go to PostgreSQL by COPY.
//!
//! The spool is our own database: what is beyond its mark is still to be sent, and stays until it was. A
//! COPY is one statement, so a batch arrives whole or not at all, and batches go in the order of the
//! records' numbers. So the largest number that the server has of this archive says up to where all is
//! there. It is asked at each new connection: also where a server died after it took a batch and before it
//! confirmed it, nothing is sent twice and nothing is missing. The primary key, archive and number, holds
//! whatever happens.

mod config;
mod spool;
mod tls;

pub use config::PostgresqlConfig;

use super::status::Counters;
use config::needs_tls;
use futures_util::SinkExt;
use spool::{Batch, Spool};
use std::{
    error::Error,
    io::Cursor,
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};
use tls::Tls;
use tokio::sync::{Notify, watch};
use tokio_postgres::{Client, NoTls};

/// Most records of a COPY.
const BATCH: usize = 2000;
/// How long a failed connection or batch is left alone, at first and at most.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(60)];
/// How often to look for new records without a notification.
const LOOK: Duration = Duration::from_secs(10);
/// How long the server may take for a statement or a batch.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Sends in a thread of its own; dropping it ends that, and what is not sent stays in the spool.
#[derive(Debug)]
pub(super) struct Sender {
    wake: Arc<Notify>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Sender {
    /// Begins to send what is beyond the mark in the database at `path`.
    pub(super) fn start(
        path: &Path,
        config: &PostgresqlConfig,
        counters: Arc<Counters>,
    ) -> std::io::Result<Self> {
        counters.sending();
        let wake = Arc::new(Notify::new());
        let (stop, stopped) = watch::channel(false);
        let task = Task {
            path: path.to_owned(),
            config: config.clone(),
            counters,
            wake: wake.clone(),
            most: BATCH,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .on_thread_start(panics::adopt())
            .enable_all()
            .build()?;
        let thread = panics::thread("archive-pg", move || runtime.block_on(task.run(stopped)))?;
        Ok(Self { wake, stop, thread: Some(thread) })
    }

    /// Says that there are new records, when it is called.
    pub(super) fn waker(&self) -> Arc<Notify> {
        self.wake.clone()
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic was reported by its thread.
            let _ = thread.join();
        }
    }
}

/// What the thread does.
struct Task {
    path: PathBuf,
    config: PostgresqlConfig,
    counters: Arc<Counters>,
    wake: Arc<Notify>,
    /// Records of the next batch at most: fewer when the server refuses some.
    most: usize,
}

impl Task {
    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let mut stop = pin!(async move {
            // When the sender is gone it has been stopped, too.
            let _ = stopped.wait_for(|stop| *stop).await;
        });
        let mut pause = PAUSES[0];
        loop {
            panics::point("archive-pg");
            let sent = self.counters.sent();
            let error = tokio::select! {
                error = self.session() => error,
                () = &mut stop => return,
            };
            // One that got something done begins again.
            if self.counters.sent() > sent {
                pause = PAUSES[0];
            }
            self.counters.sending_error(with_causes(&*error));
            self.count();
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = &mut stop => return,
            }
            pause = (pause * 2).min(PAUSES[1]);
        }
    }

    /// How much waits while the server is away.
    fn count(&self) {
        let count = || {
            let spool = Spool::open(&self.path)?;
            Ok::<_, rusqlite::Error>(spool.last()?.saturating_sub(spool.mark()?).unsigned_abs())
        };
        // What cannot be read now is counted next time.
        if let Ok(count) = count() {
            self.counters.unsent(count);
        }
    }

    /// Sends until something goes wrong.
    async fn session(&mut self) -> Box<dyn Error> {
        loop {
            // A damaged database is set aside: the new one is another archive.
            let begun = self.counters.begun();
            let result = async {
                let spool = Spool::open(&self.path)?;
                let client = self.connect().await?;
                let mut mark = agree(&client, &spool).await?;
                while self.counters.begun() == begun {
                    self.counters.unsent(spool.last()?.saturating_sub(mark).unsigned_abs());
                    match spool.batch(mark, self.most)? {
                        Some(batch) => mark = self.send(&client, &spool, &batch).await?,
                        None => {
                            self.counters.sending_well();
                            self.rest(&client).await?;
                        }
                    }
                }
                Ok::<(), Box<dyn Error>>(())
            };
            if let Err(error) = result.await {
                return error;
            }
        }
    }

    /// Until there may be something to send; that the server is gone is seen meanwhile.
    async fn rest(&self, client: &Client) -> Result<(), Box<dyn Error>> {
        let woken = tokio::time::timeout(LOOK, self.wake.notified()).await;
        if woken.is_err() {
            within(client.simple_query("")).await?;
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Client, Box<dyn Error>> {
        let settings = self.config.settings()?;
        let client = match &self.config.authority {
            Some(authority) if needs_tls(&settings) => {
                let (client, connection) = within(settings.connect(Tls::new(authority)?)).await?;
                tokio::spawn(connection);
                client
            }
            _ => {
                let (client, connection) = within(settings.connect(NoTls)).await?;
                tokio::spawn(connection);
                client
            }
        };
        Ok(client)
    }

    /// Sends a batch and gives the new mark. Where the server refuses the data, fewer are tried, and one by
    /// itself that it refuses is counted and passed over.
    async fn send(
        &mut self,
        client: &Client,
        spool: &Spool,
        batch: &Batch,
    ) -> Result<i64, Box<dyn Error>> {
        match within(copy(client, batch)).await {
            Ok(_) => {
                spool.set_mark(batch.through)?;
                self.counters.sent_more(batch.count);
                self.counters.sending_well();
                self.most = (self.most * 2).min(BATCH);
                Ok(batch.through)
            }
            Err(Failure::Server(error)) if is_data(&error) && batch.count > 1 => {
                self.most = batch.count / 2;
                Ok(spool.mark()?)
            }
            Err(Failure::Server(error)) if is_data(&error) => {
                let error = with_causes(&error);
                tracing::error!(id = batch.through, error, "PostgreSQL refuses a record");
                spool.set_mark(batch.through)?;
                self.counters.sending_refused();
                Ok(batch.through)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// A statement failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Server(#[from] tokio_postgres::Error),
    #[error("the server has not answered for {} s", TIMEOUT.as_secs())]
    Slow,
}

async fn within<T>(
    work: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Failure> {
    let result = tokio::time::timeout(TIMEOUT, work).await;
    Ok(result.map_err(|_| Failure::Slow)??)
}

/// Whether the server did not like what was sent (SQLSTATE class 22, data exception).
fn is_data(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| code.code().starts_with("22"))
}

/// An error with what caused it, which tokio-postgres does not say by itself. No password is in it.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    text
}

/// Sees to the table, and finds up to where all is there.
async fn agree(client: &Client, spool: &Spool) -> Result<i64, Box<dyn Error>> {
    // What it reports as stored must not be lost when it dies.
    within(client.batch_execute("SET synchronous_commit = on")).await?;
    let there = within(client.query_one("SELECT to_regclass('nigh.record') IS NOT NULL", &[]));
    // Whoever has only the right to insert is not asked for more.
    if !there.await?.try_get::<_, bool>(0)? {
        within(client.batch_execute(include_str!("schema.sql"))).await?;
    }
    let sql = "SELECT coalesce(max(id), 0) FROM nigh.record WHERE archive = $1";
    let theirs: i64 = within(client.query_one(sql, &[&spool.archive])).await?.try_get(0)?;
    if theirs > spool.last()? {
        // Our database is older than theirs: somebody brought an old copy back.
        tracing::warn!(theirs, "the archive is an old copy: numbers already in use are skipped");
        spool.skip_to(theirs)?;
    }
    let mark = spool.mark()?.max(theirs);
    spool.set_mark(mark)?;
    Ok(mark)
}

async fn copy(client: &Client, batch: &Batch) -> Result<u64, tokio_postgres::Error> {
    let sql = "COPY nigh.record \
               (archive, id, station, target, test, kind, at, at_ns, lasted_ns, figures) FROM STDIN";
    let mut sink = pin!(client.copy_in(sql).await?);
    sink.send(Cursor::new(batch.text.clone().into_bytes())).await?;
    sink.finish().await
}
