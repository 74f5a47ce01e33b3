//! Draws the view.

use super::model::{Model, Row};
use crate::{
    LinkSettings,
    control::{HostView, LinkView, Sort},
};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Block, Cell, List, ListItem, Paragraph, Row as TableRow, Table},
};
use terminal::{
    screen::{bar, draw_keys, paused, right},
    text::short,
};

/// Rows that the boxes at the bottom have at least.
const BOTTOM: u16 = 9;
/// Columns for a link's name, at least.
const NAME: usize = 12;
/// A link that uses more than this share of its rate is busy.
const BUSY: f64 = 0.8;

/// The whole view.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model) {
    // What links do not need is for the events.
    let room = frame.area().height.saturating_sub(2 + BOTTOM + 1).max(4);
    let rows = u16::try_from(model.rows.len() + 3).unwrap_or(u16::MAX);
    let [head, links, bottom, keys] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(rows.min(room)),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(summary(model)), head);
    draw_links(frame, links, model);
    let lines: Vec<_> =
        model.status.iter().flat_map(|status| &status.hosts).map(host_line).collect();
    let longest = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let wide = u16::try_from(longest + 2).unwrap_or(u16::MAX).clamp(10, (bottom.width / 2).max(10));
    let [hosts, events] =
        Layout::horizontal([Constraint::Length(wide), Constraint::Min(0)]).areas(bottom);
    let title = format!("hosts: {}", lines.len());
    let hosts_list = List::new(lines).block(Block::bordered().title(title));
    frame.render_widget(hosts_list, hosts);
    let items = model.events.iter().map(|event| ListItem::new(event.to_string()));
    frame.render_widget(List::new(items).block(Block::bordered().title("events")), events);
    draw_keys(frame, keys, model.is_paused(), "sort by b bytes, k packets, d drops");
}

fn summary(model: &Model) -> Vec<Line<'static>> {
    let Some(status) = &model.status else { return vec![Line::from("loading ...")] };
    let scene = status.scene.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut first = vec![
        Span::styled(scene, Style::new().bold()),
        Span::raw(format!(
            "  {} nodes, {} links, runs {} s",
            status.nodes,
            status.links,
            status.runs.0 / 1_000_000_000
        )),
    ];
    if model.is_paused() {
        first.push(paused());
    }
    if !status.down.is_empty() {
        let down = format!("  down: {}", status.down.join(", "));
        first.push(Span::styled(down, Style::new().fg(Color::Red)));
    }
    let [received, sent] = model.rates;
    let second = format!(
        "{}/s from hosts, {}/s to hosts, {} in flight",
        short(received),
        short(sent),
        status.packets.in_flight
    );
    vec![Line::from(first), Line::from(second)]
}

fn draw_links(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let head = TableRow::new([
        Cell::from("link"),
        right("bit/s"),
        right("packets/s"),
        right("drops/s"),
        Cell::from("load"),
        right("dropped"),
        Cell::from("settings"),
    ])
    .style(Style::new().add_modifier(Modifier::BOLD));
    let room = usize::from(area.height.saturating_sub(3));
    let shown = || model.rows.iter().skip(model.top).take(room);
    // A name says more when it is whole: its settings have the rest.
    let most = usize::from(area.width / 3).max(NAME);
    let longest = shown().map(|row| name(row).chars().count()).max().unwrap_or(0);
    let wide = longest.clamp(NAME, most) as u16;
    let rows = shown().map(row);
    let widths = [
        Constraint::Length(wide),
        Constraint::Length(6),
        Constraint::Length(9),
        Constraint::Length(7),
        Constraint::Length(8),
        Constraint::Length(7),
        Constraint::Fill(1),
    ];
    let by = match model.sort() {
        Sort::Packets => "packets",
        Sort::Drops => "drops",
        Sort::Bytes | Sort::Number => "bytes",
    };
    let title = format!("links by {by}: {} of {}", model.rows.len(), model.total);
    let table = Table::new(rows, widths).header(head).block(Block::bordered().title(title));
    frame.render_widget(table, area);
}

fn row(row: &Row) -> TableRow<'static> {
    let link = &row.link;
    let style = match (link.settings.up, row.drops > 0.0, row.load()) {
        (false, ..) => Style::new().fg(Color::DarkGray),
        (_, true, _) => Style::new().fg(Color::Red),
        (_, _, Some(load)) if load > BUSY => Style::new().fg(Color::Yellow),
        _ => Style::new(),
    };
    let right = |number| right(short(number));
    TableRow::new([
        Cell::from(name(row)),
        right(row.bits),
        right(row.packets),
        right(row.drops),
        Cell::from(row.load().map_or_else(String::new, bar)),
        right(link.dropped as f64),
        Cell::from(does(link)),
    ])
    .style(style)
}

/// A link's name, with a star if it was changed.
fn name(row: &Row) -> String {
    let mark = if row.link.changed { "*" } else { "" };
    format!("{}>{}{mark}", row.link.from, row.link.to)
}

/// What a link does; that it is down comes first.
fn does(link: &LinkView) -> String {
    let wire = if link.wire { "wire " } else { "" };
    let down = if link.settings.up { "" } else { "DOWN " };
    let settings = LinkSettings { up: true, ..link.settings };
    format!("{down}{wire}{settings}").trim_end().to_owned()
}

fn host_line(host: &HostView) -> String {
    let addresses: Vec<_> = host.addresses.iter().map(|net| net.addr().to_string()).collect();
    format!("{} at {}  {}", host.name, host.node, addresses.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Nanos,
        control::{Event, Links, Status, Totals, What},
    };
    use terminal::screen::{self, Key, KeyCode};

    fn link(number: u32, bytes: u64, dropped: u64, settings: &str) -> LinkView {
        LinkView {
            number,
            from: format!("as{number}"),
            to: "as99".to_owned(),
            settings: settings.parse().expect("settings"),
            wire: number == 3,
            changed: number == 2,
            packets: bytes / 1000,
            bytes,
            dropped,
        }
    }

    fn status(seconds: u64, received: u64) -> Status {
        Status {
            pid: 7,
            scene: "/tmp/demo.toml".into(),
            runs: Nanos(seconds * 1_000_000_000),
            nodes: 1_000_000,
            links: 5_000_000,
            hosts: vec![HostView {
                name: "pc".to_owned(),
                node: "as1".to_owned(),
                addresses: vec!["20.0.0.10/24".parse().expect("an address")],
                namespace: None,
            }],
            packets: Totals { received, ..Totals::default() },
            down: vec!["as5".to_owned()],
            touched: Vec::new(),
            touched_total: 0,
        }
    }

    /// The screen's lines.
    fn screen(model: &Model) -> Vec<String> {
        screen_of(model, 100, 24)
    }

    fn screen_of(model: &Model, columns: u16, lines: u16) -> Vec<String> {
        screen::lines(columns, lines, |frame| draw(frame, model)).expect("a picture")
    }

    fn model() -> Model {
        let mut model = Model::default();
        for (seconds, bytes) in [(10, 0), (12, 250_000)] {
            let links = vec![
                link(1, bytes, 0, "delay=10ms rate=1Mbit"),
                link(2, bytes / 100, 5 * seconds, "loss=1%"),
            ];
            model.update(status(seconds, seconds * 100), Links { total: 2, links });
        }
        let what = What::Node { node: "as5".to_owned(), up: false };
        model.happened([Event { at: Nanos(11_000_000_000), what }].into_iter());
        model
    }

    #[test]
    fn links_hosts_and_events_are_shown_with_what_they_do_at_the_moment() {
        let screen = screen(&model());
        let text = screen.join("\n");
        assert!(screen[0].contains("demo.toml  1000000 nodes, 5000000 links, runs 12 s"), "{text}");
        assert!(screen[0].contains("down: as5"), "{text}");
        assert!(screen[1].starts_with("100/s from hosts"), "{text}");
        // 250,000 bytes in 2 s are 1 Mbit/s, all of the rate.
        let line = screen.iter().find(|line| line.contains("as1>as99")).expect("the link");
        assert!(line.contains("1.0M") && line.contains("████████"), "{text}");
        let line = screen.iter().find(|line| line.contains("as2>as99*")).expect("the link");
        assert!(line.contains(" 5 ") && line.contains("loss=1%"), "{text}");
        assert!(text.contains("pc at as1  20.0.0.10"), "{text}");
        assert!(text.contains("node as5 is down"), "{text}");
    }

    #[test]
    fn names_are_whole_and_a_link_that_is_down_says_so_in_a_small_terminal() {
        let mut model = Model::default();
        let mut down = link(123_456, 0, 0, "delay=10ms rate=100Mbit queue=64KB up=false");
        "frankfurt-am-main".clone_into(&mut down.to);
        model.update(status(1, 0), Links { total: 1, links: vec![down] });
        let screen = screen_of(&model, 80, 24);
        let line = screen.iter().find(|line| line.contains("as123456")).expect("the link");
        assert!(
            line.contains("as123456>frankfurt-am-main ") && line.contains("DOWN dela"),
            "{line}"
        );
        assert!(screen.join("\n").contains("pc at as1  20.0.0.10"));
        // The rest of a large one is for the events, which begin below the only link.
        let screen = screen_of(&model, 200, 50);
        assert!(screen[6].contains("events"), "{}", screen.join("\n"));
    }

    #[test]
    fn keys_sort_scroll_pause_and_quit() {
        let mut model = model();
        let first = |model: &Model| model.rows[0].link.number;
        assert_eq!(first(&model), 1);
        assert!(!model.press(Key::Other(KeyCode::Char('d'))));
        assert_eq!(first(&model), 2);
        assert!(!model.press(Key::Other(KeyCode::Char('k'))));
        assert_eq!(first(&model), 1);
        model.press(Key::Down(5));
        assert_eq!(model.top, 1);
        assert!(!screen(&model).iter().any(|line| line.contains("as1>as99")));
        model.press(Key::Up(usize::MAX));
        assert_eq!(model.top, 0);
        model.press(Key::Pause);
        assert!(model.is_paused());
        assert!(screen(&model)[0].contains("PAUSED"));
        assert!(model.press(Key::Quit));
    }

    #[test]
    fn nothing_known_and_a_tiny_terminal_are_no_trouble() {
        let text = screen(&Model::default()).join("\n");
        assert!(text.contains("loading"), "{text}");
        for size in [(1, 1), (10, 3), (40, 12)] {
            screen_of(&model(), size.0, size.1);
        }
    }
}
