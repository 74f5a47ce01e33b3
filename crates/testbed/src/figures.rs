//! What a benchmark measured: a table on the terminal and a file for machines.

use crate::Error;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// One measured value.
#[derive(Debug, Serialize, Deserialize)]
struct Figure {
    name: String,
    value: f64,
    unit: String,
}

/// All that a benchmark measured so far.
#[derive(Debug)]
pub struct Figures {
    benchmark: &'static str,
    figures: Vec<Figure>,
}

impl Figures {
    /// None yet; `benchmark` names the file.
    pub fn new(benchmark: &'static str) -> Self {
        Self { benchmark, figures: Vec::new() }
    }

    /// Adds a value and prints it, with what it should reach.
    pub fn add(&mut self, name: &str, value: f64, unit: &'static str, goal: Option<&'static str>) {
        let digits = if value.abs() >= 1000.0 { 0 } else { 2 };
        let goal_text = goal.map_or(String::new(), |goal| format!("(to reach: {goal})"));
        println!("  {name:<58} {value:>14.digits$} {unit:<18} {goal_text}");
        self.figures.push(Figure { name: name.to_owned(), value, unit: unit.to_owned() });
    }

    /// Takes over what another benchmark has written.
    ///
    /// # Errors
    ///
    /// It has not been run, or its file cannot be read.
    pub fn include(&mut self, benchmark: &str) -> Result<(), Error> {
        let file = path(benchmark);
        let failed = |why: &dyn std::fmt::Display| Error::new(file.display().to_string(), why);
        let text = std::fs::read_to_string(&file).map_err(|error| failed(&error))?;
        let figures: Vec<Figure> = serde_json::from_str(&text).map_err(|error| failed(&error))?;
        self.figures.extend(figures);
        Ok(())
    }

    /// Writes `target/bench/BENCHMARK.json`, an array of `{name, value, unit}`.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&self) -> Result<(), Error> {
        let file = path(self.benchmark);
        let failed = |why: &dyn std::fmt::Display| Error::new(file.display().to_string(), why);
        let text = serde_json::to_string_pretty(&self.figures).map_err(|error| failed(&error))?;
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).map_err(|error| failed(&error))?;
        }
        std::fs::write(&file, text + "\n").map_err(|error| failed(&error))?;
        println!("\nwritten: target/bench/{}.json", self.benchmark);
        Ok(())
    }
}

/// Where a benchmark's figures are.
fn path(benchmark: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench");
    folder.join(benchmark).with_extension("json")
}
