//! Reads and checks a file of sections: the daemon's configuration, or a scene of the lab.
//!
//! Every finding names line, column and key and shows the line ([`Report`]).

mod position;
mod report;
mod shape;

pub use report::{Finding, Report, Severity};
pub use shape::Reader;

use config::Problem;
use std::{
    fs::Metadata,
    path::{Path, PathBuf},
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// Longest file that is read, in bytes.
pub const SIZE_LIMIT: u64 = 1 << 20;
/// Deepest nesting of tables and dotted keys that is read.
const DEPTH_LIMIT: usize = 32;

/// Renamed keys of the configuration: the old dotted key without indices, and the new one.
pub type Renamed = &'static [(&'static str, &'static str)];

/// The file could not be read or is not valid.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be opened or read.
    #[error("cannot open {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is larger than [`SIZE_LIMIT`].
    #[error("{path} is larger than {SIZE_LIMIT} bytes: this is not a configuration of nigh")]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file was read and is not valid.
    #[error("{}", .0.sentence())]
    Wrong(Report),
}

/// Reads a file of at most [`SIZE_LIMIT`] bytes.
///
/// # Errors
///
/// [`LoadError::Read`] and [`LoadError::TooLarge`].
pub fn read(path: &Path) -> Result<(Vec<u8>, Metadata), LoadError> {
    use std::io::Read;
    let read_error = |source| LoadError::Read { path: path.into(), source };
    let file = std::fs::File::open(path).map_err(read_error)?;
    let metadata = file.metadata().map_err(read_error)?;
    let mut bytes = Vec::new();
    file.take(SIZE_LIMIT + 1).read_to_end(&mut bytes).map_err(read_error)?;
    if bytes.len() as u64 > SIZE_LIMIT {
        return Err(LoadError::TooLarge { path: path.into() });
    }
    Ok((bytes, metadata))
}

/// A file that is TOML: its text and its tables.
#[derive(Debug)]
pub struct Document<'i> {
    text: &'i str,
    root: Spanned<DeValue<'i>>,
}

impl<'i> Document<'i> {
    /// Parses a file; syntax errors go into the report.
    pub fn parse(bytes: &'i [u8], report: &mut Report) -> Option<Self> {
        let mut add = |text: &str, span, message: String| {
            report.findings.push(Finding::at(text, span, Severity::Error, String::new(), message));
        };
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let good = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
                let message = "this is not UTF-8: save the file in that encoding";
                add(good, good.len()..good.len(), message.into());
                return None;
            }
        };
        if let Some(offset) = shape::too_deep(text, DEPTH_LIMIT) {
            let message =
                format!("more than {DEPTH_LIMIT} levels deep: no key of nigh is nested so deeply");
            add(text, offset..offset, message);
            return None;
        }
        let (root, errors) = DeTable::parse_recoverable(text);
        if errors.is_empty() {
            return Some(Self { text, root: position::document(root) });
        }
        for error in errors {
            add(text, error.span().unwrap_or(0..0), error.message().into());
        }
        report.finish();
        None
    }

    /// Every text in it that is not a secret, with its dotted key.
    pub fn texts(&self) -> Vec<(String, String)> {
        position::texts(&self.root)
    }

    /// Puts problems with values into a report, unless it has the same key already, or a key in that
    /// table could not be read: what is missing there may be that.
    pub fn add_problems(&self, problems: impl IntoIterator<Item = Problem>, report: &mut Report) {
        let unread: Vec<String> = report.findings.iter().map(|f| f.key.clone()).collect();
        for Problem { key, message } in problems {
            let already = |f: &Finding| key == f.key || key.starts_with(&format!("{}.", f.key));
            let within = |unread: &String| unread.starts_with(&format!("{key}."));
            if report.findings.iter().any(already) || unread.iter().any(within) {
                continue;
            }
            self.add(Severity::Error, Problem { key, message }, report);
        }
    }

    /// Puts warnings into a report.
    pub fn add_warnings(&self, warnings: impl IntoIterator<Item = Problem>, report: &mut Report) {
        for warning in warnings {
            self.add(Severity::Warning, warning, report);
        }
    }

    fn add(&self, severity: Severity, Problem { key, message }: Problem, report: &mut Report) {
        let span = position::find(&self.root, &key, self.text);
        report.findings.push(Finding::at(self.text, span, severity, key, message));
    }
}

/// Adds a warning for every secret in a file that everybody may read.
pub fn warn_of_secrets(bytes: &[u8], path: &Path, report: &mut Report) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(root) = DeTable::parse(text) else { return };
    let root = position::document(root);
    let message =
        format!("everybody on this host may read this secret: run `chmod o-r {}`", path.display());
    for (key, span) in position::secrets(&root) {
        report.findings.push(Finding::at(text, span, Severity::Warning, key, message.clone()));
    }
}
