//! The command line as an operator meets it: help, completions, man pages, `nigh check`, errors.

use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

const GOOD: &str = "[echo]\ninterfaces = [\"eth0\"]\naddresses = [\"192.0.2.1\"]\n";

fn nigh(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nigh"))
        .args(words)
        .env_remove("NIGH_SOCKET")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Every path of words that leads to a sub-command, from the indented lists in the help texts.
fn subcommands(prefix: &[String]) -> Vec<Vec<String>> {
    let mut words: Vec<&str> = prefix.iter().map(String::as_str).collect();
    words.push("--help");
    let help = stdout(&nigh(&words));
    let Some((_, list)) = help.split_once("Commands:\n") else { return vec![prefix.to_vec()] };
    let names = list.lines().take_while(|line| !line.is_empty()).filter_map(|line| {
        let name = line.strip_prefix("  ")?;
        (!name.starts_with(' ')).then(|| name.split_whitespace().next())?
    });
    let mut found = vec![prefix.to_vec()];
    for name in names.filter(|name| *name != "help") {
        found.extend(subcommands(&[prefix, &[name.to_owned()]].concat()));
    }
    found
}

#[test]
fn every_help_has_an_example() {
    let all = subcommands(&[]);
    let has = |words: &[&str]| all.iter().any(|path| path == words);
    for words in [&["run"][..], &["check"], &["status"], &["drain"], &["echo", "top"], &["man"]] {
        assert!(has(words), "{words:?} is not in {all:?}");
    }
    for path in &all {
        let mut words: Vec<&str> = path.iter().map(String::as_str).collect();
        words.push("--help");
        let output = nigh(&words);
        assert!(output.status.success());
        assert!(stdout(&output).contains("Example"), "no example in `nigh {}`", words.join(" "));
    }
}

#[test]
fn completions_are_made_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = nigh(&["completions", shell]);
        assert!(output.status.success());
        assert!(stdout(&output).contains("undrain"), "{shell}");
    }
    // The script is one that bash can read.
    let script = stdout(&nigh(&["completions", "bash"]));
    let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
    bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(bash.wait().unwrap().success());
}

#[test]
fn man_pages_are_made_for_every_subcommand() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("man1");
    assert!(nigh(&["man", folder.to_str().unwrap()]).status.success());
    for path in subcommands(&[]) {
        let name = [&["nigh".to_owned()][..], &path].concat().join("-");
        let page = std::fs::read_to_string(folder.join(format!("{name}.1"))).unwrap();
        assert!(page.contains(".SH NAME"), "{name}");
    }
    let page = stdout(&nigh(&["man", "-"]));
    assert!(page.contains(".TH nigh 1"));
}

#[test]
fn check_says_what_is_wrong_and_exits_with_1() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("nigh.toml");
    let name = path.to_str().unwrap();
    std::fs::write(&path, GOOD).unwrap();
    let output = nigh(&["check", "-c", name]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stdout(&output), format!("{name} is good\n"));

    std::fs::write(&path, GOOD.replace("addresses", "adresses")).unwrap();
    let output = nigh(&["check", "-c", name]);
    assert_eq!(output.status.code(), Some(1));
    let expected = format!(
        "error: echo.adresses: unknown key `adresses`: did you mean `addresses`?\n \
         --> {name}:3:1\n  |\n3 | adresses = [\"192.0.2.1\"]\n  | ^^^^^^^^\n\
         nigh: {name} has one problem; nothing was started or changed\n"
    );
    assert_eq!(stderr(&output), expected);

    let output = nigh(&["check", "--json", "-c", name]);
    assert_eq!(output.status.code(), Some(1));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["good"], false);
    assert_eq!(value["findings"][0]["key"], "echo.adresses");
    assert_eq!(value["findings"][0]["line"], 3);
    // `run` judges the file in the same way, before it touches anything.
    let output = nigh(&["run", "-c", name]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(1), expected));
}

#[test]
fn check_shows_warnings_of_a_good_file() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("nigh.toml");
    let name = path.to_str().unwrap();
    std::fs::write(&path, format!("{GOOD}[anycast]\nprefixes = [\"192.0.2.0/24\"]\n")).unwrap();
    let output = nigh(&["check", "-c", name]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stdout(&output), format!("{name} is good\n"));
    let warning = "warning: anycast.upstream: there is none, so nothing is announced\n";
    assert!(stderr(&output).starts_with(warning), "{}", stderr(&output));
    let output = nigh(&["check", "--json", "-c", name]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["good"], true);
    assert_eq!(value["findings"][0]["severity"], "warning");
    assert_eq!(value["findings"][0]["key"], "anycast.upstream");
}

#[test]
fn failures_are_one_sentence_and_the_documented_code() {
    let none = nigh(&["status", "--socket", "/nonexistent/control.sock"]);
    assert_eq!(none.status.code(), Some(3));
    assert_eq!(
        stderr(&none),
        "nigh: no daemon answers at /nonexistent/control.sock: start one with `nigh run -c FILE`, \
         or name its socket with --socket\n"
    );
    let missing = nigh(&["check", "-c", "/nonexistent/nigh.toml"]);
    assert_eq!(missing.status.code(), Some(1));
    assert_eq!(
        stderr(&missing),
        "nigh: cannot read /nonexistent/nigh.toml: No such file or directory (os error 2)\n"
    );
    assert_eq!(nigh(&["frobnicate"]).status.code(), Some(2));
    let log = nigh(&["run", "-c", "/nonexistent", "--log", "a=b=c"]);
    assert!(stderr(&log).starts_with("nigh: --log a=b=c: "), "{}", stderr(&log));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    for words in [&["completions", "zsh"][..], &["man", "-"], &["run", "--help"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_nigh"));
        let output = command.args(words).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()), "{words:?}");
    }
}

#[test]
fn a_configuration_file_goes_before_the_environment() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "[node]\nname = \"n\"\ncontrol = \"/nonexistent/of-file.sock\"\n{GOOD}").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_nigh"))
        .args(["status", "-c"])
        .arg(file.path())
        .env("NIGH_SOCKET", "/nonexistent/of-environment.sock")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("at /nonexistent/of-file.sock"), "{}", stderr(&output));
}
