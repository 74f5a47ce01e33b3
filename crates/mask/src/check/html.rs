//! The report as a page: one file with its style, no script and nothing from elsewhere, for screens and paper.

use super::{Anonymity, Report, Reveals, fingerprints::remedy};
use crate::counted::counted;
use std::fmt::Write as _;
use terminal::markup::escape;

const STYLE: &str = "
:root{--page:#fff;--ink:#1b1f24;--soft:#57606a;--line:#d8dee4;--bar:#0550ae;--bad:#cf222e;--good:#1a7f37}
@media screen and (prefers-color-scheme:dark){:root{--page:#0d1117;--ink:#e6edf3;--soft:#9198a1;\
--line:#30363d;--bar:#79c0ff;--bad:#ff7b72;--good:#3fb950}}
body{font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:60rem;\
margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem .3rem 0;border-bottom:1px solid var(--line)}
code{font:13px ui-monospace,monospace}.soft{color:var(--soft)}
.leak{color:var(--bad);font-weight:600}.clean{color:var(--good);font-weight:600}
svg{display:block;max-width:100%;margin:.8rem 0}svg text{font:13px system-ui,sans-serif;fill:var(--ink)}
svg rect{fill:var(--bar)}
@media print{body{margin:0;max-width:none}h2{break-after:avoid}tr,svg{break-inside:avoid}}
";

/// Width of a picture, and where its bars begin and end.
const WIDTH: f64 = 720.0;
const BEGIN: f64 = 250.0;
const END: f64 = 590.0;
/// Height of a bar with the room around it.
const ROW: f64 = 24.0;
/// Most bars of a picture.
const BARS: usize = 20;

impl Report {
    /// The report as an HTML page, of files of these names.
    pub fn html(&self, masked: &str, original: &str) -> String {
        let mut body = String::new();
        let class = if self.leaks { "leak" } else { "clean" };
        paragraph(&mut body, class, self.verdict());
        let packets = counted(self.masked, "packet", "packets");
        let of = format!("{masked} against {original}: {packets}, {}", self.packets);
        paragraph(&mut body, "soft", &of);
        paragraph(&mut body, "soft", &format!("Looked for {}.", self.looked_for()));
        for skipped in self.skipped() {
            paragraph(&mut body, "soft", &skipped);
        }
        title(&mut body, "What was found");
        let rows = self.findings.iter().map(|finding| {
            let verdict = if finding.is_leak() { "leak" } else { "chance" };
            vec![verdict.to_owned(), finding.to_string()]
        });
        table(&mut body, &["", "what"], rows.collect());
        title(&mut body, "How many hosts look alike");
        anonymity(&mut body, &self.anonymity);
        title(&mut body, "Remaining fingerprints");
        let rows = self.fingerprints.iter().map(|it| vec![it.text.clone(), remedy(it.policy)]);
        table(&mut body, &["what", "what to do"], rows.collect());
        title(&mut body, "What known packets reveal to an attacker");
        for line in self.injection.to_string().lines() {
            paragraph(&mut body, "", line);
        }
        self.injection.families.iter().for_each(|family| known(&mut body, family));
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width\"/>\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
             style-src 'unsafe-inline'\"/>\n<title>Check of {}</title>\n<style>{STYLE}</style></head>\n\
             <body>\n<h1>Check of a masked capture</h1>\n{body}</body>\n</html>\n",
            escape(masked)
        )
    }
}

fn anonymity(body: &mut String, anonymity: &Anonymity) {
    for line in anonymity.to_string().lines() {
        paragraph(body, "", line);
    }
    let bars = anonymity.sizes.iter().map(|(size, groups)| {
        let hosts = size * groups;
        (format!("groups of {size}: {groups}"), hosts as f64, format!("hosts: {hosts}"))
    });
    picture(body, "Hosts by the size of their group", bars.collect());
    let bars = anonymity.features.iter().map(|feature| {
        (feature.name.to_owned(), feature.bits, format!("{:.2} bits", feature.bits))
    });
    picture(body, "What distinguishes hosts", bars.collect());
    let rows = anonymity.features.iter().map(|feature| {
        let cells = [feature.name, &feature.values.to_string(), &feature.alone.to_string()];
        let mut cells = cells.map(str::to_owned).to_vec();
        cells.push(remedy(feature.policy));
        cells
    });
    table(body, &["what", "values", "hosts it identifies alone", "what to do"], rows.collect());
}

/// What known addresses reveal of others.
fn known(body: &mut String, reveals: &Reveals) {
    let bars = reveals.known.iter().map(|known| {
        let label = format!("known addresses: {}", known.addresses);
        (label, known.bits, format!("{:.1} of {} bits", known.bits, reveals.family.bits()))
    });
    picture(
        body,
        &format!("Bits known of each other address of {}", reveals.family),
        bars.collect(),
    );
}

fn title(body: &mut String, text: &str) {
    let _ = writeln!(body, "<h2>{}</h2>", escape(text));
}

fn paragraph(body: &mut String, class: &str, text: &str) {
    let _ = writeln!(body, "<p class=\"{class}\">{}</p>", escape(text));
}

fn table(body: &mut String, head: &[&str], rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        return paragraph(body, "soft", "None.");
    }
    let row = |tag: &str, cells: Vec<String>| {
        let cells = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell)));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let _ = writeln!(
        body,
        "<table>\n{}{}</table>",
        row("th", head.iter().map(ToString::to_string).collect()),
        rows.into_iter().map(|cells| row("td", cells)).collect::<String>()
    );
}

/// Bars of these lengths, each with what it is and how much.
fn picture(body: &mut String, title: &str, bars: Vec<(String, f64, String)>) {
    let longest = bars.iter().map(|(_, length, _)| *length).fold(0.0, f64::max);
    if longest == 0.0 {
        return;
    }
    paragraph(body, "soft", title);
    let height = ROW * bars.len().min(BARS) as f64;
    let _ = writeln!(
        body,
        "<svg viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\
         <title>{}</title>",
        escape(title)
    );
    for (n, (label, length, says)) in bars.iter().take(BARS).enumerate() {
        let (top, width) = (n as f64 * ROW, length / longest * (END - BEGIN));
        let _ = writeln!(
            body,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{BEGIN}\" y=\"{:.0}\" width=\"{width:.1}\" height=\"14\"/>\
             <text x=\"{:.1}\" y=\"{:.0}\">{}</text>",
            BEGIN - 8.0,
            top + 16.0,
            escape(label),
            top + 5.0,
            BEGIN + width + 6.0,
            top + 16.0,
            escape(says)
        );
    }
    *body += "</svg>\n";
    if bars.len() > BARS {
        paragraph(body, "soft", &format!("The first {BARS} of {} are shown.", bars.len()));
    }
}
