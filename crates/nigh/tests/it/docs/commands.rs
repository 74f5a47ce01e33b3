//! Every command of nigh in the pages is one that its command line takes.

use super::pages;
use clap::{Command, CommandFactory, Parser};
use nigh::cli::Cli;

/// A word of a shell's line, or what ends a command.
#[derive(Debug, PartialEq)]
enum Token {
    Word(String),
    End,
}

/// The words of a script as sh has them: quotes, comments, continued lines, and `| & ; > < ( )` as
/// ends of commands. Words behind `>` and `<` are names of files and no commands, which does no harm
/// here.
fn tokens(script: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = script.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some('\n') | None => {}
                Some(next) => word.get_or_insert_default().push(next),
            },
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                word.extend(characters.by_ref().take_while(|next| *next != c));
            }
            '#' if word.is_none() => while characters.next_if(|next| *next != '\n').is_some() {},
            // `'%eth0>ADDRESS'` is quoted; here these end a command.
            '\n' | '|' | '&' | ';' | '<' | '>' | '(' | ')' => {
                tokens.extend(word.take().map(Token::Word));
                tokens.push(Token::End);
            }
            c if c.is_whitespace() => tokens.extend(word.take().map(Token::Word)),
            c => word.get_or_insert_default().push(c),
        }
    }
    tokens.extend(word.map(Token::Word));
    tokens
}

/// The commands of a script that run nigh, each from the word `nigh` on; `target/debug/nigh` is one too.
pub(crate) fn commands(script: &str) -> Vec<Vec<String>> {
    let tokens = tokens(script);
    let mut found = Vec::new();
    for command in tokens.split(|token| *token == Token::End) {
        let words: Vec<String> = command
            .iter()
            .filter_map(|token| match token {
                Token::Word(word) => Some(word.clone()),
                Token::End => None,
            })
            .collect();
        let assignment = |word: &&String| word.contains('=') && !word.starts_with('-');
        let start = words.iter().take_while(|word| *word == "sudo" || assignment(word)).count();
        let nigh = |word: &String| word == "nigh" || word == "target/debug/nigh";
        if words.get(start).is_some_and(nigh) {
            found.push(words[start..].to_vec());
        }
    }
    found
}

#[test]
fn scripts_are_split_as_sh_splits_them() {
    let script = "sudo nigh lab link 'a>b' set \\\n  delay=1ms   # nigh not this\n\
                  X=1 nigh mask file - - | nigh status & echo nigh\nsudo target/debug/nigh run\n";
    let expected: [&[&str]; 4] = [
        &["nigh", "lab", "link", "a>b", "set", "delay=1ms"],
        &["nigh", "mask", "file", "-", "-"],
        &["nigh", "status"],
        &["target/debug/nigh", "run"],
    ];
    assert_eq!(commands(script), expected);
}

#[test]
fn every_command_in_a_script_is_parsed_by_the_program() {
    let (mut parsed, mut wrong) = (0, Vec::new());
    for page in pages() {
        for block in page.blocks() {
            let commands = commands(&block.text);
            let script = block.language == "sh";
            let at = page.at(block.line);
            let listing = block.text.lines().any(|line| line.starts_with("nigh "));
            assert!(script || !listing, "{at}: a block of commands begins with ```sh");
            for words in commands.iter().filter(|_| script) {
                if let Err(error) = Cli::try_parse_from(words) {
                    wrong.push(format!("{at}: `{}` is refused: {error}", words.join(" ")));
                }
                parsed += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(parsed > 80, "only {parsed} commands were found");
}

/// Follows the sub-commands that `words` name, as far as there are any.
///
/// # Errors
///
/// A word stands where a sub-command must, and there is none of that name.
fn follow<'c>(mut command: &'c Command, words: &[&str]) -> Result<&'c Command, String> {
    for word in words {
        if command.get_subcommands().next().is_none() || word.starts_with('-') {
            break;
        }
        // `nigh JOB status`, `nigh ...`: any will do.
        if word.chars().all(|c| c.is_ascii_uppercase() || c == '.') {
            break;
        }
        command = match command.find_subcommand(word) {
            Some(below) => below,
            // A command with both, such as `nigh lab link NAME set`.
            None if command.get_positionals().next().is_some() => break,
            None => return Err(format!("`{}` has no sub-command `{word}`", command.get_name())),
        };
    }
    Ok(command)
}

/// Whether a command, or any below it, has the option `--long`.
fn has_option(command: &Command, long: &str) -> bool {
    ["help", "version"].contains(&long)
        || command.get_arguments().any(|argument| {
            argument.get_long() == Some(long)
                || argument.get_all_aliases().is_some_and(|all| all.contains(&long))
        })
        || command.get_subcommands().any(|below| has_option(below, long))
}

#[test]
fn commands_and_options_that_are_named_in_sentences_are_there() {
    let mut root = Cli::command();
    root.build();
    let (mut seen, mut wrong) = (0, Vec::new());
    for page in pages() {
        for (line, span) in page.spans() {
            let Some(rest) = span.strip_prefix("nigh ") else { continue };
            let words: Vec<&str> =
                rest.split_whitespace().map(|word| word.trim_end_matches(',')).collect();
            // Not a command: `nigh mask: id, 1` begins what is hashed.
            if words.first().is_some_and(|word| word.ends_with(':')) {
                continue;
            }
            let at = page.at(line);
            let command = match follow(&root, &words) {
                Ok(command) => command,
                Err(error) => {
                    wrong.push(format!("{at}: `{span}`: {error}"));
                    continue;
                }
            };
            for word in words.iter().take_while(|word| **word != "--") {
                let Some(long) = word.strip_prefix("--") else { continue };
                let long = long.split('=').next().unwrap_or_default();
                if !has_option(command, long) {
                    wrong.push(format!("{at}: `{span}`: there is no --{long}"));
                }
            }
            seen += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 100, "only {seen} commands were found");
}

#[test]
fn options_that_are_named_alone_are_there() {
    let mut root = Cli::command();
    root.build();
    // mtr's.
    let others = ["report"];
    let mut wrong = Vec::new();
    for page in pages() {
        for (line, span) in page.spans() {
            let Some(long) = span.strip_prefix("--") else { continue };
            let long = long.split([' ', '=']).next().unwrap_or_default();
            let there = has_option(&root, long) || others.contains(&long);
            if !there {
                wrong.push(format!("{}: no command has `--{long}`", page.at(line)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
