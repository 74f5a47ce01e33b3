//! Drawing with characters, with colours where they are wanted. 80 columns are enough.

use super::{
    axis::{Axis, share, times},
    columns::{Column, columns, values},
    list::Table,
    mesh::{Cell, Mesh},
    points::Plot,
};
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
};
use std::fmt::Write as _;

/// Rows of a chart.
const ROWS: u16 = 12;
/// Columns of a cell of the matrix.
const CELL: usize = 9;

/// How it may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Columns of the terminal.
    pub columns: u16,
    /// Whether colours are wanted.
    pub colour: bool,
}

/// A plot as text. The time is the plot's own where none is given.
pub fn chart(plot: &Plot, range: Option<(i64, i64)>, look: Look) -> String {
    let mut text = format!("{}\n", plot.title);
    if plot.points.is_empty() {
        return text + "  nothing was measured\n";
    }
    let (since, until) = range.unwrap_or_else(|| plot.extent());
    // The axis decides how much room its marks take, and the room how many columns there are.
    let rough = columns(plot, since, until, usize::from(look.columns));
    let axis = Axis::new(plot.measure, values(&rough), usize::from(ROWS) / 3);
    let marks = axis.marks();
    let margin = marks.iter().map(|mark| mark.1.chars().count()).max().unwrap_or(0).max(4) + 2;
    let margin = u16::try_from(margin).unwrap_or(u16::MAX);
    let width = look.columns.saturating_sub(margin).max(8);
    let columns = columns(plot, since, until, usize::from(width));
    let known = columns.iter().any(|column| column.value.is_some());
    let _ = writeln!(text, "  {} in {}, UTC; ░ {}", plot.what, axis.unit.name, plot.band);
    if plot.unbounded() {
        text += "  ▒ to the edge: no bound is known, because a clock's error is unknown\n";
    }
    let mut buffer = Buffer::empty(Rect::new(0, 0, margin + width, ROWS + 3));
    let dim = Style::new().add_modifier(Modifier::DIM);
    for row in 0..ROWS {
        buffer.set_string(margin - 1, row, "│", dim);
    }
    buffer.set_string(margin - 1, ROWS, format!("└{}", "─".repeat(usize::from(width))), dim);
    if known {
        for (value, mark) in &marks {
            let row = (half_row(&axis, *value) / 2).min(ROWS - 1);
            let end = margin.saturating_sub(1);
            let begin = end.saturating_sub(mark.chars().count() as u16);
            buffer.set_string(begin, row, mark, dim);
            buffer.set_string(end, row, "┤", dim);
        }
    }
    for (x, column) in columns.iter().enumerate() {
        draw_column(&mut buffer, margin + x as u16, column, &axis);
    }
    for (at, mark) in times(since, until, usize::from(width) / 14) {
        let x = margin + (share(at, since, until) * f64::from(width - 1)) as u16;
        buffer.set_string(x, ROWS, "┴", dim);
        let room = usize::from((margin + width).saturating_sub(x));
        if mark.len() <= room {
            buffer.set_string(x, ROWS + 1, &mark, dim);
        }
    }
    let (lost, sent) = plot.lost();
    if sent > 0 {
        buffer.set_string(0, ROWS + 2, "loss", dim);
        for (x, column) in columns.iter().enumerate() {
            if let Some((sign, colour)) = loss_sign(column.lost, column.sent) {
                let style = Style::new().fg(colour);
                buffer.set_string(margin + x as u16, ROWS + 2, sign, style);
            }
        }
    }
    text += &show(&buffer, look.colour);
    if sent > 0 {
        let share = lost as f64 * 100.0 / sent as f64;
        let _ = writeln!(text, "  lost {lost} of {sent} packets ({share:.2} %)");
    }
    if !known {
        text += "  nothing arrived\n";
    }
    text
}

/// The half row of a value, counted from above.
fn half_row(axis: &Axis, value: f64) -> u16 {
    let rows = f64::from(ROWS * 2 - 1);
    ((1.0 - axis.position(value)) * rows).round().clamp(0.0, rows) as u16
}

fn draw_column(buffer: &mut Buffer, x: u16, column: &Column, axis: &Axis) {
    let Some(value) = column.value else { return };
    let open = column.low == f64::NEG_INFINITY || column.high == f64::INFINITY;
    let (sign, colour) = if open { ("▒", Color::Yellow) } else { ("░", Color::Blue) };
    let edge = |value: f64, other: f64| if value.is_finite() { value } else { other };
    let top = half_row(axis, edge(column.high, axis.high)) / 2;
    let bottom = half_row(axis, edge(column.low, axis.low)) / 2;
    for row in top..=bottom.min(ROWS - 1) {
        buffer.set_string(x, row, sign, Style::new().fg(colour));
    }
    let half = half_row(axis, value);
    let sign = if half.is_multiple_of(2) { "▀" } else { "▄" };
    buffer.set_string(x, half / 2, sign, Style::new().fg(Color::Cyan));
}

/// How much was lost: nothing has no sign.
fn loss_sign(lost: u64, sent: u64) -> Option<(&'static str, Color)> {
    if lost == 0 {
        return None;
    }
    Some(match lost as f64 / sent.max(1) as f64 {
        share if share < 0.01 => ("▁", Color::Yellow),
        share if share < 0.1 => ("▃", Color::Yellow),
        share if share < 0.5 => ("▅", Color::Red),
        _ => ("█", Color::Red),
    })
}

/// The buffer's lines without the blanks at their ends; escape sequences only with colours.
fn show(buffer: &Buffer, colour: bool) -> String {
    let mut text = String::new();
    let width = usize::from(buffer.area.width.max(1));
    for line in buffer.content().chunks(width) {
        let end = line.iter().rposition(|cell| cell.symbol() != " ").map_or(0, |last| last + 1);
        let mut now = String::new();
        for cell in line.iter().take(end) {
            let style = if colour { codes(cell.fg, cell.modifier) } else { String::new() };
            if style != now {
                text += "\x1b[0m";
                text += &style;
                now = style;
            }
            text += cell.symbol();
        }
        if !now.is_empty() {
            text += "\x1b[0m";
        }
        text.push('\n');
    }
    text
}

/// The escape sequence of a style (ECMA-48, SGR).
fn codes(colour: Color, modifier: Modifier) -> String {
    let mut codes = Vec::new();
    if modifier.contains(Modifier::DIM) {
        codes.push("2");
    }
    if modifier.contains(Modifier::BOLD) {
        codes.push("1");
    }
    match colour {
        Color::Red => codes.push("31"),
        Color::Green => codes.push("32"),
        Color::Yellow => codes.push("33"),
        Color::Blue => codes.push("34"),
        Color::Cyan => codes.push("36"),
        _ => {}
    }
    if codes.is_empty() { String::new() } else { format!("\x1b[{}m", codes.join(";")) }
}

/// Text of a width, cut where it is longer.
fn fit(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return format!("{text:<width$}");
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// A matrix as text: median above, loss below. As many columns as fit stand beside each other; the others
/// follow below.
pub fn matrix(mesh: &Mesh, look: Look) -> String {
    let mut text = format!("{}\n", mesh.what);
    if mesh.cells.is_empty() {
        return text + "  nothing was measured\n";
    }
    let longest = mesh.from.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let names = longest.clamp(4, 20) + 1;
    let beside = (usize::from(look.columns).saturating_sub(names) / CELL).max(1);
    for block in mesh.to.chunks(beside) {
        let width = names + block.len() * CELL;
        let height = 1 + 2 * mesh.from.len();
        let area = Rect::new(0, 0, width as u16, height as u16);
        let mut buffer = Buffer::empty(area);
        let bold = Style::new().add_modifier(Modifier::BOLD);
        buffer.set_string(0, 0, "from", bold);
        for (n, to) in block.iter().enumerate() {
            let name = fit(to, CELL - 1);
            let x = names + n * CELL + (CELL - 1 - name.trim_end().chars().count());
            buffer.set_string(x as u16, 0, name.trim_end(), bold);
        }
        for (y, from) in mesh.from.iter().enumerate() {
            let row = (1 + 2 * y) as u16;
            buffer.set_string(0, row, fit(from, names - 1), bold);
            for (n, to) in block.iter().enumerate() {
                let right = names + (n + 1) * CELL - 1;
                let mut put = |row: u16, text: &str, style: Style| {
                    let x = right.saturating_sub(text.chars().count());
                    buffer.set_string(x as u16, row, text, style);
                };
                let Some(cell) = mesh.cell(from, to) else {
                    let sign = if from == to { "" } else { "-" };
                    put(row, sign, Style::new().add_modifier(Modifier::DIM));
                    continue;
                };
                let style = Style::new().fg(colour(cell));
                put(row, &cell.median(), style);
                put(row + 1, &cell.loss(), style);
            }
        }
        text += &show(&buffer, look.colour);
    }
    text
}

/// What a cell's loss means.
fn colour(cell: &Cell) -> Color {
    match cell.share_lost() {
        Some(share) if share >= 0.01 => Color::Red,
        Some(share) if share > 0.0 => Color::Yellow,
        Some(_) => Color::Green,
        None => Color::Red,
    }
}

/// A table as text.
pub fn table(table: &Table, look: Look) -> String {
    let mut text = format!("{}\n", table.title);
    if table.rows.is_empty() {
        return text + "  nothing was measured\n";
    }
    let count = table.head.len();
    let all = || std::iter::once(&table.head).chain(table.rows.iter().map(|row| &row.cells));
    let mut widths: Vec<_> = (0..count)
        .map(|n| all().filter_map(|row| row.get(n)).map(|cell| cell.chars().count()).max())
        .map(|width| width.unwrap_or(0))
        .collect();
    // The widest are cut until all fit.
    let room = usize::from(look.columns).saturating_sub(2 * count.saturating_sub(1)).max(count * 3);
    while widths.iter().sum::<usize>() > room {
        let Some(widest) = widths.iter_mut().max() else { break };
        *widest -= 1;
    }
    let mut line = |cells: &[String], codes: &str| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| fit(cell, *width));
        let line = cells.collect::<Vec<_>>().join("  ");
        let (begin, end) =
            if look.colour && !codes.is_empty() { (codes, "\x1b[0m") } else { ("", "") };
        let _ = writeln!(text, "{begin}{}{end}", line.trim_end());
    };
    line(&table.head, "\x1b[1m");
    for row in &table.rows {
        line(&row.cells, if row.alarm { "\x1b[31m" } else { "" });
    }
    text
}
