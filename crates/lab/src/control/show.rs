//! The answers to commands, as text for people.

use super::{LinkChange, LinkView, Links, NodeView, Path, Status, Totals};
use crate::{Nanos, settings::SettingsChange};
use std::fmt::Write as _;
use terminal::text::{CellAlignment, lines, table};

/// How a lab is.
pub(super) fn status(status: &Status) -> String {
    let mut text = format!(
        "{} has run for {:.0} s in process {}: {} nodes, {} directed links\n\n",
        status.scene.display(),
        status.runs.0 as f64 / 1e9,
        status.pid,
        status.nodes,
        status.links,
    );
    let mut hosts = table(["HOST", "NODE", "ADDRESSES", "NAMESPACE"], 4);
    for host in &status.hosts {
        let addresses: Vec<_> = host.addresses.iter().map(ToString::to_string).collect();
        let namespace = host.namespace.as_deref().unwrap_or("-");
        hosts.add_row([&host.name, &host.node, &addresses.join(" "), namespace]);
    }
    text += &lines(&hosts);
    text += "\n";
    text += &totals(&status.packets);
    if !status.down.is_empty() {
        let _ = write!(text, "\nnodes that are down: {}\n", status.down.join(", "));
    }
    if !status.touched.is_empty() {
        text += "\n";
        text += &links(&Links { total: status.touched_total, links: status.touched.clone() });
    }
    text
}

/// The ledger.
pub(crate) fn totals(totals: &Totals) -> String {
    let made: u64 = totals.made.values().sum();
    let mut text = format!(
        "packets: {} from hosts, {} to hosts, {made} made by nodes and links, {} in flight\n",
        totals.received, totals.sent, totals.in_flight
    );
    for (reason, count) in &totals.ended {
        let _ = writeln!(text, "  {count:>12} ended: {reason}");
    }
    text
}

/// A list of links.
pub(super) fn links(links: &Links) -> String {
    let mut rows = table(["LINK", "PACKETS", "BYTES", "DROPPED", "DOES"], 1);
    if let Some(column) = rows.column_mut(4) {
        column.set_cell_alignment(CellAlignment::Left);
    }
    for link in &links.links {
        let [packets, bytes, dropped] =
            [link.packets, link.bytes, link.dropped].map(|n| n.to_string());
        let mark = if link.changed { " (changed)" } else { "" };
        let wire = if link.wire { "wire " } else { "" };
        let does = format!("{wire}{}{mark}", link.settings);
        rows.add_row([format!("{}>{}", link.from, link.to), packets, bytes, dropped, does]);
    }
    let mut text = lines(&rows);
    if links.links.len() < links.total {
        let _ = writeln!(text, "{} of {}", links.links.len(), links.total);
    }
    text
}

/// A path, as traceroute would show it, but with what it is made of.
pub(super) fn path(path: &Path) -> String {
    let Path { from, to, address, .. } = path;
    let mut text = format!("{from} to {to} ({address})\n");
    for (number, hop) in path.hops.iter().enumerate() {
        let address = hop.address.map_or_else(|| "*".to_owned(), |address| address.to_string());
        let _ = write!(text, "{:>2}  {} ({address})  {}", number + 1, hop.node, time(hop.delay));
        if let Some(settings) = &hop.link {
            let _ = write!(text, "  [{settings}]");
        }
        text.push('\n');
    }
    if let Some(host) = &path.host {
        let _ =
            writeln!(text, "{:>2}  {host} ({address})  {}", path.hops.len() + 1, time(path.delay));
    }
    if let Some(why) = &path.stopped {
        let _ = writeln!(text, "    not further: {why}");
    }
    let _ = write!(text, "one way: delay {}", time(path.delay));
    if let (Some(rate), Some(link)) = (path.rate, &path.bottleneck) {
        let rate = SettingsChange { rate: Some(Some(rate)), ..SettingsChange::default() };
        let _ = write!(text, ", {rate} at {link}");
    }
    if let Some(mtu) = path.mtu {
        let _ = write!(text, ", MTU {mtu}");
    }
    if path.loss > 0.0 {
        let _ = write!(text, ", loss {:.3}%", path.loss * 100.0);
    }
    if path.ecmp {
        text += "; other flows may take another path";
    }
    text.push('\n');
    text
}

/// A link before and after a change.
pub(super) fn verdict(verdict: &LinkChange) -> String {
    let mut text = String::new();
    for (before, after) in verdict.before.iter().zip(&verdict.after) {
        let LinkView { from, to, settings, .. } = after;
        let _ = write!(text, "{from}>{to}  ");
        let _ = match before.settings == *settings {
            true => writeln!(text, "{settings}"),
            false => writeln!(text, "{}  ->  {settings}", before.settings),
        };
    }
    text
}

/// A node.
pub(super) fn node(node: &NodeView) -> String {
    let word = |up| if up { "up" } else { "down" };
    let addresses: Vec<_> = node.addresses.iter().map(ToString::to_string).collect();
    let change = match (node.was_up, node.up) {
        (was, is) if was == is => word(is).to_owned(),
        (was, is) => format!("{} -> {}", word(was), word(is)),
    };
    let NodeView { name, links, .. } = node;
    format!("{name}  {change}  {links} links  {}\n", addresses.join(" "))
}

/// A time in milliseconds, as in ping.
fn time(time: Nanos) -> String {
    format!("{:.3} ms", time.0 as f64 / 1e6)
}
