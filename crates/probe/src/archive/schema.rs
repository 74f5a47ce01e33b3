//! The tables, version by version.
//!
//! `PRAGMA application_id` says whose file it is and `PRAGMA user_version` which version of the tables
//! it holds. A version is never changed once it is out: a change is a further step at the end of
//! [`STEPS`]. docs/probe-archive.md describes the tables of the newest version.

#[cfg(test)]
mod tests;

use rusqlite::{Connection, Transaction, TransactionBehavior};

/// `nigh`, as bytes: the file is an archive of ours.
const APPLICATION: i32 = i32::from_be_bytes(*b"nigh");

/// The step to version 1, to version 2 and so on.
const STEPS: [&str; 5] = [
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
    include_str!("schema/5.sql"),
];

/// The version that this program reads and writes.
pub const VERSION: usize = STEPS.len();

/// The tables cannot be brought to this program's version.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// Another program's database.
    #[error(
        "it is another program's database (application_id {0:#x}); move it away or use another folder"
    )]
    Foreign(i32),
    /// A later nigh's.
    #[error(
        "its tables have version {0} and this nigh knows {VERSION} at most; use the nigh that wrote it, or another folder"
    )]
    Newer(i64),
    /// The database did not do it.
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
}

/// Whose file it is and the version of its tables, 0 where there are none.
///
/// # Errors
/// When the file is not ours, or of a later nigh, or cannot be read.
pub(super) fn version(connection: &Connection) -> Result<usize, SchemaError> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let [application, version] = [number("application_id")?, number("user_version")?];
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))?;
    if tables == 0 && application == 0 && version == 0 {
        return Ok(0);
    }
    if application != i64::from(APPLICATION) {
        return Err(SchemaError::Foreign(application as i32));
    }
    match usize::try_from(version) {
        Ok(known @ 1..=VERSION) => Ok(known),
        _ => Err(SchemaError::Newer(version)),
    }
}

/// Brings the tables to [`VERSION`]; all steps or none.
///
/// # Errors
/// See [`SchemaError`].
pub(super) fn migrate(connection: &mut Connection) -> Result<(), SchemaError> {
    if version(connection)? == VERSION {
        return Ok(());
    }
    // Whoever else opens it at the same time waits here and then finds it done.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let from = version(&transaction)?;
    step(&transaction, from, VERSION)?;
    transaction.commit()?;
    Ok(())
}

/// The steps from one version to another.
fn step(transaction: &Transaction<'_>, from: usize, to: usize) -> rusqlite::Result<()> {
    for sql in STEPS.get(from..to).unwrap_or_default() {
        transaction.execute_batch(sql)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", to as i64)
}
