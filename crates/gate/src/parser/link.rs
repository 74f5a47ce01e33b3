//! The daemon's end of a parser's process: requests with a deadline, a check of each answer, another start.
//!
//! ```text
//!   starting ──(set up)──► ready ──(dies, hangs, answers nonsense)──► down ──(wait)──► starting
//! ```

use super::{
    Parser,
    frame::{self, Answers, Frame, Garbage},
    run,
    sandbox::Confinement,
};
use std::{
    io::{self, BufReader, ErrorKind, Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// How long a parser may take for a request. The kernel waits twice as long for the daemon's heartbeat.
const DEADLINE: Duration = Duration::from_secs(1);
/// How long it may take to be set up; a thousand signatures take seconds.
const SETUP: Duration = Duration::from_secs(30);
/// The longest wait before another start. The first is at once, each further one waits twice as long.
const WAIT: Duration = Duration::from_secs(1);
/// The shortest wait but none.
const SHORT: Duration = Duration::from_millis(10);
/// A parser that has run for so long did not fail at its start.
const RAN: Duration = Duration::from_secs(10);
/// Most bytes of answers to one request.
const MAX_REPLY: usize = 128 << 20;

/// The program that is started for a parser; it must call [`run::main`] with its arguments.
#[derive(Clone, Debug)]
pub enum Program {
    /// A process of this program.
    Process(PathBuf),
    /// No process: the parser runs in the thread that asks. For tests.
    Here,
}

impl Default for Program {
    /// This process's own program, also where its file was replaced or cannot be reached.
    fn default() -> Self {
        Self::Process("/proc/self/exe".into())
    }
}

/// Why a parser was given up.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// It ended, or could not be started.
    #[error("{0}")]
    Died(String),
    /// It did not answer in time.
    #[error("no answer within {} ms", DEADLINE.as_millis())]
    Hung,
    /// Its answer is no answer.
    #[error(transparent)]
    Refused(#[from] Garbage),
    /// It cannot be set up.
    #[error("{0}")]
    Setup(String),
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// It ended by itself.
    pub died: u64,
    /// It did not answer in time and was killed.
    pub hung: u64,
    /// It answered nonsense and was killed.
    pub refused: u64,
}

impl Counts {
    /// All of them.
    pub const fn sum(&self) -> u64 {
        self.died + self.hung + self.refused
    }
}

/// A process, and the socket to it.
#[derive(Debug)]
struct Process {
    child: Child,
    stream: BufReader<UnixStream>,
    /// How long a read or write waits.
    timeout: Duration,
    since: Instant,
}

#[derive(Debug)]
enum State<P> {
    Ready(Process),
    Here(P),
    Starting(Process),
    Down(Instant),
}

/// A parser of the daemon's.
#[derive(Debug)]
pub struct Link<P: Parser> {
    program: Program,
    settings: P::Settings,
    state: State<P>,
    wait: Duration,
    counts: Counts,
    confinement: Confinement,
    lost: bool,
    body: Vec<u8>,
}

impl Process {
    /// Starts a process and sends the settings.
    fn start<P: Parser>(program: &PathBuf, settings: &P::Settings) -> io::Result<Self> {
        let (stream, other) = UnixStream::pair()?;
        let child = Command::new(program)
            .args([run::COMMAND, P::NAME])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(other)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let stream = BufReader::with_capacity(run::BUFFER, stream);
        let mut process = Self { child, stream, timeout: Duration::ZERO, since: Instant::now() };
        let settings = serde_json::to_string(settings)?;
        let mut frame = Frame::default();
        frame.push(&settings);
        match process.send(frame.bytes(), process.since + DEADLINE) {
            Ok(()) => Ok(process),
            Err(error) => {
                process.end();
                Err(io::Error::other(error))
            }
        }
    }

    /// Kills it and says how it ended.
    fn end(&mut self) -> String {
        // It may have ended.
        let _ = self.child.kill();
        match self.child.wait() {
            Ok(status) => format!("ended: {status}"),
            Err(error) => format!("ended: {error}"),
        }
    }

    /// What a failed read or write means.
    fn failed(error: &io::Error) -> Option<LinkError> {
        match error.kind() {
            // Another look at the time.
            ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => None,
            _ => Some(LinkError::Died(error.to_string())),
        }
    }

    /// Has the next read or write wait no longer than until then, or a tenth more: setting it takes a system call.
    fn limit(&mut self, until: Instant) -> Result<(), LinkError> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(LinkError::Hung);
        }
        if left > self.timeout || left < self.timeout * 9 / 10 {
            self.timeout = left.max(Duration::from_millis(1));
            let stream = self.stream.get_ref();
            let _ = stream.set_read_timeout(Some(self.timeout));
            let _ = stream.set_write_timeout(Some(self.timeout));
        }
        Ok(())
    }

    fn send(&mut self, mut bytes: &[u8], until: Instant) -> Result<(), LinkError> {
        while !bytes.is_empty() {
            self.limit(until)?;
            match self.stream.get_mut().write(bytes) {
                Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
                Err(error) => Self::failed(&error).map_or(Ok(()), Err)?,
            }
        }
        Ok(())
    }

    fn fill(&mut self, mut bytes: &mut [u8], until: Instant) -> Result<(), LinkError> {
        while !bytes.is_empty() {
            if self.stream.buffer().is_empty() {
                self.limit(until)?;
            }
            match self.stream.read(bytes) {
                Ok(0) => return Err(LinkError::Died(String::new())),
                Ok(read) => bytes = bytes.split_at_mut(read).1,
                Err(error) => Self::failed(&error).map_or(Ok(()), Err)?,
            }
        }
        Ok(())
    }

    /// Reads a frame's body, at most so long.
    fn receive(
        &mut self,
        body: &mut Vec<u8>,
        most: usize,
        until: Instant,
    ) -> Result<(), LinkError> {
        let mut head = [0; 4];
        self.fill(&mut head, until)?;
        let length = frame::length(head)?;
        if length > most {
            return Err(Garbage.into());
        }
        // What is announced takes memory only as it comes.
        body.clear();
        while body.len() < length {
            let from = body.len();
            body.resize(length.min(from + (1 << 20)), 0);
            self.fill(body.get_mut(from..).unwrap_or_default(), until)?;
        }
        Ok(())
    }

    /// The answer to the settings.
    fn is_set_up(&mut self, body: &mut Vec<u8>, until: Instant) -> Result<Confinement, LinkError> {
        self.receive(body, 1 << 12, until)?;
        let answer: Result<Confinement, String> =
            postcard::from_bytes(body).map_err(|_| Garbage)?;
        answer.map_err(LinkError::Setup)
    }

    fn exchange<P: Parser>(
        &mut self,
        request: &mut Frame,
        body: &mut Vec<u8>,
    ) -> Result<Vec<P::Answer>, LinkError> {
        let until = Instant::now() + DEADLINE;
        let mut answers = Answers::<P>::new(request.items());
        self.send(request.bytes(), until)?;
        let mut left = MAX_REPLY;
        loop {
            self.receive(body, left, until)?;
            if body.is_empty() {
                return Ok(answers.all());
            }
            left -= body.len();
            answers.add(body)?;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

impl<P: Parser> Link<P> {
    /// Starts the parser and waits until it is ready.
    ///
    /// # Errors
    /// When it cannot be started or set up.
    pub fn open(program: Program, settings: P::Settings) -> Result<Self, LinkError> {
        let mut body = Vec::new();
        let (state, confinement) = match Self::start(&program, &settings)? {
            State::Starting(mut process) => {
                let confinement = match process.is_set_up(&mut body, process.since + SETUP) {
                    Err(LinkError::Died(_)) => return Err(LinkError::Died(process.end())),
                    result => result?,
                };
                (State::Ready(process), confinement)
            }
            state => (state, Confinement::default()),
        };
        Ok(Self {
            program,
            settings,
            state,
            wait: Duration::ZERO,
            counts: Counts::default(),
            confinement,
            lost: false,
            body,
        })
    }

    fn start(program: &Program, settings: &P::Settings) -> Result<State<P>, LinkError> {
        match program {
            Program::Here => P::new(settings).map(State::Here).map_err(LinkError::Setup),
            Program::Process(path) => Process::start::<P>(path, settings)
                .map(State::Starting)
                .map_err(|error| LinkError::Died(error.to_string())),
        }
    }

    /// Goes on with what another one counted, in whose place this one is.
    pub fn succeed(&mut self, other: &Self) {
        self.counts = other.counts;
    }

    /// How often it failed.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What the process was denied.
    pub fn confinement(&self) -> Confinement {
        self.confinement
    }

    /// The process's number, while there is one.
    pub fn pid(&self) -> Option<u32> {
        match &self.state {
            State::Ready(process) | State::Starting(process) => Some(process.child.id()),
            State::Here(_) | State::Down(_) => None,
        }
    }

    /// Whether it has failed since this was asked last: it knows no flow any more.
    pub fn was_lost(&mut self) -> bool {
        std::mem::take(&mut self.lost)
    }

    /// Whether it can be asked; if it has ended, starts it again when it is time. To be called often, so that
    /// an end is noticed without a request.
    pub fn is_ready(&mut self) -> bool {
        let now = Instant::now();
        match &mut self.state {
            State::Here(_) => return true,
            State::Ready(process) => match process.child.try_wait() {
                Ok(None) => return true,
                _ => self.failed(LinkError::Died(String::new())),
            },
            State::Down(until) if now < *until => return false,
            State::Down(_) => match Self::start(&self.program, &self.settings) {
                Ok(state) => self.state = state,
                Err(error) => self.failed(error),
            },
            State::Starting(process) => {
                // As long as it takes it is not waited for.
                match process.is_set_up(&mut self.body, now + Duration::from_millis(1)) {
                    Ok(confinement) => {
                        self.confinement = confinement;
                        let started = std::mem::replace(&mut self.state, State::Down(now));
                        if let State::Starting(process) = started {
                            self.state = State::Ready(process);
                            return true;
                        }
                    }
                    Err(LinkError::Hung) if now < process.since + SETUP => {}
                    Err(error) => self.failed(error),
                }
            }
        }
        false
    }

    /// Sends a request; the answers in their order. None if there is no parser, which has to be started
    /// again then.
    pub fn exchange(&mut self, request: &mut Frame) -> Option<Vec<P::Answer>> {
        let result = match &mut self.state {
            State::Ready(process) => process.exchange::<P>(request, &mut self.body),
            State::Here(parser) => here(parser, request),
            State::Starting(_) | State::Down(_) => {
                request.clear();
                return None;
            }
        };
        request.clear();
        result.map_err(|error| self.failed(error)).ok()
    }

    /// What was answered makes no sense.
    pub fn refuse(&mut self) {
        self.failed(Garbage.into());
    }

    fn failed(&mut self, error: LinkError) {
        self.lost = true;
        let now = Instant::now();
        let count = match &error {
            LinkError::Hung => &mut self.counts.hung,
            LinkError::Refused(_) => &mut self.counts.refused,
            LinkError::Died(_) | LinkError::Setup(_) => &mut self.counts.died,
        };
        *count += 1;
        let (mut why, mut ran) = (error.to_string(), false);
        if let State::Ready(process) | State::Starting(process) = &mut self.state {
            let ended = process.end();
            if matches!(error, LinkError::Died(_)) {
                why = ended;
            }
            ran = now.duration_since(process.since) >= RAN;
        }
        if ran {
            self.wait = Duration::ZERO;
        }
        tracing::warn!(parser = P::NAME, "a parser failed and is started again: {why}");
        self.state = State::Down(now + self.wait);
        self.wait = (self.wait * 2).clamp(SHORT, WAIT);
    }
}

/// A request to a parser in this thread, read and written as to a process.
fn here<P: Parser>(parser: &mut P, request: &Frame) -> Result<Vec<P::Answer>, LinkError> {
    let mut reply = Vec::new();
    frame::serve(parser, request.body(), &mut reply)
        .map_err(|error| LinkError::Died(error.to_string()))?;
    let (mut reply, mut body) = (reply.as_slice(), Vec::new());
    let mut answers = Answers::<P>::new(request.items());
    while frame::receive(&mut reply, &mut body).map_err(|_| Garbage)?.is_some() {
        answers.add(&body)?;
    }
    Ok(answers.all())
}
