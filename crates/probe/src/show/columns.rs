//! A plot's points on as many columns as there is room for.

use super::points::{Plot, end_ns};

/// What was measured in the time of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Column {
    /// The middle one of the points' values.
    pub(super) value: Option<f64>,
    /// The band's end, minus infinity where nothing is known.
    pub(super) low: f64,
    /// The band's end, infinity where nothing is known.
    pub(super) high: f64,
    pub(super) lost: u64,
    pub(super) sent: u64,
}

/// The columns of the time from `since_ns` to `until_ns`. A point stands until the next one begins, unless
/// that is after a gap.
pub(super) fn columns(plot: &Plot, since_ns: i64, until_ns: i64, count: usize) -> Vec<Column> {
    let reach = plot.reach_ns();
    let length = i128::from(until_ns) - i128::from(since_ns);
    let position = |at_ns: i64| {
        let since = (i128::from(at_ns) - i128::from(since_ns)).clamp(0, length.max(1));
        let position = since * count as i128 / length.max(1);
        usize::try_from(position).unwrap_or(0).min(count.saturating_sub(1))
    };
    let mut columns = vec![Column::default(); count];
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); count];
    let mut points = plot.points.iter().peekable();
    while let Some(point) = points.next() {
        let next = points.peek().map(|next| next.at_ns);
        let near = next.filter(|next| next.saturating_sub(point.at_ns) <= reach);
        // A column is the next one's when that begins in it.
        let end = near.map_or_else(|| end_ns(point), |next| next.saturating_sub(1));
        if end < since_ns || point.at_ns > until_ns {
            continue;
        }
        let range = position(point.at_ns)..=position(end.max(point.at_ns));
        for (n, at) in range.enumerate() {
            let (Some(column), Some(values)) = (columns.get_mut(at), values.get_mut(at)) else {
                continue;
            };
            // Packets are counted where they were sent.
            if let (0, Some((lost, sent))) = (n, point.lost) {
                column.lost += lost;
                column.sent += sent;
            }
            let Some(value) = point.value else { continue };
            let low = point.low.unwrap_or(f64::NEG_INFINITY);
            let high = point.high.unwrap_or(f64::INFINITY);
            let first = values.is_empty();
            column.low = if first { low } else { column.low.min(low) };
            column.high = if first { high } else { column.high.max(high) };
            values.push(value);
        }
    }
    for (column, values) in columns.iter_mut().zip(&mut values) {
        values.sort_by(f64::total_cmp);
        column.value = values.get(values.len().saturating_sub(1) / 2).copied();
    }
    columns
}

/// All values that an axis must have a place for.
pub(super) fn values(columns: &[Column]) -> impl Iterator<Item = f64> {
    let shown = columns.iter().filter(|column| column.value.is_some());
    shown.flat_map(|column| [column.low, column.value.unwrap_or(column.low), column.high])
}
