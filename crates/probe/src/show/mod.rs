//! What was measured, shown: delay and throughput over time, the mesh as a matrix, clocks as a table,
//! traces as a list; on the terminal and as SVG.
//!
//! `points` makes points in time of the archive's entries, `mesh` a matrix of them and `list` tables.
//! `terminal` and `svg` draw; neither knows an archive. No part but `cli` reads a clock or a file. `answer` is
//! the same over HTTP.

mod answer;
mod axis;
pub mod cli;
mod columns;
mod list;
mod mesh;
mod points;
mod svg;
mod terminal;
#[cfg(test)]
mod tests;

pub use self::terminal::{Look, chart, matrix, table};
pub use answer::{Answer, Ask};
pub use axis::Measure;
pub use list::{Row, Table, clocks, traces};
pub use mesh::{Cell, Mesh};
pub use points::{Direction, Plot, Point, delays, throughputs};
pub use svg::{chart as svg_chart, matrix as svg_matrix, table as svg_table};
