//! Links between pages lead somewhere, and the indices are whole.

use super::{Page, pages::markdown, repository};
use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

/// All pages: those of [`super::pages`], the history, the decisions.
fn all() -> Vec<Page> {
    let mut pages = super::pages();
    pages.push(Page::read("CHANGELOG.md".into()));
    pages.extend(markdown("docs/decisions").into_iter().map(Page::read));
    pages
}

/// The anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// `folder` and then `path`, without `..` in it.
fn join(folder: &Path, path: &str) -> PathBuf {
    let mut joined = PathBuf::new();
    for part in folder.join(path).components() {
        match part {
            Component::ParentDir => assert!(joined.pop(), "{path} leads out of the repository"),
            part => joined.push(part),
        }
    }
    joined
}

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_are_there() {
    let pages = all();
    let mut checked = 0;
    for page in &pages {
        for (line, link) in page.links() {
            if link.starts_with("http://") || link.starts_with("https://") {
                continue;
            }
            let (path, heading) = link.split_once('#').unwrap_or((&link, ""));
            let folder = page.path.parent().unwrap();
            let target = if path.is_empty() { page.path.clone() } else { join(folder, path) };
            let at = page.at(line);
            assert!(repository().join(&target).exists(), "{at}: {link} is not there");
            if !heading.is_empty() {
                let other = pages.iter().find(|page| page.path == target);
                let other = other.unwrap_or_else(|| panic!("{at}: {link} is no page"));
                let there = other.headings().any(|text| anchor(text) == heading);
                assert!(there, "{at}: {} has no heading #{heading}", target.display());
            }
            checked += 1;
        }
    }
    assert!(checked > 100, "only {checked} links were found");
}

#[test]
fn the_indices_name_every_page() {
    for folder in ["docs", "docs/decisions"] {
        let index = Page::read(Path::new(folder).join("README.md"));
        let links: Vec<PathBuf> =
            index.links().iter().map(|(_, link)| join(Path::new(folder), link)).collect();
        for page in markdown(folder) {
            let named = page == index.path || links.contains(&page);
            assert!(named, "{} does not name {}", index.path.display(), page.display());
        }
    }
}

#[test]
fn every_decision_has_a_number_of_its_own() {
    let mut numbers = BTreeMap::new();
    for page in markdown("docs/decisions") {
        let name = page.file_name().unwrap().to_str().unwrap().to_owned();
        if name == "README.md" {
            continue;
        }
        let number = name.split('-').next().unwrap();
        assert!(number.len() == 3 && number.parse::<u16>().is_ok(), "{name} is not NNN-NAME.md");
        if let Some(other) = numbers.insert(number.to_owned(), name.clone()) {
            panic!("{name} and {other} have one number");
        }
    }
}
