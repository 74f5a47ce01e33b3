//! `nigh lab view`: a running lab in a terminal: links by load and drops, hosts, what happens.
//!
//! It asks the control socket once a second for at most `ROWS` links, so its cost does not grow with
//! the network. `model` keeps what was told, `draw` shows it; neither knows a terminal.

mod draw;
mod model;

use crate::control::{
    AskError, Connection, Event, Request,
    cli::{UseError, Which},
};
use clap::Args;
use model::{Key, Model};
use ratatui::crossterm::event::{self, KeyCode, KeyEventKind, KeyModifiers};
use std::{
    io::{self, BufRead},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

/// Most links that are asked for.
const ROWS: usize = 1000;
/// How often the lab is asked.
const EVERY: Duration = Duration::from_secs(1);

/// Arguments of `nigh lab view`.
#[derive(Clone, Debug, Args)]
pub struct ViewArgs {
    /// The lab, by its process's number or its scene's name [default: the only one]
    #[arg(long, value_name = "LAB")]
    pub lab: Option<String>,
}

/// The view cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// It is not clear which lab is meant.
    #[error(transparent)]
    Use(#[from] UseError),
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
/// See [`ViewError`].
pub fn view(args: &ViewArgs) -> Result<(), ViewError> {
    let which = Which { lab: args.lab.clone(), json: false };
    let mut connection = which.connect()?;
    let events = follow(which.connect()?)?;
    // It is put back as it was, also when this panics.
    let mut terminal = ratatui::try_init()?;
    let result = show(&mut terminal, &mut connection, &events);
    ratatui::restore();
    result
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

fn show(
    terminal: &mut ratatui::DefaultTerminal,
    connection: &mut Connection,
    events: &Receiver<Event>,
) -> Result<(), ViewError> {
    let mut model = Model::default();
    let mut due = Instant::now();
    loop {
        model.happened(events.try_iter());
        if Instant::now() >= due && !model.is_paused() {
            due = Instant::now() + EVERY;
            let status = connection.ask(&Request::Status {})?;
            let links =
                connection.ask(&Request::Links { sort: model.sort(), limit: ROWS, all: false })?;
            model.update(status, links);
        }
        terminal.draw(|frame| draw::draw(frame, &model))?;
        let wait = due.saturating_duration_since(Instant::now()).min(Duration::from_millis(200));
        if event::poll(wait.max(Duration::from_millis(10)))?
            && let Some(key) = key(&event::read()?)
            && model.press(key)
        {
            return Ok(());
        }
    }
}

/// What a key means here.
fn key(event: &event::Event) -> Option<Key> {
    let event::Event::Key(key) = event else { return None };
    if key.kind == KeyEventKind::Release {
        return None;
    }
    Some(match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Key::Quit,
        KeyCode::Char('q') | KeyCode::Esc => Key::Quit,
        KeyCode::Char(' ' | 'p') => Key::Pause,
        KeyCode::Char('b') => Key::Bytes,
        KeyCode::Char('k') => Key::Packets,
        KeyCode::Char('d') => Key::Drops,
        KeyCode::Up => Key::Up(1),
        KeyCode::Down => Key::Down(1),
        KeyCode::PageUp => Key::Up(20),
        KeyCode::PageDown => Key::Down(20),
        KeyCode::Home => Key::Up(usize::MAX),
        _ => return None,
    })
}
