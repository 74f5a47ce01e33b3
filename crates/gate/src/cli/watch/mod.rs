//! `nigh gate watch`: the gate in a terminal: applications or hosts by rate, refusals, files, limits.
//!
//! It asks twice a second over the control socket for bounded answers, so its cost does not grow with the
//! traffic. `model` keeps the state, `draw` shows it; neither depends on a terminal.

mod draw;
mod model;

use crate::{
    control::{Request, TopOrder},
    status::{Status, TopStatus},
};
use job::command::{AnswerError, read};
use model::Model;
use ratatui::Frame;
use serde_json::Value;
use std::{
    io::{self, IsTerminal},
    time::{Duration, Instant},
};
use terminal::screen::{self, Key, Next};

/// Most applications or hosts that are asked for.
const ROWS: usize = 500;
/// How often the gate is asked.
const EVERY: Duration = Duration::from_millis(500);

/// The gate cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError<E> {
    /// The daemon did not answer.
    #[error(transparent)]
    Ask(E),
    /// The daemon's answer is of another version.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// What it would draw on is a file or a pipe.
    #[error(
        "`nigh gate watch` needs a terminal: for a file or a program use `nigh gate status --json`"
    )]
    NoTerminal,
    /// The terminal cannot be drawn on or read from.
    #[error("the terminal: {0}")]
    Terminal(#[from] io::Error),
}

/// Shows a gate until `q` or Ctrl-C. `ask` sends it a request; without one it asks for its state.
///
/// # Errors
/// See [`WatchError`].
pub fn watch<E>(ask: impl FnMut(Option<Request>) -> Result<Value, E>) -> Result<(), WatchError<E>> {
    if !io::stdout().is_terminal() {
        return Err(WatchError::NoTerminal);
    }
    screen::show(&mut View { ask, model: Model::default() }, EVERY)
}

/// A gate that is watched.
struct View<A> {
    ask: A,
    model: Model,
}

impl<E, A: FnMut(Option<Request>) -> Result<Value, E>> screen::View for View<A> {
    type Error = WatchError<E>;

    fn draw(&self, frame: &mut Frame<'_>) {
        draw::draw(frame, &self.model);
    }

    fn press(&mut self, key: Key) -> Next {
        let by = self.model.by();
        match self.model.press(key) {
            true => Next::Quit,
            false if by != self.model.by() => Next::Refresh,
            false => Next::Draw,
        }
    }

    fn refresh(&mut self) -> Result<(), WatchError<E>> {
        if self.model.is_paused() { Ok(()) } else { look(&mut self.ask, &mut self.model) }
    }
}

/// Asks how the gate is.
fn look<E>(
    ask: &mut impl FnMut(Option<Request>) -> Result<Value, E>,
    model: &mut Model,
) -> Result<(), WatchError<E>> {
    let top = Request::Top(TopOrder { by: model.by(), count: ROWS });
    let status: Status = read(&ask(None).map_err(WatchError::Ask)?)?;
    let top: TopStatus = read(&ask(Some(top)).map_err(WatchError::Ask)?)?;
    model.update(Instant::now(), status, top);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::By;
    use terminal::screen::KeyCode;

    /// A daemon that answers what it is asked, and writes that down.
    fn answer(asked: &mut Vec<Option<Request>>, request: Option<Request>) -> Result<Value, String> {
        let value = match &request {
            None => serde_json::to_value(Status::default()),
            Some(Request::Top(order)) => {
                serde_json::to_value(TopStatus { by: order.by, rows: vec![] })
            }
            _ => return Err("nobody asks that".into()),
        };
        asked.push(request);
        value.map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_ranked_is_what_is_asked() {
        let (mut model, mut asked) = (Model::default(), Vec::new());
        let mut ask = |request| answer(&mut asked, request);
        look(&mut ask, &mut model).expect("answers");
        assert!(!model.press(Key::Other(KeyCode::Tab)));
        look(&mut ask, &mut model).expect("answers");
        let top = |by| Some(Request::Top(TopOrder { by, count: ROWS }));
        let expected = [None, top(By::Application), None, top(By::Host)];
        assert_eq!(asked, expected);
    }

    #[test]
    fn an_answer_of_another_version_is_reported_as_such() {
        let error = look(&mut |_| Ok::<_, String>(Value::Null), &mut Model::default());
        let text = error.expect_err("no status").to_string();
        assert!(text.contains("another version"), "{text}");
    }
}
