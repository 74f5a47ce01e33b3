//! Where a command line says that the key is.

use super::{Key, KeyError, command, keyring, read_key};
use std::path::PathBuf;

/// Where the key of a data set is; at most one of these.
#[derive(clap::Args, Debug)]
#[group(multiple = false)]
pub struct Source {
    /// The key of the data set, as `nigh mask key` makes it
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// A program with its arguments that writes the key to its stdout; no shell reads it
    #[arg(long, value_name = "PROGRAM ARG...")]
    key_command: Option<String>,
    /// The key of this name in the kernel's keyring of the session or of the user, of type `user`
    #[arg(long, value_name = "NAME")]
    key_ring: Option<String>,
    /// Take a new key and keep it nowhere: nobody can mask like this again
    #[arg(long)]
    forget: bool,
}

impl Source {
    /// Whether the key is one that nobody has.
    pub fn is_forgotten(&self) -> bool {
        self.forget
    }

    /// The key; `None` if there is no word of where it is, or it is one that nobody has.
    ///
    /// # Errors
    /// When it is not available.
    pub fn read(&self) -> Result<Option<Key>, KeyError> {
        let Self { key, key_command, key_ring, forget: _ } = self;
        if let Some(path) = key {
            return read_key(path).map(Some);
        }
        if let Some(command) = key_command {
            return command::key_of(command).map(Some);
        }
        key_ring.as_deref().map(keyring::key_of).transpose()
    }
}
