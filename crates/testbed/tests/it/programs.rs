//! A fresh machine passes: `scripts/setup` installs the package of every program that is started.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};
use testbed::programs::{BENCHMARKS, BUILT, EVERYWHERE, OPTIONAL, RECORDINGS, TESTS};

/// The project's folder.
fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn output(words: &[&str]) -> Output {
    Command::new(words[0]).args(&words[1..]).env("LC_ALL", "C").output().expect("it is Debian")
}

/// The lists of packages in `scripts/setup`, by the name of the variable without `_packages`.
fn lists() -> BTreeMap<String, BTreeSet<String>> {
    let script = fs::read_to_string(top().join("scripts/setup")).unwrap();
    let mut lists = BTreeMap::new();
    let mut lines = script.lines();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_suffix("_packages=(") else { continue };
        let inside = lines.by_ref().take_while(|line| *line != ")");
        let package = |line: &str| line.split_whitespace().next().map(str::to_owned);
        lists.insert(name.to_owned(), inside.filter_map(package).collect());
    }
    lists
}

/// Packages and all that these depend on.
fn with_dependencies(packages: impl IntoIterator<Item = String>) -> BTreeSet<String> {
    let format = "-f=${Package}\t${Pre-Depends},${Depends}\t${Provides}\n";
    let all = String::from_utf8(output(&["dpkg-query", "-W", format]).stdout).unwrap();
    let name = |word: &str| word.split([' ', ':', '(']).next().unwrap_or_default().to_owned();
    let (mut needs, mut provided) = (BTreeMap::new(), BTreeMap::<String, Vec<String>>::new());
    for line in all.lines() {
        let [package, depends, provides] = line.splitn(3, '\t').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let list = depends.split([',', '|']).map(|word| name(word.trim())).collect::<Vec<_>>();
        needs.insert(package.to_owned(), list);
        for word in provides.split(',').map(|word| name(word.trim())) {
            provided.entry(word).or_default().push(package.to_owned());
        }
    }
    let mut found = BTreeSet::new();
    let mut left: Vec<String> = packages.into_iter().collect();
    // Names of packages that are not there do no harm.
    while let Some(package) = left.pop() {
        if found.insert(package.clone()) {
            let more = [needs.get(&package), provided.get(&package)];
            left.extend(more.into_iter().flatten().flatten().cloned());
        }
    }
    found
}

/// Where the system keeps a program; what a user has put elsewhere does not count.
fn path_of(program: &str) -> Option<PathBuf> {
    if program.starts_with('/') {
        return Some(program.into()).filter(|path: &PathBuf| path.exists());
    }
    let folders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    folders.iter().map(|folder| Path::new(folder).join(program)).find(|path| path.exists())
}

/// The package that a program belongs to: its path, that behind alternatives, and both as they were
/// before /bin became a link to /usr/bin.
fn package_of(program: &str) -> Option<String> {
    let path = path_of(program)?;
    let real = fs::canonicalize(&path).unwrap();
    for path in [path, real] {
        let path = path.to_str().unwrap();
        let inner = path.strip_prefix("/usr").unwrap_or(path);
        for path in [inner.to_owned(), format!("/usr{inner}")] {
            let found = String::from_utf8(output(&["dpkg", "-S", &path]).stdout).unwrap();
            let mut lines = found.lines().filter(|line| !line.starts_with("diversion by"));
            if let Some((packages, _)) = lines.next().and_then(|line| line.split_once(": ")) {
                return Some(packages.split([',', ':']).next().unwrap().to_owned());
            }
        }
    }
    None
}

/// Programs of which `scripts/setup JOB` does not install the package.
fn missing(programs: &[&str], jobs: &[&str]) -> Vec<String> {
    let lists = lists();
    // Every Debian has these.
    let format = "-f=${Package} ${Essential} ${Priority}\n";
    let all = String::from_utf8(output(&["dpkg-query", "-W", format]).stdout).unwrap();
    let always = all.lines().filter(|line| line.ends_with("required") || line.contains(" yes "));
    let always = always.map(|line| line.split(' ').next().unwrap().to_owned());
    let listed = jobs.iter().flat_map(|job| lists[*job].iter().cloned());
    let installed = with_dependencies(always.chain(listed));
    let wrong = |program: &&str| match package_of(program) {
        None => Some(format!("{program}: belongs to no package, or is not installed")),
        Some(package) if installed.contains(&package) => None,
        Some(package) => Some(format!("{program}: scripts/setup does not install {package}")),
    };
    programs.iter().filter_map(wrong).collect()
}

#[test]
fn setup_installs_what_the_demo_starts() {
    assert_eq!(missing(EVERYWHERE, &["build", "run"]), Vec::<String>::new());
}

#[test]
fn setup_installs_what_tests_start() {
    assert_eq!(missing(TESTS, &["build", "run", "test"]), Vec::<String>::new());
}

#[test]
fn setup_installs_what_benchmarks_start() {
    let jobs = ["build", "run", "lab", "gate", "mask"];
    assert_eq!(missing(BENCHMARKS, &jobs), Vec::<String>::new());
}

/// Sources below a folder.
fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            into.push(path);
        }
    }
}

/// In two parts, so that it is not found here.
const START: &str = concat!("Command::", "new(");

/// The programs that a source starts by name, or by a constant of its own that has the name.
fn started(text: &str) -> impl Iterator<Item = &str> {
    fn quoted(text: &str) -> Option<&str> {
        text.strip_prefix('"')?.split('"').next()
    }
    // What clap calls a command starts nothing.
    let starts = text.match_indices(START).filter(|(at, _)| !text[..*at].ends_with("clap::"));
    starts.filter_map(move |(at, _)| {
        let word = text[at + START.len()..].split(')').next()?;
        quoted(word).or_else(|| quoted(text.split(&format!("const {word}: &str = ")).nth(1)?))
    })
}

/// What is started without the testbed is named there as well, for whom it is.
#[test]
fn what_is_started_directly_is_named() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for crate_ in fs::read_dir(top().join("crates")).unwrap() {
        for (part, lists) in [
            ("src", &[EVERYWHERE, TESTS, BUILT][..]),
            ("tests", &[EVERYWHERE, TESTS, BUILT]),
            ("examples", &[EVERYWHERE, RECORDINGS]),
            ("benches", &[EVERYWHERE, BENCHMARKS, BUILT]),
        ] {
            let mut files = Vec::new();
            sources(&crate_.as_ref().unwrap().path().join(part), &mut files);
            for file in files {
                let text = fs::read_to_string(&file).unwrap();
                for program in started(&text) {
                    seen += 1;
                    if !lists.iter().any(|list| list.contains(&program)) {
                        wrong.push(format!("{program} in {}", file.display()));
                    }
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "not named in testbed's src/programs.rs");
    assert!(seen > 20, "{seen}");
}

/// What scripts look for is named as well, or is not for `scripts/setup` to install.
#[test]
fn what_scripts_look_for_is_named() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for script in fs::read_dir(top().join("scripts")).unwrap() {
        let script = script.unwrap().path();
        let text = fs::read_to_string(&script).unwrap();
        for rest in text.split("command -v ").skip(1) {
            let program = rest.split([' ', ')', ';', '\n']).next().unwrap();
            seen += 1;
            let lists = [EVERYWHERE, TESTS, BENCHMARKS, BUILT, RECORDINGS, OPTIONAL];
            // A variable has an argument of the caller.
            let variable = program.starts_with(['$', '"']);
            if !variable && !lists.iter().any(|list| list.contains(&program)) {
                wrong.push(format!("{program} in {}", script.display()));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "not named in testbed's src/programs.rs");
    assert!(seen > 10, "{seen}");
}
