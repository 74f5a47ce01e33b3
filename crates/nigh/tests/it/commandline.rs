//! The command line as an operator meets it: help, completions, man pages, `nigh check`, errors.

use crate::docs::commands;
use clap::{CommandFactory, Parser};
use nigh::cli::Cli;
use std::{
    io::Write,
    path::Path,
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
fn every_help_has_examples_that_the_program_takes() {
    let all = subcommands(&[]);
    let has = |words: &[&str]| all.iter().any(|path| path == words);
    for words in [&["run"][..], &["check"], &["status"], &["drain"], &["echo", "top"], &["man"]] {
        assert!(has(words), "{words:?} is not in {all:?}");
    }
    let mut examples_parsed = 0;
    for path in &all {
        let mut words: Vec<&str> = path.iter().map(String::as_str).collect();
        words.push("--help");
        let output = nigh(&words);
        assert!(output.status.success());
        let at = format!("the help of `nigh {}`", path.join(" "));
        // As it is written: what is printed is broken into lines of the terminal's width.
        let find = |command: clap::Command, name: &String| {
            let below = command.find_subcommand(name);
            below.unwrap_or_else(|| panic!("{at}: there is no {name}")).clone()
        };
        let command = path.iter().fold(Cli::command(), find);
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(stdout(&output).contains("Example"), "no example in {at}");
        let (_, examples) =
            help.split_once("Example").unwrap_or_else(|| panic!("no example in {at}"));
        let lines = examples.lines().skip(1).take_while(|line| line.starts_with("  "));
        let commands = commands(&lines.collect::<Vec<_>>().join("\n"));
        assert!(!commands.is_empty(), "no example of {at} runs nigh");
        for command in commands {
            if let Err(error) = Cli::try_parse_from(&command) {
                panic!("{at}: `{}` is refused: {error}", command.join(" "));
            }
            examples_parsed += 1;
        }
    }
    assert!(examples_parsed >= all.len(), "only {examples_parsed} examples were found");
}

/// What bash offers for the last of these words, by the script that nigh prints.
pub(crate) fn offered(words: &[&str]) -> Vec<String> {
    let folder = Path::new(env!("CARGO_BIN_EXE_nigh")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let script = r#"
        source <(nigh completions bash)
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9
        _clap_complete_nigh nigh "${!#}" 2>/dev/null
        printf '%s\n' "${COMPREPLY[@]}""#;
    let mut bash = Command::new("bash");
    bash.args(["-c", script, "bash"]).args(words).env("PATH", path).env_remove("NIGH_SOCKET");
    let output = bash.output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    stdout(&output).lines().map(str::to_owned).collect()
}

#[test]
fn completions_are_made_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = nigh(&["completions", shell]);
        assert!(output.status.success());
        // The script calls nigh, which knows the commands.
        assert!(stdout(&output).contains("NIGH_COMPLETE"), "{shell}");
        let mut asked = Command::new(env!("CARGO_BIN_EXE_nigh"));
        asked.env("NIGH_COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", "1");
        let output = asked.args(["--", "nigh", "und"]).output().unwrap();
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
fn a_shell_offers_commands_options_and_names() {
    for (line, expected) in [
        ("nigh und", &["undrain"][..]),
        ("nigh psock send --driver p", &["poll-all"]),
        ("nigh mask policy show ", &["strict", "research", "flows", "debug"]),
        ("nigh mask file --policy r", &["research"]),
        ("nigh anonymize file --policy=r", &["--policy=research"]),
        ("nigh gate deny edon", &["edonkey"]),
        ("nigh gate flows --application bittorr", &["bittorrent"]),
        ("nigh gate allow --category peer", &["peer-to-peer"]),
    ] {
        let words: Vec<_> = line.split(' ').collect();
        let offered = offered(&words);
        for name in expected {
            assert!(offered.iter().any(|it| it == name), "{line}: {offered:?}");
        }
        let typed = words.last().unwrap();
        assert!(offered.iter().all(|it| it.starts_with(typed)), "{line}: {offered:?}");
    }
    // Nobody answers: nothing is completed, nothing is printed.
    let none = "nigh gate forget --socket /nonexistent/control.sock runtime";
    assert_eq!(offered(&none.split(' ').collect::<Vec<_>>()), [""]);
}

#[test]
fn a_shell_offers_policies_in_files_and_stations_of_the_file_that_is_named() {
    let temporary = tempfile::tempdir().unwrap();
    let path = |name: &str| temporary.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("mine.toml"), "").unwrap();
    std::fs::write(path("other.pcap"), "").unwrap();
    let policies = offered(&["nigh", "mask", "policy", "check", &path("")]);
    assert_eq!(policies, [path("mine.toml")]);
    let mesh = "[node]\nname = \"prague\"\n[probe.security]\nshared_key = \"/etc/nigh/mesh.key\"\n\
                [[probe.station]]\nname = \"prague\"\naddresses = [\"192.0.2.1\"]\n\
                [[probe.station]]\nname = \"brno\"\naddresses = [\"192.0.2.2\"]\n\
                [[probe.test]]\nname = \"delay\"\nwhat = \"owd\"\nmesh = [\"prague\", \"brno\"]\n\
                interval = \"1m\"\n";
    std::fs::write(path("mesh.toml"), mesh).unwrap();
    assert!(nigh(&["check", "-c", &path("mesh.toml")]).status.success());
    let stations = offered(&["nigh", "probe", "-c", &path("mesh.toml"), "run", "owd", ""]);
    assert!(["prague", "brno"].iter().all(|name| stations.iter().any(|it| it == name)));
    let stations = offered(&["nigh", "probe", "-c", &path("mesh.toml"), "run", "owd", "b"]);
    assert_eq!(stations, ["brno"]);
    let tests = offered(&["nigh", "probe", "-c", &path("mesh.toml"), "show", "--test", ""]);
    assert_eq!(tests, ["delay", "request"]);
}

#[test]
fn old_names_are_refused_with_the_new_one() {
    for (line, now) in [
        ("oracle flood --persec 5", "`--rate`"),
        ("oracle load --limit 5s", "`--duration`"),
        ("oracle ping --key-file k", "`--key`"),
        ("mask live eth0 --policy strict --write - --packets 5", "`--count PACKETS`"),
        ("lab links --limit 5", "`--count`"),
        ("gate pardon 0a", "`nigh gate unblock`"),
    ] {
        let output = nigh(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{line}: {}", stderr(&output));
        assert!(stderr(&output).contains(&format!("is now {now}")), "{line}: {}", stderr(&output));
    }
}

#[test]
fn old_options_are_not_offered() {
    for line in ["nigh probe run owd --leng", "nigh mask live --rotate-sec"] {
        assert_eq!(offered(&line.split(' ').collect::<Vec<_>>()), [""], "{line}");
    }
    let now = offered(&["nigh", "probe", "run", "owd", "--dur"]);
    assert_eq!(now, ["--duration"]);
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
        let title = format!(".TH {name} 1 \"\" \"nigh {}\"", env!("CARGO_PKG_VERSION"));
        assert!(page.replace("\\-", "-").contains(&title), "{name}: {page}");
        for section in ["SYNOPSIS", "EXAMPLES", "\"EXIT STATUS\"", "\"SEE ALSO\""] {
            assert!(page.contains(&format!(".SH {section}\n")), "{name}: no {section}");
        }
        assert!(!page.contains("EXTRA") && !page.contains("Examples:"), "{name}");
    }
    // `--log` of these is an audit record.
    for name in ["nigh-mask-file", "nigh-mask-live"] {
        let page = std::fs::read_to_string(folder.join(format!("{name}.1"))).unwrap();
        assert!(!page.contains("RUST_LOG"), "{name}: {page}");
    }
    let page = std::fs::read_to_string(folder.join("nigh-run.1")).unwrap();
    assert!(page.contains("What nigh run logs"), "{page}");
    let page = stdout(&nigh(&["man", "-"]));
    assert!(page.contains(".TH nigh 1"));
    assert!(page.contains("no daemon answers on the control socket"), "{page}");
    let page = std::fs::read_to_string(folder.join("nigh-gate-flows.1")).unwrap();
    for text in ["NIGH_SOCKET", "\\fIPREFIX\\fR", "nigh\\-gate(1)", "nigh gate flows \\-\\-host"] {
        assert!(page.contains(text), "{text}: {page}");
    }
}

#[test]
fn check_reports_problems_and_exits_with_1() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("nigh.toml");
    let name = path.to_str().unwrap();
    std::fs::write(&path, GOOD).unwrap();
    let output = nigh(&["check", "-c", name]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stdout(&output), format!("{name} is valid\n"));

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
    assert_eq!(value["valid"], false);
    assert_eq!(value["findings"][0]["key"], "echo.adresses");
    assert_eq!(value["findings"][0]["line"], 3);
    // `run` checks the file by the same rules, before it touches anything.
    let output = nigh(&["run", "-c", name]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(78), expected));
}

#[test]
fn check_shows_warnings_of_a_good_file() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("nigh.toml");
    let name = path.to_str().unwrap();
    std::fs::write(&path, format!("{GOOD}[anycast]\nprefixes = [\"192.0.2.0/24\"]\n")).unwrap();
    let output = nigh(&["check", "-c", name]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stdout(&output), format!("{name} is valid\n"));
    let warning = "warning: anycast.upstream: there is none, so nothing is announced\n";
    assert!(stderr(&output).starts_with(warning), "{}", stderr(&output));
    let output = nigh(&["check", "--json", "-c", name]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["valid"], true);
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
        "nigh: cannot open /nonexistent/nigh.toml: No such file or directory (os error 2)\n"
    );
    for line in [
        "frobnicate",
        "gate why tcp",
        "oracle rank foo",
        "lab gen /nonexistent/internet.nigh --transit 3",
        "lab gen /nonexistent/internet.nigh --nodes 0",
    ] {
        let output = nigh(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{line}: {}", stderr(&output));
    }
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
    // And the socket that is named goes before the file.
    let output = Command::new(env!("CARGO_BIN_EXE_nigh"))
        .args(["status", "--socket", "/nonexistent/named.sock", "-c"])
        .arg(file.path())
        .output()
        .unwrap();
    assert!(stderr(&output).contains("at /nonexistent/named.sock"), "{}", stderr(&output));
    let output = Command::new(env!("CARGO_BIN_EXE_nigh"))
        .arg("status")
        .env("NIGH_SOCKET", "/nonexistent/of-environment.sock")
        .output()
        .unwrap();
    assert!(stderr(&output).contains("at /nonexistent/of-environment.sock"));
}

#[test]
fn options_without_a_meaning_are_refused_and_not_shown() {
    for (line, option) in [
        ("gate watch --json", "--json"),
        ("gate --json watch", "--json"),
        ("gate replay a.pcap --interface lo --socket /s", "--socket"),
        ("gate -c /c replay a.pcap --interface lo", "--config"),
        ("gate classify a.pcap --socket /s", "--socket"),
        ("probe show --socket /s", "--socket"),
        ("probe export /tmp/out --socket /s", "--socket"),
        ("oracle console --json", "--json"),
        ("oracle --json console", "--json"),
        ("lab view --json", "--json"),
        ("lab exec --json pc true", "--json"),
    ] {
        let words: Vec<_> = line.split(' ').collect();
        let output = nigh(&words);
        assert_eq!(output.status.code(), Some(2), "{line}: {}", stderr(&output));
        assert!(stderr(&output).contains(option), "{line}: {}", stderr(&output));
        assert!(!stderr(&output).contains("\n\n\n"), "{line}: {}", stderr(&output));
        let command: Vec<_> = words[..2].iter().filter(|word| !word.starts_with('-')).collect();
        if let [job, command] = command[..] {
            let usage = format!("\nUsage: nigh {job} {command} ");
            assert!(stderr(&output).contains(&usage), "{line}: {}", stderr(&output));
            let help = stdout(&nigh(&[job, command, "--help"]));
            assert!(!help.contains(option), "{line}: {help}");
        }
    }
}

#[test]
fn json_may_be_asked_for_before_the_command() {
    for line in [
        "echo --json status --socket /nonexistent/control.sock",
        "oracle --json status --socket /nonexistent/control.sock",
        "lab --json status --lab none-of-this-name",
    ] {
        let output = nigh(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(3), "{line}: {}", stderr(&output));
    }
    let output = nigh(&["psock", "--json", "key"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["key"].as_str().unwrap().len(), 64);
}

#[test]
fn the_archive_has_one_name() {
    for line in ["probe show --archive /a -c /b", "probe -c /b export /c --archive /a"] {
        let output = nigh(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{line}: {}", stderr(&output));
        assert!(stderr(&output).contains("--archive cannot be used with --config"), "{line}");
    }
}

#[test]
fn c_is_the_configuration_and_nothing_else() {
    fn walk(command: &clap::Command, path: &str) {
        for arg in command.get_arguments().filter(|arg| arg.get_short() == Some('c')) {
            assert_eq!(arg.get_long(), Some("config"), "{path}");
        }
        command.get_subcommands().for_each(|below| {
            walk(below, &format!("{path} {}", below.get_name()));
        });
    }
    walk(&Cli::command(), "nigh");
}

#[test]
fn every_summary_is_an_order() {
    const VERBS: &str = "Anonymize Ask Build Capture Carry Change Check Classify Create Delete \
                         Explain Find Follow Forward Generate Let Limit List Make Mask Measure \
                         Print Query Read Receive Refuse Remove Run Say Send Set Show Switch \
                         Take Unblock Watch Write";
    fn walk(command: &clap::Command, path: &str, wrong: &mut Vec<String>) {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let first = about.split([' ', ',']).next().unwrap_or_default();
        if !VERBS.split_whitespace().any(|verb| verb == first) {
            wrong.push(format!("{path}: {about}"));
        }
        for below in command.get_subcommands() {
            walk(below, &format!("{path} {}", below.get_name()), wrong);
        }
    }
    let mut wrong = Vec::new();
    Cli::command().get_subcommands().for_each(|it| walk(it, it.get_name(), &mut wrong));
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn the_help_of_every_status_has_its_exit_code() {
    for job in std::iter::once("").chain(nigh::jobs::registry().names()) {
        let words: Vec<_> =
            [job, "status", "--help"].into_iter().filter(|w| !w.is_empty()).collect();
        let help = stdout(&nigh(&words));
        assert!(help.contains("exit code is 5"), "{job}: {help}");
    }
}

#[test]
fn without_a_lab_commands_that_ask_one_exit_with_3_and_exec_with_125() {
    // The folder of labs is the system's: ask for one that nobody runs.
    for words in [
        &["lab", "status", "--lab", "none-of-this-name"][..],
        &["lab", "path", "a", "b", "--lab", "none-of-this-name"],
        &["lab", "capture", "a", "-w", "/dev/null", "--lab", "none-of-this-name"],
        &["lab", "view", "--lab", "none-of-this-name"],
    ] {
        let output = nigh(words);
        assert_eq!(output.status.code(), Some(3), "{words:?}: {}", stderr(&output));
    }
    let output = nigh(&["lab", "exec", "no-host-of-this-name", "true"]);
    assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
}

#[test]
fn a_key_of_psock_is_printed_as_json() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("key");
    let json = |words: &[&str]| {
        let output = nigh(&[&["psock", "key", "--json"], words].concat());
        serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON")
    };
    assert_eq!(json(&[file.to_str().unwrap()])["file"], file.to_str().unwrap());
    assert!(file.is_file());
    assert_eq!(json(&[])["key"].as_str().unwrap().len(), 64);
}
