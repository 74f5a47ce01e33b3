//! The columns of each kind. docs/probe-archive.md lists them; what has parts of its own, such as the hops
//! of a trace, is a column of JSON.

use crate::record::{Bounded, Figures, Kind, Record, Series};
use parquet::{
    basic::{LogicalType, Repetition, TimeUnit, Type as Physical},
    data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type},
    errors::ParquetError,
    file::writer::SerializedFileWriter,
    schema::types::Type,
};
use serde::Serialize;
use std::{io::Write, sync::Arc};

/// A value of a row.
enum Value {
    /// Nanoseconds since 1970-01-01 UTC.
    Time(i64),
    Integer(Option<i64>),
    Number(f64),
    Text(Option<String>),
    Json(String),
    Flag(bool),
}

/// Values of a column, or nothing at a row's place.
enum Cells {
    Time(Vec<i64>, Vec<i16>),
    Integer(Vec<i64>, Vec<i16>),
    Number(Vec<f64>, Vec<i16>),
    Text(Vec<ByteArray>, Vec<i16>),
    Json(Vec<ByteArray>, Vec<i16>),
    Flag(Vec<bool>, Vec<i16>),
}

/// A column of a row group.
struct Column {
    name: String,
    cells: Cells,
}

/// Rows of one kind, column by column.
#[derive(Default)]
pub(super) struct Group {
    columns: Vec<Column>,
    rows: usize,
}

impl Group {
    /// How many rows there are.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Adds a record, which is of the same kind as those before.
    pub(super) fn push(&mut self, record: &Record) {
        let mut index = 0;
        visit(record, &mut |prefix, name, value| {
            if self.columns.len() == index {
                let name = format!("{prefix}{name}");
                self.columns.push(Column { name, cells: Cells::new(&value) });
            }
            if let Some(column) = self.columns.get_mut(index) {
                column.cells.push(value);
            }
            index += 1;
        });
        self.rows += 1;
    }

    /// The schema of the columns.
    pub(super) fn schema(&self, kind: Kind) -> Result<Type, ParquetError> {
        let fields = self.columns.iter().map(|column| column.schema().map(Arc::new));
        let fields = fields.collect::<Result<_, _>>()?;
        Type::group_type_builder(kind.name()).with_fields(fields).build()
    }

    /// Writes a row group and empties the columns.
    pub(super) fn write<W: Write + Send>(
        &mut self,
        writer: &mut SerializedFileWriter<W>,
    ) -> Result<(), ParquetError> {
        let mut group = writer.next_row_group()?;
        for column in &mut self.columns {
            let Some(mut out) = group.next_column()? else { break };
            match &mut column.cells {
                Cells::Time(values, there) | Cells::Integer(values, there) => {
                    out.typed::<Int64Type>().write_batch(values, Some(there), None)?;
                    values.clear();
                    there.clear();
                }
                Cells::Number(values, there) => {
                    out.typed::<DoubleType>().write_batch(values, Some(there), None)?;
                    values.clear();
                    there.clear();
                }
                Cells::Text(values, there) | Cells::Json(values, there) => {
                    out.typed::<ByteArrayType>().write_batch(values, Some(there), None)?;
                    values.clear();
                    there.clear();
                }
                Cells::Flag(values, there) => {
                    out.typed::<BoolType>().write_batch(values, Some(there), None)?;
                    values.clear();
                    there.clear();
                }
            }
            out.close()?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

impl Cells {
    fn new(value: &Value) -> Self {
        let there = Vec::new();
        match value {
            Value::Time(_) => Self::Time(Vec::new(), there),
            Value::Integer(_) => Self::Integer(Vec::new(), there),
            Value::Number(_) => Self::Number(Vec::new(), there),
            Value::Text(_) => Self::Text(Vec::new(), there),
            Value::Json(_) => Self::Json(Vec::new(), there),
            Value::Flag(_) => Self::Flag(Vec::new(), there),
        }
    }

    /// Each column gets values of its own type only: `visit` gives the same ones for each record of a kind.
    fn push(&mut self, value: Value) {
        match (self, value) {
            (Self::Time(values, there), Value::Time(value)) => add(values, there, Some(value)),
            (Self::Integer(values, there), Value::Integer(value)) => add(values, there, value),
            (Self::Number(values, there), Value::Number(value)) => add(values, there, Some(value)),
            (Self::Text(values, there), Value::Text(value)) => {
                add(values, there, value.map(|text| ByteArray::from(text.into_bytes())));
            }
            (Self::Json(values, there), Value::Json(value)) => {
                add(values, there, Some(ByteArray::from(value.into_bytes())));
            }
            (Self::Flag(values, there), Value::Flag(value)) => add(values, there, Some(value)),
            (
                Self::Time(_, there)
                | Self::Integer(_, there)
                | Self::Number(_, there)
                | Self::Text(_, there)
                | Self::Json(_, there)
                | Self::Flag(_, there),
                _,
            ) => there.push(0),
        }
    }
}

/// A value, or its absence.
fn add<T>(values: &mut Vec<T>, there: &mut Vec<i16>, value: Option<T>) {
    there.push(i16::from(value.is_some()));
    values.extend(value);
}

impl Column {
    fn schema(&self) -> Result<Type, ParquetError> {
        let (physical, logical) = match self.cells {
            Cells::Time(..) => {
                (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS)))
            }
            Cells::Integer(..) => (Physical::INT64, None),
            Cells::Number(..) => (Physical::DOUBLE, None),
            Cells::Text(..) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Cells::Json(..) => (Physical::BYTE_ARRAY, Some(LogicalType::Json)),
            Cells::Flag(..) => (Physical::BOOLEAN, None),
        };
        Type::primitive_type_builder(&self.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
    }
}

/// Counts beyond 2^63 are that.
fn count(value: u64) -> Value {
    Value::Integer(Some(i64::try_from(value).unwrap_or(i64::MAX)))
}

fn maybe(value: Option<u64>) -> Value {
    Value::Integer(value.map(|value| i64::try_from(value).unwrap_or(i64::MAX)))
}

fn json(value: &impl Serialize) -> Value {
    Value::Json(serde_json::to_string(value).unwrap_or_default())
}

/// Gives the values of a record's row, always the same ones in the same order for a kind, each with the two
/// parts of its name.
fn visit(record: &Record, put: &mut dyn FnMut(&str, &str, Value)) {
    put("", "at", Value::Time(record.at_ns));
    put("", "lasted_ns", count(record.lasted_ns));
    put("", "station", Value::Text(Some(record.from.clone())));
    put("", "target", Value::Text(Some(record.to.clone())));
    put("", "test", Value::Text(Some(record.test.clone())));
    match &record.figures {
        Figures::Delay(delay) => {
            put("", "counted", Value::Flag(delay.counted));
            series("forward_", delay.forward.as_ref(), put);
            series("reverse_", delay.reverse.as_ref(), put);
            series("round_trip_", Some(&delay.round_trip), put);
        }
        Figures::Ping(ping) => series("", Some(ping), put),
        Figures::Throughput(it) => {
            put("", "transport", Value::Text(Some(it.transport.clone())));
            put("", "bytes", count(it.bytes));
            put("", "bytes_per_second", Value::Number(it.bytes_per_second));
            put("", "lost", maybe(it.lost.map(|lost| lost.0)));
            put("", "sent", maybe(it.lost.map(|lost| lost.1)));
            put("", "reordered", maybe(it.reordered));
            put("", "duplicated", maybe(it.duplicated));
            put("", "samples", json(&it.samples));
        }
        Figures::Trace(trace) => {
            put("", "reached", Value::Flag(trace.reached));
            put("", "mtu_bytes", maybe(trace.mtu_bytes.map(u64::from)));
            put("", "hops", json(&trace.hops));
        }
        Figures::Http(http) => {
            put("", "status", count(u64::from(http.status)));
            put("", "resolve_ns", count(http.resolve_ns));
            put("", "connect_ns", count(http.connect_ns));
            put("", "tls_ns", maybe(http.tls_ns));
            put("", "first_byte_ns", count(http.first_byte_ns));
            put("", "whole_ns", count(http.whole_ns));
            put("", "bytes", count(http.bytes));
        }
        Figures::Dns(dns) => {
            put("", "code", Value::Text(Some(dns.code.clone())));
            put("", "answers", count(u64::from(dns.answers)));
            put("", "took_ns", count(dns.took_ns));
        }
        Figures::Clock(clock) => {
            put("", "source", Value::Text(Some(clock.source.clone())));
            put("", "offset_ns", Value::Integer(clock.offset_ns));
            put("", "estimated_error_ns", maybe(clock.estimated_error_ns));
            put("", "maximum_error_ns", maybe(clock.maximum_error_ns));
            put("", "stratum", maybe(clock.stratum.map(u64::from)));
            put("", "reference", Value::Text(clock.reference.clone()));
            put("", "reach", maybe(clock.reach.map(u64::from)));
            put("", "frequency_ppb", Value::Integer(clock.frequency_ppb));
            let since = clock.since_update_seconds.map(|since| (since * 1e9) as u64);
            put("", "since_update_ns", maybe(since));
            put("", "holdover", Value::Flag(clock.holdover));
        }
        Figures::Failed { reason } => put("", "reason", Value::Text(Some(reason.clone()))),
    }
}

/// The columns of a series; all empty where there is none.
fn series(prefix: &str, series: Option<&Series>, put: &mut dyn FnMut(&str, &str, Value)) {
    type Count = fn(&Series) -> u64;
    let counts: [(&str, Count); 6] = [
        ("sent", |series| series.sent),
        ("lost", |series| series.lost),
        ("late", |series| series.late),
        ("duplicated", |series| series.duplicated),
        ("reordered", |series| series.reordered),
        ("contradicted", |series| series.contradicted),
    ];
    for (name, value) in counts {
        put(prefix, name, maybe(series.map(value)));
    }
    type Part = fn(&Series) -> Option<Bounded>;
    let delays: [([&str; 3], Part); 5] = [
        (["minimum_ns", "minimum_low_ns", "minimum_high_ns"], |series| series.minimum),
        (["median_ns", "median_low_ns", "median_high_ns"], |series| series.median),
        (["p95_ns", "p95_low_ns", "p95_high_ns"], |series| series.p95),
        (["p99_ns", "p99_low_ns", "p99_high_ns"], |series| series.p99),
        (["maximum_ns", "maximum_low_ns", "maximum_high_ns"], |series| series.maximum),
    ];
    for ([estimate, low, high], value) in delays {
        let value = series.and_then(value);
        put(prefix, estimate, Value::Integer(value.map(|value| value.estimate_ns)));
        put(prefix, low, Value::Integer(value.and_then(|value| value.low_ns)));
        put(prefix, high, Value::Integer(value.and_then(|value| value.high_ns)));
    }
    put(prefix, "pdv_p99_ns", maybe(series.and_then(|series| series.pdv_p99_ns)));
    put(prefix, "ipdv_mean_ns", maybe(series.and_then(|series| series.ipdv_mean_ns)));
}
