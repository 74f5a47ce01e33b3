//! Completion: the words that may come next by the grammar, and the routers that the daemon knows.

use clap::Command;
use rustyline::{
    Context, completion::Completer, highlight::Highlighter, hint::Hinter, validate::Validator,
};

/// What completes a line.
pub(super) struct Helper {
    grammar: Command,
    routers: Vec<String>,
}

impl Helper {
    /// Completes by this grammar.
    pub(super) fn new(mut grammar: Command) -> Self {
        grammar.build();
        Self { grammar, routers: Vec::new() }
    }

    /// The words that name a router.
    pub(super) fn set_routers(&mut self, routers: Vec<String>) {
        self.routers = routers;
    }

    /// The words that may stand after the words before, and begin like `start`.
    fn candidates(&self, before: &[&str], start: &str) -> Vec<String> {
        let mut command = &self.grammar;
        let mut given = 0;
        let mut words = before.iter();
        while let Some(word) = words.next() {
            if let Some(option) = word.strip_prefix("--") {
                let takes = command
                    .get_arguments()
                    .find(|argument| argument.get_long() == Some(option))
                    .is_some_and(|argument| argument.get_action().takes_values());
                if takes {
                    words.next();
                }
                continue;
            }
            match command.find_subcommand(word) {
                Some(next) => (command, given) = (next, 0),
                None => given += 1,
            }
        }
        let mut found: Vec<String> = command
            .get_subcommands()
            .filter(|_| given == 0)
            .map(|next| next.get_name().to_owned())
            .collect();
        if start.starts_with('-') {
            let options = command.get_arguments().filter_map(clap::Arg::get_long);
            found.extend(options.map(|option| format!("--{option}")));
        } else if let Some(argument) = command.get_positionals().nth(given) {
            let values = argument.get_possible_values();
            found.extend(values.iter().map(|value| value.get_name().to_owned()));
            if matches!(argument.get_id().as_str(), "router" | "from" | "to") {
                found.extend(self.routers.iter().cloned());
            }
        }
        found.retain(|word| word.to_lowercase().starts_with(&start.to_lowercase()));
        found
    }
}

impl rustyline::Helper for Helper {}
impl Highlighter for Helper {}
impl Validator for Helper {}

impl Hinter for Helper {
    type Hint = String;
}

impl Completer for Helper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let line = line.get(..position).unwrap_or(line);
        let at = line
            .rfind(char::is_whitespace)
            .map_or(0, |blank| blank + line[blank..].chars().next().map_or(0, char::len_utf8));
        let (before, start) = line.split_at(at);
        let before: Vec<&str> = before.split_whitespace().collect();
        let mut found = self.candidates(&before, start);
        // The one word that is meant is finished: the next can be typed.
        if let [word] = found.as_mut_slice() {
            word.push(' ');
        }
        Ok((at, found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn candidates(line: &str) -> Vec<String> {
        let mut helper = Helper::new(super::super::Line::command());
        helper.set_routers(vec!["10.0.0.1".into(), "berlin".into()]);
        let history = rustyline::history::DefaultHistory::new();
        let (_, found) = helper.complete(line, line.len(), &Context::new(&history)).unwrap();
        found
    }

    #[test]
    fn commands_values_options_and_routers_are_completed() {
        assert_eq!(candidates("pri"), ["print "]);
        assert_eq!(candidates("print r"), ["routers", "route"]);
        assert_eq!(candidates("print networks "), ["internal", "external"]);
        assert_eq!(candidates("print networks i"), ["internal "]);
        assert_eq!(candidates("set link b"), ["berlin "]);
        assert_eq!(candidates("set link berlin 10."), ["10.0.0.1 "]);
        assert_eq!(candidates("set link berlin 10.0.0.1 lat"), ["latency "]);
        assert_eq!(candidates("set link --id 3 berlin 10.0.0.1 we"), ["weight "]);
        assert_eq!(candidates("create link a b --ba"), ["--bandwidth "]);
        assert_eq!(candidates("print routers "), Vec::<String>::new());
    }
}
