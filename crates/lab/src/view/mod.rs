//! `nigh lab view`: a running lab in a terminal: links by load and drops, hosts, what happens.
//!
//! It asks the control socket once a second for at most `ROWS` links, so its cost does not grow with
//! the network. `model` keeps the answers, `draw` shows them; neither knows a terminal.

mod draw;
mod model;

use crate::control::{AskError, Event, Request, cli::Which};
use ::control::Connection;
use clap::Args;
use job::command::{Exit, Outcome};
use model::Model;
use ratatui::Frame;
use std::{
    io::{self, BufRead},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};
use terminal::screen::{self, Key, Next};

/// Most links that are asked for.
const ROWS: usize = 1000;
/// How often the lab is asked.
const EVERY: Duration = Duration::from_secs(1);

/// Arguments of `nigh lab view`.
#[derive(Clone, Debug, Args)]
pub struct ViewArgs {
    /// The lab, by process id or scene name [default: the only one]
    #[arg(long, value_name = "LAB")]
    pub lab: Option<String>,
}

/// The view cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The lab did not answer.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The terminal cannot be drawn on or read from.
    #[error("the terminal: {0}")]
    Terminal(#[from] io::Error),
}

/// Shows a lab until `q` or Ctrl-C, or until the lab ends.
///
/// # Errors
/// No lab answers; or see [`ViewError`].
pub fn view(args: &ViewArgs) -> Outcome {
    let which = Which { lab: args.lab.clone(), json: false };
    let connection = which.connect()?;
    let events = follow(which.connect()?)?;
    screen::show(&mut View { connection, events, model: Model::default() }, EVERY)?;
    Ok(Exit::Done)
}

/// A thread that takes events as they come.
fn follow(mut connection: Connection) -> Result<Receiver<Event>, AskError> {
    let _: serde_json::Value = connection.ask(&Request::Events {})?;
    let lines = connection.stream()?;
    let (send, events) = channel();
    std::thread::spawn(move || {
        for line in lines.lines().map_while(Result::ok) {
            let Ok(event) = serde_json::from_str(&line) else { continue };
            if send.send(event).is_err() {
                return;
            }
        }
    });
    Ok(events)
}

/// A lab that is shown.
struct View {
    connection: Connection,
    events: Receiver<Event>,
    model: Model,
}

impl screen::View for View {
    type Error = ViewError;

    fn draw(&self, frame: &mut Frame<'_>) {
        draw::draw(frame, &self.model);
    }

    fn press(&mut self, key: Key) -> Next {
        if self.model.press(key) { Next::Quit } else { Next::Draw }
    }

    fn refresh(&mut self) -> Result<(), ViewError> {
        Ok(look(&mut self.connection, &mut self.model)?)
    }

    fn poll(&mut self) {
        self.model.happened(self.events.try_iter());
    }
}

/// Asks how the lab is. In a pause what it says is not shown, but it is asked: a connection that is
/// silent for long is closed.
fn look(connection: &mut Connection, model: &mut Model) -> Result<(), AskError> {
    let status = connection.ask(&Request::Status {})?;
    if !model.is_paused() {
        let links =
            connection.ask(&Request::Links { sort: model.sort(), limit: ROWS, all: false })?;
        model.update(status, links);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Answer, Links, Status, Totals};
    use ::control::Peer;
    use std::{
        io::{BufReader, Write},
        os::unix::net::UnixListener,
    };

    #[test]
    fn the_lab_is_asked_in_a_pause_too_and_nothing_of_it_is_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).expect("a socket");
        let server = std::thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a connection");
            let mut asked = Vec::new();
            for line in BufReader::new(&stream).lines().map_while(Result::ok) {
                let value = match serde_json::from_str(&line).expect("a request") {
                    Request::Status {} => serde_json::to_value(status()),
                    _ => serde_json::to_value(Links { total: 0, links: Vec::new() }),
                };
                let answer = Answer::Ok(value.expect("a value"));
                let answer = serde_json::to_string(&answer).expect("an answer");
                (&stream).write_all(format!("{answer}\n").as_bytes()).expect("a reader");
                asked.push(line);
            }
            asked.len()
        });
        let mut connection = Connection::open(Peer::lab(&path)).expect("a connection");
        let mut model = Model::default();
        assert!(!model.press(Key::Pause));
        look(&mut connection, &mut model).expect("an answer");
        assert_eq!(model.status, None);
        assert!(!model.press(Key::Pause));
        look(&mut connection, &mut model).expect("answers");
        assert_eq!(model.status, Some(status()));
        drop(connection);
        assert_eq!(server.join().expect("a server"), 3);
    }

    fn status() -> Status {
        Status {
            pid: 1,
            scene: "scene.toml".into(),
            runs: crate::Nanos::ZERO,
            nodes: 2,
            links: 2,
            hosts: Vec::new(),
            packets: Totals::default(),
            down: Vec::new(),
            touched: Vec::new(),
            touched_total: 0,
        }
    }
}
