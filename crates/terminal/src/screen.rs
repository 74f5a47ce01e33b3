//! Full-screen views: the loop that draws, reads keys and asks for news, and what views draw with.
//!
//! A view is a value that knows no terminal. It is drawn on the alternate screen; the terminal is put
//! back as it was when the view ends, fails or panics.

use ratatui::{
    DefaultTerminal, Frame, Terminal,
    backend::TestBackend,
    crossterm::event::{self, Event, KeyEventKind, KeyModifiers},
    layout::Rect,
    style::{Color, Style, Stylize},
    text::{Line, Span},
    widgets::{Cell, Paragraph},
};
use std::{
    io,
    time::{Duration, Instant},
};

pub use ratatui::crossterm::event::KeyCode;

/// Longest wait for a key: what comes by itself is drawn after that.
const LONGEST_WAIT: Duration = Duration::from_millis(200);
/// Shortest wait for a key, so that a view that is always due does not spin.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);
/// Rows of a page.
const PAGE: usize = 20;

/// A key, by what it does in every view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// End the view: `q`, Escape, Ctrl-C.
    Quit,
    /// Pause or go on: space, `p`.
    Pause,
    /// Scroll up by so many rows.
    Up(usize),
    /// Scroll down by so many rows.
    Down(usize),
    /// What the view itself gives a meaning to.
    Other(KeyCode),
}

/// What follows a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The view is drawn again.
    Draw,
    /// It is refreshed at once.
    Refresh,
    /// It ends.
    Quit,
}

/// A view.
pub trait View {
    /// Why it cannot go on.
    type Error: From<io::Error>;

    /// Draws it.
    fn draw(&self, frame: &mut Frame<'_>);

    /// Does what a key asks for.
    fn press(&mut self, key: Key) -> Next;

    /// Asks for the state of what is shown.
    ///
    /// # Errors
    /// When there is no answer.
    fn refresh(&mut self) -> Result<(), Self::Error>;

    /// Takes what has come by itself.
    fn poll(&mut self) {}
}

/// Shows a view until it ends, and refreshes it `every` so long. The terminal is taken when the first
/// answer is there.
///
/// # Errors
/// Those of the view, and when the terminal cannot be drawn on or read from.
pub fn show<V: View>(view: &mut V, every: Duration) -> Result<(), V::Error> {
    view.refresh()?;
    // It is put back as it was, also when this panics.
    let mut terminal = ratatui::try_init()?;
    let result = run(&mut terminal, view, every);
    ratatui::restore();
    result
}

fn run<V: View>(
    terminal: &mut DefaultTerminal,
    view: &mut V,
    every: Duration,
) -> Result<(), V::Error> {
    let mut due = Instant::now() + every;
    loop {
        view.poll();
        if Instant::now() >= due {
            due = Instant::now() + every;
            view.refresh()?;
        }
        terminal.draw(|frame| view.draw(frame))?;
        let wait = due.saturating_duration_since(Instant::now());
        if event::poll(wait.clamp(SHORTEST_WAIT, LONGEST_WAIT))?
            && let Some(key) = key(&event::read()?)
        {
            match view.press(key) {
                Next::Draw => {}
                Next::Refresh => due = Instant::now(),
                Next::Quit => return Ok(()),
            }
        }
    }
}

/// What an event of the terminal means.
fn key(event: &Event) -> Option<Key> {
    let Event::Key(key) = event else { return None };
    if key.kind == KeyEventKind::Release {
        return None;
    }
    Some(match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Key::Quit,
        KeyCode::Char('q') | KeyCode::Esc => Key::Quit,
        KeyCode::Char(' ' | 'p') => Key::Pause,
        KeyCode::Up => Key::Up(1),
        KeyCode::Down => Key::Down(1),
        KeyCode::PageUp => Key::Up(PAGE),
        KeyCode::PageDown => Key::Down(PAGE),
        KeyCode::Home => Key::Up(usize::MAX),
        other => Key::Other(other),
    })
}

/// The first row that is shown, after a list of `rows` was scrolled; nothing for other keys.
pub fn scroll(first: usize, rows: usize, key: Key) -> Option<usize> {
    match key {
        Key::Up(by) => Some(first.saturating_sub(by)),
        Key::Down(by) => Some(first.saturating_add(by).min(rows.saturating_sub(1))),
        _ => None,
    }
}

/// A cell of a table with its text to the right.
pub fn right(text: impl Into<String>) -> Cell<'static> {
    Cell::from(Line::from(text.into()).right_aligned())
}

/// A share from 0 to 1 as a bar of eight columns.
pub fn bar(share: f64) -> String {
    let full = (share * 8.0).round() as usize;
    "█".repeat(full) + &"░".repeat(8usize.saturating_sub(full))
}

/// The last `columns` values as a curve; the highest of them is as high as it gets.
pub fn curve<'a>(values: impl ExactSizeIterator<Item = &'a u64> + Clone, columns: usize) -> String {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let highest = values.clone().copied().max().unwrap_or(0).max(1);
    let skipped = values.len().saturating_sub(columns);
    let step = |value: &u64| match value {
        0 => ' ',
        value => STEPS[((*value as f64 / highest as f64) * 7.0).round() as usize],
    };
    let curve: String = values.skip(skipped).map(step).collect();
    format!("{curve:>columns$}")
}

/// The word for a view that is paused.
pub fn paused() -> Span<'static> {
    Span::styled("  PAUSED", Style::new().fg(Color::Yellow))
}

/// The line of keys at the bottom: those of every view, and the view's own.
pub fn draw_keys(frame: &mut Frame<'_>, area: Rect, is_paused: bool, own: &str) {
    let pause = if is_paused { "resume" } else { "pause" };
    let text = format!("q quit  space {pause}  {own}  arrows scroll");
    frame.render_widget(Paragraph::new(text).dim(), area);
}

/// The lines of a screen of that size, for tests of views.
///
/// # Errors
/// When it cannot be drawn.
pub fn lines(
    columns: u16,
    lines: u16,
    draw: impl FnOnce(&mut Frame<'_>),
) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines))?;
    terminal.draw(draw)?;
    let buffer = terminal.backend().buffer();
    let cells: Vec<_> = buffer.content().iter().map(|cell| cell.symbol()).collect();
    let lines = cells.chunks(usize::from(columns));
    Ok(lines.map(|line| line.concat().trim_end().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::crossterm::event::KeyEvent;
    use std::collections::VecDeque;

    #[test]
    fn a_curve_has_its_columns_and_no_more() {
        assert_eq!(curve(VecDeque::from([0, 1, 8]).iter(), 5), "   ▂█");
        assert_eq!(curve(VecDeque::new().iter(), 3), "   ");
        assert_eq!(curve((0..=60).collect::<VecDeque<_>>().iter(), 8).chars().count(), 8);
    }

    #[test]
    fn a_bar_has_eight_columns() {
        for (share, text) in [(0.0, "░░░░░░░░"), (0.5, "████░░░░"), (1.0, "████████")]
        {
            assert_eq!(bar(share), text);
        }
    }

    #[test]
    fn keys_mean_the_same_in_every_view_and_letters_are_the_view_s() {
        let press = |code, modifiers| key(&Event::Key(KeyEvent::new(code, modifiers)));
        let plain = |code| press(code, KeyModifiers::NONE);
        assert_eq!(press(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Quit));
        assert_eq!(plain(KeyCode::Char('c')), Some(Key::Other(KeyCode::Char('c'))));
        assert_eq!(plain(KeyCode::Esc), Some(Key::Quit));
        assert_eq!(plain(KeyCode::Char(' ')), Some(Key::Pause));
        assert_eq!(plain(KeyCode::PageDown), Some(Key::Down(PAGE)));
        let mut released = KeyEvent::new(KeyCode::Up, KeyModifiers::NONE);
        released.kind = KeyEventKind::Release;
        assert_eq!(key(&Event::Key(released)), None);
    }

    #[test]
    fn a_list_is_scrolled_within_its_rows() {
        assert_eq!(scroll(0, 3, Key::Down(usize::MAX)), Some(2));
        assert_eq!(scroll(2, 3, Key::Up(1)), Some(1));
        assert_eq!(scroll(0, 0, Key::Down(1)), Some(0));
        assert_eq!(scroll(1, 3, Key::Pause), None);
    }
}
