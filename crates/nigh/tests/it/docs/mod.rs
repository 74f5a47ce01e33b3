//! What README and docs/ say is true: configurations pass the program's own checks, commands are
//! parsed by its command line, defaults are its defaults, HTTP paths are served, links lead somewhere.
//! `root::docs` compares names of metrics with those of a running daemon.

mod commands;
mod configuration;
mod defaults;
mod http;
mod links;
mod pages;

pub(crate) use commands::commands;
pub(crate) use configuration::is_configuration;
pub(crate) use defaults::table_of;
pub(crate) use pages::{Page, pages, repository};
