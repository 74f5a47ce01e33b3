//! What can go wrong, an error type for each operation.

use super::schema::SchemaError;
use std::{io, path::PathBuf};

/// The archive cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its folder cannot be made.
    #[error("cannot make the archive's folder {}: {source}", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Its database cannot be opened, for another reason than damage.
    #[error("cannot open the archive {}: {source}", .path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// The file is not what this program reads and writes.
    #[error("cannot use the archive {}: {source}", .path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: SchemaError,
    },
    /// A damaged database cannot be set aside.
    #[error("the archive {} is damaged ({damage}) and cannot be set aside: {source}", .path.display())]
    Aside {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        damage: String,
        /// The system's error.
        source: io::Error,
    },
    /// No thread for the writer.
    #[error("cannot start the archive's writer: {source}")]
    Thread {
        /// The system's error.
        source: io::Error,
    },
}

/// The archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// There is none.
    #[error("there is no archive {}: use --archive DIR", .0.display())]
    Missing(PathBuf),
    /// SQLite does not read it.
    #[error("cannot read the archive {}: {source}", .path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// The file is not what this program reads.
    #[error("cannot read the archive {}: {source}", .path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: SchemaError,
    },
    /// Its tables are older than this program, and only who writes it brings them up to date.
    #[error(
        "the archive {} has tables of version {version}: start the daemon of this version once, which migrates them to version {}",
        .path.display(), super::VERSION
    )]
    Older {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: usize,
    },
}
