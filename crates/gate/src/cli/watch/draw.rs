//! Draws the view. 80 columns and 24 lines are enough.

use super::model::{KEPT, Model, Row};
use crate::{
    control::By,
    status::{Recent, Status},
};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Block, Cell, List, ListItem, Paragraph, Row as TableRow, Table},
};
use terminal::{
    screen::{curve, draw_keys, paused, right},
    text::short,
};

/// Rows of the boxes at the bottom, with their frames, at least.
const BOTTOM: u16 = 8;
/// Columns of the box of files and limits.
const FILES: u16 = 34;

/// The whole view.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model) {
    let Some(status) = &model.status else { return };
    let head = summary(model, status);
    let lines = u16::try_from(head.len()).unwrap_or(u16::MAX);
    // What the table does not need is for what happens.
    let room = frame.area().height.saturating_sub(lines + BOTTOM + 1).max(4);
    let rows = u16::try_from(model.rows.len() + 3).unwrap_or(u16::MAX);
    let [top, table, bottom, keys] = Layout::vertical([
        Constraint::Length(lines),
        Constraint::Length(rows.clamp(4, room)),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(head), top);
    draw_rows(frame, table, model);
    let [files, events] =
        Layout::horizontal([Constraint::Length(FILES), Constraint::Min(0)]).areas(bottom);
    let lines = files_and_limits(model, status);
    let block = Block::bordered().title("files and limits");
    frame.render_widget(List::new(lines).block(block), files);
    let items = status.recent.iter().map(|event| ListItem::new(happened(event)));
    let block = Block::bordered().title("refusals and scans");
    frame.render_widget(List::new(items).block(block), events);
    let other = match model.by() {
        By::Application => "hosts",
        By::Host => "applications",
    };
    draw_keys(frame, keys, model.is_paused(), &format!("h {other}"));
}

fn summary(model: &Model, status: &Status) -> Vec<Line<'static>> {
    let warn = |text: String| Span::styled(text, Style::new().fg(Color::Red).bold());
    let mut first = vec![Span::styled("gate ", Style::new().bold())];
    first.push(match status.problems.is_empty() {
        true => Span::styled("healthy", Style::new().fg(Color::Green)),
        false => warn("NOT HEALTHY".into()),
    });
    first.push(Span::raw(format!(
        ", internal {}; {} flows, {} inspected",
        status.internal.join(", "),
        status.flows.decided,
        status.flows.undecided
    )));
    if status.bypass {
        first.push(warn("  SWITCHED OFF (bypass)".into()));
    }
    if model.is_paused() {
        first.push(paused());
    }
    let places = model.rates.iter().map(|(place, rates)| {
        let [packets, refused] = [rates.packets, rates.refused].map(short);
        format!("{}: {packets} packets/s, {refused} refused/s", place.replace('_', " "))
    });
    let mut lines = vec![Line::from(first), Line::from(places.collect::<Vec<_>>().join("   "))];
    lines.extend(status.problems.iter().take(2).map(|text| Line::from(warn(format!("! {text}")))));
    lines
}

fn draw_rows(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let name = match model.by() {
        By::Application => "application",
        By::Host => "host",
    };
    let head = [name, "bit/s", "last 30 s", "flows", "bytes", "refused"].map(str::to_owned);
    let [name, rate, past, flows, bytes, refused] = head;
    let head = TableRow::new([
        Cell::from(name),
        right(rate),
        Cell::from(past),
        right(flows),
        right(bytes),
        right(refused),
    ])
    .style(Style::new().add_modifier(Modifier::BOLD));
    let room = usize::from(area.height.saturating_sub(3));
    // Two columns of the frame, five between columns, the numbers, and the name.
    let past = usize::from(area.width).saturating_sub(2 + 5 + 7 + 7 + 7 + 8 + 20).clamp(8, KEPT);
    let shown = model.rows.iter().skip(model.scrolled).take(room);
    let rows = shown.map(|row| {
        let style = match row.refused {
            0 => Style::new(),
            _ => Style::new().fg(Color::Yellow),
        };
        TableRow::new([
            Cell::from(row.top.name.clone()),
            right(short(row.top.bits_per_second as f64)),
            Cell::from(Span::styled(curve(row.rates.iter(), past), Style::new().fg(Color::Cyan))),
            right(short(row.top.flows as f64)),
            right(short(row.top.bytes as f64)),
            right(refusals(model, row)),
        ])
        .style(style)
    });
    let widths = [
        Constraint::Fill(1),
        Constraint::Length(7),
        Constraint::Length(u16::try_from(past).unwrap_or(u16::MAX)),
        Constraint::Length(7),
        Constraint::Length(7),
        Constraint::Length(8),
    ];
    let what = match model.by() {
        By::Application => "applications",
        By::Host => "internal hosts",
    };
    let title = format!("{what} by rate: {}", model.rows.len());
    let table = Table::new(rows, widths).header(head).block(Block::bordered().title(title));
    frame.render_widget(table, area);
}

/// Flows refused, which are not counted by host.
fn refusals(model: &Model, row: &Row) -> String {
    match model.by() {
        By::Application => short(row.refused as f64),
        By::Host => "-".into(),
    }
}

fn files_and_limits(model: &Model, status: &Status) -> Vec<ListItem<'static>> {
    let files = &status.files;
    let red = |count: u64| match count {
        0 => Style::new(),
        _ => Style::new().fg(Color::Red),
    };
    let mut lines = vec![
        ListItem::new(format!("{} files, {} denied", files.seen, files.denied)),
        ListItem::new(Line::from(vec![
            Span::raw(format!("{} clean, ", files.clean)),
            Span::styled(format!("{} found", files.found), red(files.found)),
            Span::styled(format!(", {} not scanned", files.unscanned), red(files.unscanned)),
        ])),
        ListItem::new(format!(
            "{}B wait for a verdict",
            short((files.waiting_bytes + files.scanning_bytes) as f64)
        )),
    ];
    for (limit, [to, from]) in status.limits.iter().zip(&model.limits) {
        let share = if limit.share.is_empty() { "" } else { " of " };
        lines.push(ListItem::new(format!(
            "{}{share}{}: {} in, {} out",
            limit.limit,
            limit.share,
            short(*to),
            short(*from)
        )));
    }
    lines
}

fn happened(event: &Recent) -> Line<'static> {
    let ago = match event.seconds_ago as u64 {
        seconds @ 0..100 => format!("{seconds:>2} s "),
        seconds @ 100..6000 => format!("{:>2} m ", seconds / 60),
        seconds => format!("{:>2} h ", seconds / 3600),
    };
    let style = if event.threat { Style::new().fg(Color::Red) } else { Style::new() };
    Line::from(vec![Span::styled(ago, Style::new().dim()), Span::styled(event.text.clone(), style)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{LimitStatus, Packets, TopRow, TopStatus};
    use std::time::{Duration, Instant};
    use terminal::screen::{self, Key};

    fn status(refused: u64, through: u64) -> Status {
        let outcomes = [("dropped_verdict".to_owned(), refused), ("passed_decided".into(), 900)];
        let packets =
            Packets { received: 900 + refused, outcomes: outcomes.into(), ..Packets::default() };
        Status {
            internal: vec!["eth1".into()],
            packets: [("from_internal".to_owned(), packets)].into(),
            refused: [("bittorrent".to_owned(), 12)].into(),
            limits: vec![LimitStatus {
                limit: "slow".into(),
                share: "10.0.0.5".into(),
                bytes_to_internal: through,
                ..LimitStatus::default()
            }],
            recent: vec![Recent {
                seconds_ago: 3.4,
                threat: true,
                refused: true,
                text: "found Eicar in eicar.com".into(),
            }],
            ..Status::default()
        }
    }

    fn model(looks: u64) -> Model {
        let (mut model, start) = (Model::default(), Instant::now());
        for look in 0..looks {
            let row = |name: &str, rate| TopRow {
                name: name.into(),
                bits_per_second: rate,
                flows: 2,
                bytes: 3_000_000,
            };
            let rows = vec![row("http", 8_000_000), row("bittorrent", 1000 * look)];
            let top = TopStatus { by: model.by(), rows };
            let now = start + Duration::from_secs(2 * look);
            model.update(now, status(100 * look, 500_000 * look), top);
        }
        model
    }

    fn screen(model: &Model, columns: u16, lines: u16) -> Vec<String> {
        screen::lines(columns, lines, |frame| draw(frame, model)).expect("a picture")
    }

    #[test]
    fn applications_refusals_limits_and_finds_are_shown_as_of_this_moment() {
        let screen = screen(&model(3), 80, 24);
        let text = screen.join("\n");
        assert!(screen[0].starts_with("gate healthy, internal eth1"), "{text}");
        assert!(screen[1].contains("from internal: 50 packets/s, 50 refused/s"), "{text}");
        let line = screen.iter().find(|line| line.contains("http")).expect("an application");
        assert!(line.contains("8.0M") && line.contains("███"), "{text}");
        let line = screen.iter().find(|line| line.contains("bittorrent")).expect("the other");
        assert!(line.contains("2.0k") && line.contains("▅█") && line.contains(" 12"), "{text}");
        // 500,000 bytes in 2 s.
        assert!(text.contains("slow of 10.0.0.5: 2.0M in, 0 out"), "{text}");
        assert!(text.contains(" 3 s found Eicar in eicar.com"), "{text}");
    }

    #[test]
    fn what_is_scrolled_away_is_not_shown_and_no_size_is_too_small() {
        let mut model = model(2);
        assert!(!model.press(Key::Down(1)));
        let text = screen(&model, 80, 24).join("\n");
        assert!(!text.contains("http") && text.contains("bittorrent"), "{text}");
        for (columns, lines) in [(1, 1), (20, 5), (200, 60)] {
            screen(&model, columns, lines);
        }
        assert!(!model.press(Key::Down(usize::MAX)) && !model.press(Key::Up(usize::MAX)));
        assert_eq!(model.scrolled, 0);
    }
}
