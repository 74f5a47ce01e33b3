//! The task that manages a session: its control connection, its end, and at the connecting end the
//! making of connections.
//!
//! A session ends well in four steps: the cores have acknowledged everything in both directions; each end that
//! knows it says Goodbye on the control connection; who has sent and received it leaves (the connecting
//! end at once, the accepting end when the control connection ends, so that a Goodbye that was lost with
//! its path can be sent again). The application knows of its end's good end from the first step.

use crate::{
    ConnectionState,
    channel::Channel,
    connection,
    core::{
        Outcome,
        frame::{Frame, Reason, code},
    },
    dial::{self, Dialer},
    error::{EndReason, PathError, SessionError},
    session::{ControlMessage, Event, PeerMessage, Session, path_text},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{sleep, timeout},
};

/// Messages of the peer that wait at a time.
const MESSAGES: usize = 16;

/// How long the exchange of Goodbye may take.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(2);

/// Which end of the session this is.
pub(crate) enum Role {
    /// It makes the connections.
    Connecting(Arc<Dialer>),
    /// Connections come to it.
    Accepting,
}

/// The state of the task.
pub(crate) struct Manager {
    session: Arc<Session>,
    role: Role,
    /// Everything that ends when the session does.
    pub(crate) tasks: JoinSet<()>,
    control: Option<Control>,
    controls: u32,
    messages: (mpsc::Sender<ControlMessage>, mpsc::Receiver<ControlMessage>),
    /// Since when no data connection works.
    dead_since: Option<Instant>,
    /// How long that may be: at first as long as connecting may take.
    no_path_timeout: Duration,
    /// Everything is acknowledged in both directions.
    done: bool,
    /// Until when who closes the stream waits for the peer's Goodbye.
    part_at: Option<Instant>,
    /// The peer has sent Goodbye.
    goodbye: bool,
}

/// The control connection that works.
struct Control {
    number: u32,
    outbox: mpsc::UnboundedSender<Vec<u8>>,
    /// Ends when the last frames are sent.
    task: tokio::task::JoinHandle<()>,
}

/// Why the task ends.
enum End {
    /// Both have sent Goodbye, or nobody is left to send it.
    Well,
    Badly(SessionError),
}

impl Manager {
    pub(crate) fn new(session: Arc<Session>, role: Role) -> Self {
        let no_path_timeout = session.negotiated.survive.max(session.config.connect_timeout);
        Self {
            session,
            role,
            tasks: JoinSet::new(),
            control: None,
            controls: 0,
            messages: mpsc::channel(MESSAGES),
            dead_since: Some(Instant::now()),
            no_path_timeout,
            done: false,
            part_at: None,
            goodbye: false,
        }
    }

    /// Manages the session until nothing of it is left.
    pub(crate) async fn run(mut self, control: Channel, mut inbox: mpsc::UnboundedReceiver<Event>) {
        self.control(control);
        if let Role::Connecting(dialer) = &self.role {
            dialer.keep_all(&self.session, &mut self.tasks);
        }
        let end = loop {
            let wait =
                self.dead_since.map(|since| self.no_path_timeout.saturating_sub(since.elapsed()));
            let ended = tokio::select! {
                event = inbox.recv() => match event {
                    Some(event) => self.event(event),
                    None => Some(End::Well),
                },
                Some(ControlMessage(number, message)) = self.messages.1.recv() => self.handle(number, message),
                () = sleep(wait.unwrap_or_default()), if wait.is_some() => self.starved(),
                () = sleep_until(self.part_at), if self.part_at.is_some() => {
                    self.part_at = None;
                    self.session.status.parted();
                    None
                }
            };
            if let Some(end) = ended {
                break end;
            }
            // Tasks that have ended by themselves.
            while self.tasks.try_join_next().is_some() {}
        };
        self.end(end).await;
    }

    /// No data connection has worked for too long.
    fn starved(&mut self) -> Option<End> {
        if self.done {
            return Some(End::Well);
        }
        let inner = self.session.lock();
        let answered = inner.core.unacknowledged_bytes() == 0;
        if inner.core.is_received() && !inner.core.is_taken() && answered {
            // All has come, and all of ours has gone; the application may take its time to read.
            self.dead_since = Some(Instant::now());
            return None;
        }
        Some(End::Badly(SessionError::AllPathsDead(self.no_path_timeout)))
    }

    fn event(&mut self, event: Event) -> Option<End> {
        match event {
            Event::Joined(channel, path, admission) => {
                let entered = self.session.join(path, path_text(&channel), admission);
                self.tasks.spawn(async move {
                    let result = connection::run(*channel, entered).await;
                    tracing::debug!("a data connection of path {path} ended: {result:?}");
                });
            }
            Event::Control(channel) => {
                self.session.lock().control_recoveries += 1;
                self.control(*channel);
                if self.done {
                    self.send(&Frame::Goodbye);
                }
            }
            Event::Fail(error) => return self.fail(error),
            Event::Changed => self.changed(),
        }
        self.parted()
    }

    /// What a control connection brought.
    fn handle(&mut self, number: u32, message: PeerMessage) -> Option<End> {
        match message {
            PeerMessage::Announced(addresses) => {
                if let Role::Connecting(dialer) = &self.role
                    && dialer.config.follow_announced
                {
                    dialer.announced(&self.session, &mut self.tasks, &addresses);
                }
            }
            PeerMessage::Goodbye => self.goodbye = true,
            PeerMessage::Fail(error) => return self.fail(error),
            PeerMessage::Ended if self.control.as_ref().is_some_and(|c| c.number == number) => {
                self.control = None;
                self.session.lock().control = ConnectionState::Dead;
                match &self.role {
                    Role::Accepting if self.done && self.goodbye => return Some(End::Well),
                    Role::Accepting => {}
                    Role::Connecting(dialer) => {
                        let (dialer, session) = (Arc::clone(dialer), Arc::clone(&self.session));
                        self.tasks.spawn(dial::control(dialer, session));
                    }
                }
            }
            // Another has taken its place.
            PeerMessage::Ended => {}
        }
        self.parted()
    }

    fn fail(&self, error: SessionError) -> Option<End> {
        match error {
            SessionError::Unknown if self.done => Some(End::Well),
            // Everything has come to both ends; only Goodbye is missing.
            _ if self.done => None,
            error => Some(End::Badly(error)),
        }
    }

    /// The connecting end leaves when both have sent Goodbye.
    fn parted(&self) -> Option<End> {
        match &self.role {
            Role::Connecting(_) if self.done && self.goodbye => Some(End::Well),
            _ => None,
        }
    }

    fn changed(&mut self) {
        match self.session.live() {
            0 => self.dead_since = self.dead_since.or_else(|| Some(Instant::now())),
            _ => {
                self.dead_since = None;
                self.no_path_timeout = self.session.negotiated.survive;
            }
        }
        if !self.done && self.session.lock().outcome() == Outcome::FinishedBoth {
            self.done = true;
            self.part_at = Some(Instant::now() + GOODBYE_TIMEOUT);
            self.session.status.end(Ok(()));
            self.send(&Frame::Goodbye);
        }
    }

    /// Says something on the control connection, if it works.
    fn send(&self, frame: &Frame<'_>) {
        if let Some(control) = &self.control {
            let mut bytes = Vec::new();
            frame.emit(&mut bytes);
            // When it does not work any more, it ends and is made again.
            let _ = control.outbox.send(bytes);
        }
    }

    /// Takes a control connection.
    fn control(&mut self, channel: Channel) {
        self.session.lock().control = ConnectionState::Open;
        let (outbox, frames) = mpsc::unbounded_channel();
        self.controls += 1;
        let number = self.controls;
        let messages = self.messages.0.clone();
        let task = tokio::spawn(async move {
            let result = talk(channel, frames, number, &messages).await;
            tracing::debug!("the control connection ended: {result:?}");
            if let Err(PathError::Frame(error)) = result {
                let error = SessionError::Violation(error.to_string());
                let _ = messages.send(ControlMessage(number, PeerMessage::Fail(error))).await;
            }
            let _ = messages.send(ControlMessage(number, PeerMessage::Ended)).await;
        });
        if let Some(old) = self.control.replace(Control { number, outbox, task }) {
            old.task.abort();
        }
    }

    async fn end(mut self, end: End) {
        if let End::Badly(error) = end {
            tracing::debug!("a session ended: {error}");
            if let Some(code) = error.code() {
                let text = error.to_string();
                self.send(&Frame::Reset(Reason { code, text: &text }));
            }
            // First the status, then the end that the application sees.
            self.session.status.end(Err(error));
        }
        self.tasks.shutdown().await;
        if let Some(control) = self.control.take() {
            let Control { outbox, mut task, .. } = control;
            // Nothing more to send: the task sends what is left, then closes.
            drop(outbox);
            if timeout(GOODBYE_TIMEOUT, &mut task).await.is_err() {
                task.abort();
            }
        }
        self.session.status.parted();
    }
}

/// Waits until a time, if there is one.
async fn sleep_until(at: Option<Instant>) {
    if let Some(at) = at {
        tokio::time::sleep_until(at.into()).await;
    }
}

/// Carries frames until the peer or the session ends the connection.
async fn talk(
    mut channel: Channel,
    mut frames: mpsc::UnboundedReceiver<Vec<u8>>,
    number: u32,
    to: &mpsc::Sender<ControlMessage>,
) -> Result<(), PathError> {
    // The answer to the peer's wish may still be there.
    channel.flush().await?;
    loop {
        while let Some((frame, length)) = Frame::parse(channel.plain.filled())? {
            let unexpected = "an unexpected frame on the control connection";
            let mut answer = Vec::new();
            let message = match frame {
                Frame::Goodbye => Some(PeerMessage::Goodbye),
                Frame::Reset(reason) => {
                    let reason = EndReason::from_code(reason.code);
                    Some(PeerMessage::Fail(SessionError::Peer(reason)))
                }
                Frame::Addresses(addresses) => Some(PeerMessage::Announced(addresses)),
                Frame::Ping(number) => {
                    Frame::Pong(number).emit(&mut answer);
                    None
                }
                Frame::Pong(_) | Frame::Skipped(_) => None,
                _ => Some(PeerMessage::Fail(SessionError::Violation(unexpected.to_owned()))),
            };
            channel.plain.consume(length);
            if let Some(message) = message {
                let _ = to.send(ControlMessage(number, message)).await;
            }
            channel.write(&answer).await?;
        }
        tokio::select! {
            more = channel.read() => if !more? {
                return Ok(());
            },
            frame = frames.recv() => match frame {
                Some(bytes) => channel.write(&bytes).await?,
                None => break,
            },
        }
    }
    // What the peer still sends is read, so that closing does not reset the connection before it has our frames.
    channel.shutdown()?;
    while channel.read().await? {}
    Ok(())
}

impl SessionError {
    /// The reason that the peer gets; none when it knows.
    fn code(&self) -> Option<u16> {
        match self {
            Self::AllPathsDead(_) => Some(code::PATHS),
            Self::Here(reason) => Some(reason.code()),
            Self::Violation(_) => Some(code::VIOLATION),
            Self::Unknown | Self::Peer(_) => None,
        }
    }
}

impl EndReason {
    fn code(self) -> u16 {
        match self {
            Self::Aborted => code::ABORTED,
            Self::Violation => code::VIOLATION,
            Self::AllPathsDead => code::PATHS,
            Self::Stopping => code::STOPPING,
            Self::Other(other) => other,
        }
    }

    /// The reason that a peer has sent.
    pub(crate) fn from_code(code: u16) -> Self {
        match code {
            code::ABORTED => Self::Aborted,
            code::VIOLATION => Self::Violation,
            code::PATHS => Self::AllPathsDead,
            code::STOPPING => Self::Stopping,
            other => Self::Other(other),
        }
    }
}
