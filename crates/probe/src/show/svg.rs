//! Drawing as SVG: a picture that says in words what it shows (title and desc), and that goes with light
//! and dark pages.

use super::{
    axis::{Axis, moment, share, times},
    columns::{Column, columns, values},
    list::Table,
    mesh::{Cell, Mesh},
    points::Plot,
};
use std::fmt::Write as _;
use terminal::markup::escape;

/// Width of a picture of charts.
const WIDTH: f64 = 900.0;
/// Height of a chart with its words.
const PANEL: f64 = 330.0;
/// Where the area of a chart begins and ends within it.
const LEFT: f64 = 78.0;
const RIGHT: f64 = WIDTH - 24.0;
const TOP: f64 = 62.0;
const BOTTOM: f64 = 262.0;
/// Where the loss is drawn, and how high.
const LOSS: f64 = 290.0;
const LOSS_HEIGHT: f64 = 10.0;
/// Columns into which a chart's time is divided.
const COLUMNS: usize = 400;

/// A run of so few columns is a dot.
const DOT: usize = 3;

/// Colours for light and dark, and a pattern for what has no bound.
const STYLE: &str = r##"<style>
svg{--page:#fff;--ink:#1b1f24;--soft:#57606a;--line:#d8dee4;--band:#9ecbff;--value:#0550ae;--warn:#b35900;--bad:#cf222e;--good:#2da44e}
@media(prefers-color-scheme:dark){svg{--page:#0d1117;--ink:#e6edf3;--soft:#9198a1;--line:#30363d;--band:#1f4b80;--value:#79c0ff;--warn:#f0883e;--bad:#ff7b72;--good:#3fb950}}
text{font:13px system-ui,sans-serif;fill:var(--ink)}.h{font-size:16px;font-weight:600}.s{font-size:12px;fill:var(--soft)}.m{font-family:ui-monospace,monospace}.page{fill:var(--page)}.g{stroke:var(--line);stroke-width:1;fill:none}.b{fill:var(--band);opacity:.75}.v{stroke:var(--value);stroke-width:1.8;fill:none;stroke-linejoin:round}.d{fill:var(--value)}.l{fill:var(--bad)}.c{stroke:var(--line)}.alarm{fill:var(--bad)}
</style>
<defs><pattern id="open" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="2" height="6" fill="var(--warn)" opacity=".45"/></pattern></defs>
"##;

/// A picture around its parts.
fn picture(width: f64, height: f64, title: &str, description: &str, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" aria-labelledby=\"title desc\">\n\
         <title id=\"title\">{}</title>\n<desc id=\"desc\">{}</desc>\n{STYLE}\
         <rect class=\"page\" width=\"100%\" height=\"100%\"/>\n{body}</svg>\n",
        escape(title),
        escape(description)
    )
}

/// A text at a place.
fn text(body: &mut String, x: f64, y: f64, class: &str, anchor: &str, text: &str) {
    let _ = writeln!(
        body,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\" text-anchor=\"{anchor}\">{}</text>",
        escape(text)
    );
}

/// Plots, one below the other. The time is each plot's own where none is given.
pub fn chart(plots: &[Plot], range: Option<(i64, i64)>) -> String {
    let mut body = String::new();
    let mut words = Vec::new();
    for (n, plot) in plots.iter().enumerate() {
        let _ = writeln!(body, "<g transform=\"translate(0 {:.0})\">", n as f64 * PANEL);
        words.push(panel(&mut body, plot, range));
        body += "</g>\n";
    }
    if plots.is_empty() {
        text(&mut body, 20.0, 40.0, "h", "start", "Nothing was measured");
        words.push("Nothing was measured.".to_owned());
    }
    let title = match plots {
        [plot] => format!("{}, {}", plot.title, plot.what),
        [plot, ..] => format!("{} between {} pairs", plot.what, plots.len()),
        [] => "Nothing was measured".to_owned(),
    };
    let height = if plots.is_empty() { 70.0 } else { plots.len() as f64 * PANEL };
    picture(WIDTH, height, &title, &words.join(" "), &body)
}

/// A plot; gives what it shows in words.
fn panel(body: &mut String, plot: &Plot, range: Option<(i64, i64)>) -> String {
    let (since, until) = range.unwrap_or_else(|| plot.extent());
    let columns = columns(plot, since, until, COLUMNS);
    let axis = Axis::new(plot.measure, values(&columns), 5);
    text(body, 20.0, 26.0, "h", "start", &plot.title);
    let open = if plot.unbounded() { "; hatched: no bound is known" } else { "" };
    let what = format!("{} in {}, times in UTC; {}{open}", plot.what, axis.unit.name, plot.band);
    text(body, 20.0, 46.0, "s", "start", &what);
    let known = columns.iter().any(|column| column.value.is_some());
    let y = |value: f64| BOTTOM - axis.position(value).clamp(0.0, 1.0) * (BOTTOM - TOP);
    if known {
        for (value, mark) in axis.marks() {
            let y = y(value);
            let _ = writeln!(body, "<path class=\"g\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/>");
            text(body, LEFT - 8.0, y + 4.0, "s", "end", &mark);
        }
    } else {
        let _ = writeln!(body, "<path class=\"g\" d=\"M{LEFT} {BOTTOM}H{RIGHT}\"/>");
        let middle = (LEFT + RIGHT) / 2.0;
        let none = if plot.points.is_empty() { "nothing was measured" } else { "nothing arrived" };
        text(body, middle, (TOP + BOTTOM) / 2.0, "s", "middle", none);
    }
    for (at, mark) in times(since, until, 8) {
        let x = LEFT + share(at, since, until) * (RIGHT - LEFT);
        let _ = writeln!(body, "<path class=\"g\" d=\"M{x:.1} {BOTTOM}v5\"/>");
        text(body, x, BOTTOM + 19.0, "s", "middle", &mark);
    }
    curves(body, &columns, &axis, &y);
    let (_, sent) = plot.lost();
    if sent > 0 {
        text(body, LEFT - 8.0, LOSS + LOSS_HEIGHT, "s", "end", "loss");
        losses(body, &columns);
    }
    describe(plot, since, until)
}

/// Where a column begins.
fn column_x(column: usize) -> f64 {
    LEFT + column as f64 / COLUMNS as f64 * (RIGHT - LEFT)
}

/// The bands, then the values over them.
fn curves(body: &mut String, columns: &[Column], axis: &Axis, y: &impl Fn(f64) -> f64) {
    let is_open = |column: &Column| !column.low.is_finite() || !column.high.is_finite();
    let mut begin = 0;
    let mut lines = String::new();
    let numbered: Vec<_> = columns.iter().enumerate().collect();
    // Runs of columns with values; a band changes its look within a run where its bound is not known.
    for run in numbered.chunk_by(|a, b| a.1.value.is_some() == b.1.value.is_some()) {
        let at = begin;
        begin += run.len();
        if run.first().is_none_or(|column| column.1.value.is_none()) {
            continue;
        }
        for band in run.chunk_by(|a, b| is_open(a.1) == is_open(b.1)) {
            let fill = band.first().is_some_and(|column| is_open(column.1));
            // Around it: the upper ends to the right, the lower ones back. Equal ones are one step.
            let ends = |column: &Column| {
                let high = if column.high.is_finite() { column.high } else { axis.high };
                let low = if column.low.is_finite() { column.low } else { axis.low };
                (y(high), y(low))
            };
            let mut path = String::new();
            let mut back = Vec::new();
            for step in band.chunk_by(|a, b| ends(a.1) == ends(b.1)) {
                let ([(first, column), ..], [.., (last, _)]) = (step, step) else { continue };
                let (x0, x1, (high, low)) = (column_x(*first), column_x(last + 1), ends(column));
                let start = if path.is_empty() { 'M' } else { 'L' };
                let _ = write!(path, "{start}{x0:.1} {high:.1}H{x1:.1}");
                back.push(format!("L{x1:.1} {low:.1}H{x0:.1}"));
            }
            path.extend(back.into_iter().rev());
            path.push('Z');
            let fill = if fill { "fill=\"url(#open)\"" } else { "class=\"b\"" };
            let _ = writeln!(body, "<path {fill} d=\"{path}\"/>");
        }
        let middle = |n: usize| (column_x(n) + column_x(n + 1)) / 2.0;
        let height = |column: &Column| y(column.value.unwrap_or_default());
        if let [(n, column), ..] = run
            && run.len() <= DOT
        {
            let (x, y) = (middle(*n), height(column));
            let circle = format!("<circle class=\"d\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>\n");
            lines += &circle;
            continue;
        }
        let mut path = String::new();
        for (i, (n, column)) in run.iter().enumerate() {
            // A point between two of the same height lies on the line between them.
            let near = [i.wrapping_sub(1), i + 1].map(|i| run.get(i).map(|(_, it)| height(it)));
            if near == [Some(height(column)); 2] {
                continue;
            }
            let x = match *n {
                n if n == at => column_x(n),
                n if n + 1 == begin => column_x(n + 1),
                n => middle(n),
            };
            let _ = write!(path, "L{x:.1} {:.1}", height(column));
        }
        let _ = writeln!(lines, "<path class=\"v\" d=\"M{}\"/>", path.trim_start_matches('L'));
    }
    *body += &lines;
}

/// Where packets were lost; the more, the stronger.
fn losses(body: &mut String, columns: &[Column]) {
    let width = (RIGHT - LEFT) / COLUMNS as f64;
    let _ = writeln!(body, "<path class=\"g\" d=\"M{LEFT} {:.1}H{RIGHT}\"/>", LOSS + LOSS_HEIGHT);
    for (n, column) in columns.iter().enumerate().filter(|(_, column)| column.lost > 0) {
        let share = column.lost as f64 / column.sent.max(1) as f64;
        let _ = writeln!(
            body,
            "<rect class=\"l\" x=\"{:.1}\" y=\"{LOSS}\" width=\"{:.1}\" height=\"{LOSS_HEIGHT}\" opacity=\"{:.2}\"/>",
            column_x(n),
            width.max(1.5),
            (0.35 + share).min(1.0)
        );
    }
}

/// What a plot shows, in words.
fn describe(plot: &Plot, since: i64, until: i64) -> String {
    let values = || plot.points.iter().filter_map(|point| point.value);
    let mut words =
        format!("{}, {}, from {} to {} UTC: ", plot.title, plot.what, moment(since), moment(until));
    let (low, high) = (values().reduce(f64::min), values().reduce(f64::max));
    match (low, high) {
        (Some(low), Some(high)) => {
            let (low, high) = (plot.measure.text(low), plot.measure.text(high));
            let _ = write!(words, "between {low} and {high}, measured {} times", values().count());
        }
        _ => words += "no value",
    }
    if plot.unbounded() {
        words += "; at times no bound of the true value is known";
    }
    let (lost, sent) = plot.lost();
    if sent > 0 {
        let _ = write!(words, "; {lost} of {sent} packets were lost");
    }
    words + "."
}

/// A matrix: who measured at the left, who was measured above.
pub fn matrix(mesh: &Mesh) -> String {
    const CELL: [f64; 2] = [92.0, 46.0];
    let longest =
        mesh.from.iter().chain(&mesh.to).map(|name| name.chars().count()).max().unwrap_or(0);
    let left = 30.0 + 8.0 * longest.clamp(4, 30) as f64;
    let top = 84.0;
    let mut body = String::new();
    text(&mut body, 20.0, 26.0, "h", "start", "Mesh");
    text(&mut body, 20.0, 46.0, "s", "start", &mesh.what);
    let cut = |name: &str, most: usize| match name.chars().count() > most {
        true => name.chars().take(most - 1).chain(['…']).collect(),
        false => name.to_owned(),
    };
    for (n, to) in mesh.to.iter().enumerate() {
        let x = left + (n as f64 + 0.5) * CELL[0];
        text(&mut body, x, top - 8.0, "", "middle", &cut(to, 12));
    }
    let medians = mesh.cells.iter().filter_map(|cell| cell.median);
    let most = medians.map(|median| median.estimate_ns.max(0)).max().unwrap_or(0).max(1);
    for (m, from) in mesh.from.iter().enumerate() {
        let y = top + m as f64 * CELL[1];
        text(&mut body, left - 8.0, y + CELL[1] / 2.0 + 4.0, "", "end", &cut(from, 30));
        for (n, to) in mesh.to.iter().enumerate() {
            let x = left + n as f64 * CELL[0];
            let cell = mesh.cell(from, to);
            let (fill, opacity) = cell.map_or(("var(--page)", 1.0), |cell| paint(cell, most));
            let _ = writeln!(
                body,
                "<rect class=\"c\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{}\" height=\"{}\" fill=\"{fill}\" fill-opacity=\"{opacity:.2}\"/>",
                CELL[0], CELL[1]
            );
            let middle = x + CELL[0] / 2.0;
            match cell {
                Some(cell) => {
                    text(&mut body, middle, y + 20.0, "", "middle", &cell.median());
                    text(&mut body, middle, y + 37.0, "s", "middle", &cell.loss());
                }
                None if from != to => text(&mut body, middle, y + 28.0, "s", "middle", "-"),
                None => {}
            }
        }
    }
    let height = top + mesh.from.len() as f64 * CELL[1] + 40.0;
    let width = (left + mesh.to.len() as f64 * CELL[0] + 20.0).max(420.0);
    let key = "blue: darker is longer; red: 1 % or more was lost";
    text(&mut body, 20.0, height - 14.0, "s", "start", key);
    let words = mesh.cells.iter().map(|cell| {
        let loss = if cell.sent > 0 { format!(", {} lost", cell.loss()) } else { String::new() };
        format!("{} to {}: {}{loss}.", cell.from, cell.to, cell.median())
    });
    let words = if mesh.cells.is_empty() {
        "Nothing was measured.".to_owned()
    } else {
        words.collect::<Vec<_>>().join(" ")
    };
    picture(width, height, &mesh.what, &words, &body)
}

/// A cell's colour and its strength.
fn paint(cell: &Cell, most: i64) -> (&'static str, f64) {
    match (cell.share_lost(), cell.median) {
        (Some(share), _) if share >= 0.01 => ("var(--bad)", (0.25 + share).min(0.6)),
        (_, Some(median)) => {
            ("var(--band)", 0.1 + 0.8 * median.estimate_ns.max(0) as f64 / most as f64)
        }
        _ => ("var(--bad)", 0.6),
    }
}

/// A table.
pub fn table(table: &Table) -> String {
    const CHARACTER: f64 = 8.0;
    const LINE: f64 = 22.0;
    let all = || std::iter::once(&table.head).chain(table.rows.iter().map(|row| &row.cells));
    let width = |n: usize| {
        let cells = all().filter_map(|row| row.get(n)).map(|cell| cell.chars().count());
        cells.max().unwrap_or(0) as f64 * CHARACTER + 18.0
    };
    let mut positions = vec![20.0];
    for n in 0..table.head.len() {
        let last = positions.last().copied().unwrap_or(0.0);
        positions.push(last + width(n));
    }
    let mut body = String::new();
    text(&mut body, 20.0, 26.0, "h", "start", &table.title);
    let mut words = Vec::new();
    for (n, cells) in all().enumerate() {
        let y = 56.0 + n as f64 * LINE;
        let alarm = n.checked_sub(1).and_then(|n| table.rows.get(n)).is_some_and(|row| row.alarm);
        let class = match (n, alarm) {
            (0, _) => "s",
            (_, true) => "m alarm",
            _ => "m",
        };
        for (x, cell) in positions.iter().zip(cells).filter(|(_, cell)| !cell.is_empty()) {
            text(&mut body, *x, y, class, "start", cell.trim_start());
        }
        if n > 0 {
            words.push(cells.iter().map(|cell| cell.trim()).collect::<Vec<_>>().join(", "));
        }
    }
    if table.rows.is_empty() {
        text(&mut body, 20.0, 78.0, "s", "start", "nothing was measured");
        words.push("Nothing was measured".to_owned());
    }
    let width = positions.last().copied().unwrap_or(0.0).max(420.0);
    let height = 56.0 + table.rows.len().max(1) as f64 * LINE + 14.0;
    picture(width, height, &table.title, &(words.join(". ") + "."), &body)
}
