//! man(1): a page for each command, in the sections of man-pages(7), made from its help.
//!
//! The help below the options is split by paragraphs: examples, exit codes, notes.

use crate::cli::{Cli, SOCKET_VARIABLE};
use clap::{Arg, Command, CommandFactory};
use clap_mangen::{
    Man,
    roff::{Inline, Roff, bold, italic, roman},
};
use std::{
    io::{self, Write},
    path::Path,
};

/// Writes a page for each command into a folder.
///
/// # Errors
/// When the folder or a file cannot be written.
pub fn write(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    write_below(&root(), None, folder)
}

fn write_below(command: &Command, parent: Option<&Command>, folder: &Path) -> io::Result<()> {
    std::fs::write(folder.join(format!("{}.1", name(command))), page(command, parent)?)?;
    shown(command).try_for_each(|below| write_below(below, Some(command), folder))
}

/// The page of `nigh` itself.
///
/// # Errors
/// None is expected: it is written to memory.
pub fn first() -> io::Result<Vec<u8>> {
    page(&root(), None)
}

fn root() -> Command {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    command
}

/// `nigh-oracle-print`
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// The sub-commands of a command that its help shows.
fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set())
}

fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_positional())
}

fn page(command: &Command, parent: Option<&Command>) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    // The empty date is needed: it comes before the source.
    let title = name(command).replace('-', "\\-");
    let version = env!("CARGO_PKG_VERSION");
    writeln!(page, ".TH {title} 1 \"\" \"nigh {version}\" \"nigh manual\"")?;
    man.render_name_section(&mut page)?;
    synopsis(command, &mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_arguments().any(|arg| !arg.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if shown(command).next().is_some() {
        man.render_subcommands_section(&mut page)?;
    }
    let Parts { examples, exit, notes } = Parts::of(command);
    section("NOTES", &notes, &mut page)?;
    section("EXAMPLES", &examples, &mut page)?;
    let codes = ["The codes of all commands are in nigh(1)."].map(str::to_owned);
    let table = if parent.is_none() { Vec::new() } else { codes.to_vec() };
    section("EXIT STATUS", &[exit, table].concat(), &mut page)?;
    environment(command, parent.is_none(), &mut page)?;
    see_also(command, parent, &mut page)?;
    Ok(page)
}

/// The paragraphs that the help shows below the options.
#[derive(Debug, Default, PartialEq)]
struct Parts {
    examples: Vec<String>,
    exit: Vec<String>,
    notes: Vec<String>,
}

impl Parts {
    fn of(command: &Command) -> Self {
        let help = command.get_after_long_help().or_else(|| command.get_after_help());
        Self::read(&help.map(ToString::to_string).unwrap_or_default())
    }

    fn read(help: &str) -> Self {
        let mut parts = Self::default();
        for paragraph in help.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
            let (head, rest) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
            match head {
                "Example:" | "Examples:" => parts.examples.push(rest.to_owned()),
                "Exit codes:" => parts.exit.push(rest.to_owned()),
                _ if head.starts_with("The exit code") => parts.exit.push(paragraph.to_owned()),
                _ => parts.notes.push(paragraph.to_owned()),
            }
        }
        parts
    }
}

/// A section of paragraphs; indented lines are kept as they are.
fn section(title: &str, paragraphs: &[String], page: &mut Vec<u8>) -> io::Result<()> {
    if paragraphs.is_empty() {
        return Ok(());
    }
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    for paragraph in paragraphs {
        roff.control("PP", []);
        let mut as_it_is = false;
        for line in paragraph.lines() {
            let indented = line.starts_with(' ');
            if indented != as_it_is {
                roff.control(if indented { "nf" } else { "fi" }, []);
                as_it_is = indented;
            }
            roff.text([roman(line)]);
        }
        if as_it_is {
            roff.control("fi", []);
        }
    }
    roff.to_writer(page)
}

/// The synopsis of the command, with the values of its options.
fn synopsis(command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    let mut line = vec![bold(command.get_bin_name().unwrap_or_else(|| command.get_name()))];
    for arg in options(command) {
        let mut one: Vec<Inline> = Vec::new();
        one.extend(arg.get_short().map(|short| bold(format!("-{short}"))));
        if arg.get_short().is_some() && arg.get_long().is_some() {
            one.push(roman("|"));
        }
        one.extend(arg.get_long().map(|long| bold(format!("--{long}"))));
        if arg.get_num_args().is_some_and(|values| values.takes_values()) {
            one.extend([roman(" "), italic(values(arg))]);
        }
        line.extend(bracketed(one, arg.is_required_set()));
    }
    for arg in command.get_positionals().filter(|arg| !arg.is_hide_set()) {
        let several = arg.get_num_args().is_some_and(|values| values.max_values() > 1);
        let more = if several { "..." } else { "" };
        line.extend(bracketed(vec![italic(values(arg) + more)], arg.is_required_set()));
    }
    if shown(command).next().is_some() {
        let value = command.get_subcommand_value_name().unwrap_or("COMMAND").to_owned();
        line.extend(bracketed(vec![italic(value)], command.is_subcommand_required_set()));
    }
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]).text(line);
    roff.to_writer(page)
}

fn values(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ")
}

fn bracketed(words: Vec<Inline>, is_required: bool) -> Vec<Inline> {
    let (open, close) = if is_required { (" ", "") } else { (" [", "]") };
    [vec![roman(open)], words, vec![roman(close)]].concat()
}

/// The variables that the command reads.
fn environment(command: &Command, all: bool, page: &mut Vec<u8>) -> io::Result<()> {
    let has = |option: fn(&Arg) -> bool| all || options(command).any(option);
    // `--log` of other commands is a file.
    let log = has(|arg| arg.get_env().is_some_and(|variable| variable == "RUST_LOG"));
    let socket = has(|arg| arg.get_long() == Some("socket"));
    let mut roff = Roff::new();
    for (is_read, variable, text) in [
        (socket, SOCKET_VARIABLE, "The daemon's control socket, without --socket and --config."),
        (log, "RUST_LOG", "What nigh run logs, without --log."),
    ] {
        if is_read {
            roff.control("TP", []).text([bold(variable)]).text([roman(text)]);
        }
    }
    if roff == Roff::new() {
        return Ok(());
    }
    page.write_all(b".SH ENVIRONMENT\n")?;
    roff.to_writer(page)
}

/// The pages of the parent, of the sub-commands and of the configuration.
fn see_also(command: &Command, parent: Option<&Command>, page: &mut Vec<u8>) -> io::Result<()> {
    let above = parent.into_iter().map(|parent| format!("{}(1)", name(parent)));
    let below = shown(command).map(|below| format!("{}(1)", name(below)));
    let mut pages: Vec<_> = above.chain(below).collect();
    if parent.is_none() || options(command).any(|arg| arg.get_long() == Some("config")) {
        pages.push("nigh.toml(5)".to_owned());
    }
    section("SEE ALSO", &[pages.join(", ")], page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_help_is_taken_apart() {
        let help = "Some note.\n\nThe exit code is 0 or 1.\n\nExamples:\n  nigh a\n  nigh b\n\nExit codes:\n  0  done";
        let strings = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let expected = Parts {
            examples: strings(&["  nigh a\n  nigh b"]),
            exit: strings(&["The exit code is 0 or 1.", "  0  done"]),
            notes: strings(&["Some note."]),
        };
        assert_eq!(Parts::read(help), expected);
    }
}
