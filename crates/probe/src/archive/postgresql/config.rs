//! The section `[probe.archive.postgresql]`, and where the password comes from.

use config::{
    Problem, Report,
    file::{PrivateError, read_private},
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{
    path::{Path, PathBuf},
    str::FromStr,
};
use tokio_postgres::config::{Host, SslMode};

/// A PostgreSQL that many stations share as an archive.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostgresqlConfig {
    /// Connection string of libpq without a password, such as `host=db.example.net dbname=nigh user=prague`.
    pub connection: String,
    /// File with the password alone, mode 0600; when not given, the file that `PGPASSFILE` names is searched.
    pub password_file: Option<PathBuf>,
    /// PEM file with the authority that signs the server's certificate; required over a network unless the
    /// connection has `sslmode=disable`.
    pub authority: Option<PathBuf>,
}

/// The password is not available.
#[derive(Debug, thiserror::Error)]
pub(super) enum PasswordError {
    #[error("the password: {0}")]
    File(#[from] PrivateError),
    #[error("the password: {} is not UTF-8", .0.display())]
    Text(PathBuf),
}

impl PostgresqlConfig {
    /// Everything that is wrong with the values, each key as in the table; empty if they are valid.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let report = &mut Report::new(&mut problems, "");
        match tokio_postgres::Config::from_str(&self.connection) {
            // The text is not shown: somebody may have put a password into it.
            Err(_) => report.add(
                "connection",
                "is not a connection string of libpq, such as \"host=db.example.net dbname=nigh user=prague\"",
            ),
            Ok(config) if config.get_password().is_some() => {
                report.add("connection", "has a password in it: put it into password_file");
            }
            Ok(config) if config.get_hosts().is_empty() => {
                report.add("connection", "names no host: a name, an address or a socket's folder");
            }
            Ok(config) => {
                if needs_tls(&config) && self.authority.is_none() {
                    report.add(
                        "authority",
                        "name the file with the authority that signs the server's certificate, or set sslmode=disable",
                    );
                }
            }
        }
        problems
    }

    /// What to connect with; the password is in it.
    pub(super) fn settings(&self) -> Result<tokio_postgres::Config, Box<dyn std::error::Error>> {
        let mut config = tokio_postgres::Config::from_str(&self.connection)
            .map_err(|_| "postgresql.connection is not a connection string of libpq")?;
        config.application_name("nigh");
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(std::time::Duration::from_secs(10));
        }
        // Never silently without TLS.
        if needs_tls(&config) {
            config.ssl_mode(SslMode::Require);
        }
        if let Some(password) = self.password(&config)? {
            config.password(password);
        }
        Ok(config)
    }

    fn password(&self, config: &tokio_postgres::Config) -> Result<Option<String>, PasswordError> {
        if let Some(path) = &self.password_file {
            let text = read_secret(path)?;
            return Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()));
        }
        let Some(path) = std::env::var_os("PGPASSFILE") else { return Ok(None) };
        let text = read_secret(Path::new(&path))?;
        Ok(from_passfile(&text, config))
    }
}

/// Whether a server is asked for over a network, and TLS not switched off.
pub(super) fn needs_tls(config: &tokio_postgres::Config) -> bool {
    let network = config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(_)));
    network && config.get_ssl_mode() != SslMode::Disable
}

/// A file that nobody else may read.
fn read_secret(path: &Path) -> Result<String, PasswordError> {
    let content = read_private(path)?;
    let text = str::from_utf8(&content).map_err(|_| PasswordError::Text(path.to_owned()))?;
    Ok(text.to_owned())
}

/// The password of the first line that fits: `host:port:database:user:password`, each `*` for all
/// (PostgreSQL, section "The Password File").
fn from_passfile(text: &str, config: &tokio_postgres::Config) -> Option<String> {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        // A socket's folder counts as localhost.
        _ => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let user = config.get_user().unwrap_or_default().to_owned();
    let database = config.get_dbname().unwrap_or(&user).to_owned();
    let wanted = [host, port, database, user];
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let [parts @ .., password] = fields.as_slice() else { return None };
        let fits = parts.len() == wanted.len()
            && parts.iter().zip(&wanted).all(|(part, wanted)| part == "*" || part == wanted);
        fits.then(|| password.clone())
    })
}

/// Fields between colons; a backslash takes a colon's or a backslash's meaning away.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        // The password is the rest, with its colons.
        match c {
            ':' if fields.len() < 5 => fields.push(String::new()),
            c => {
                let c = if c == '\\' { characters.next().unwrap_or('\\') } else { c };
                if let Some(field) = fields.last_mut() {
                    field.push(c);
                }
            }
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(connection: &str) -> PostgresqlConfig {
        PostgresqlConfig { connection: connection.to_owned(), password_file: None, authority: None }
    }

    #[test]
    fn what_is_wrong_is_named_and_a_password_never_shown() {
        for (connection, key) in [
            ("host=/run/postgresql dbname=nigh", None),
            ("host=db.example.net sslmode=disable", None),
            ("host=db.example.net", Some("authority")),
            ("dbname=nigh", Some("connection")),
            ("host=/run/postgresql password=secret", Some("connection")),
            ("postgresql://u:secret@db.example.net/nigh", Some("connection")),
            ("host=/run/postgresql pasword=secret", Some("connection")),
        ] {
            let problems = config(connection).problems();
            assert_eq!(problems.first().map(|it| it.key.as_str()), key, "{connection}");
            assert!(!format!("{problems:?}").contains("secret"));
        }
    }

    #[test]
    fn the_password_file_of_libpq_is_read_as_libpq_reads_it() {
        let text = "# a comment:*:*:*:no\nother:*:*:*:no\n\
                    db.example.net:5433:*:prague:a\\:b:c\\\\\n*:*:nigh:*:rest\n";
        let password = |connection: &str| {
            let config = tokio_postgres::Config::from_str(connection).expect("a connection");
            from_passfile(text, &config)
        };
        let found = password("host=db.example.net port=5433 user=prague dbname=x");
        assert_eq!(found.as_deref(), Some("a:b:c\\"));
        assert_eq!(password("host=/run/x user=u dbname=nigh").as_deref(), Some("rest"));
        assert_eq!(password("host=/run/x user=u dbname=x"), None);
    }
}
