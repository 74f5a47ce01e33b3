//! HTTP paths in the pages are those that the program serves: `docs/http.md` has exactly the daemon's,
//! and what the pages ask for is there. A test of the crate `lab` compares the lab's table.

use super::{Page, pages};
use axum::{extract::Query, http::Uri};
use std::collections::BTreeSet;

/// The methods and paths in the tables of a page; a path in a table without methods is one for GET.
fn tabled(page: &Page) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for table in page.tables() {
        let column = |name: &str| table.header.iter().position(|cell| cell == name);
        let Some(paths) = column("path") else { continue };
        for (_, row) in &table.rows {
            let method = column("method").map_or("GET", |method| &row[method]);
            let spans = row[paths].split('`').skip(1).step_by(2);
            found.extend(spans.map(|path| (method.to_owned(), bare(path).to_owned())));
        }
    }
    found
}

/// A path without its parameters.
fn bare(path: &str) -> &str {
    path.split('?').next().unwrap_or_default()
}

/// The daemon's routes.
fn routes() -> BTreeSet<(String, String)> {
    let routes = nigh::http::routes().into_iter();
    routes.map(|(method, path, ..)| (method.to_owned(), path.to_owned())).collect()
}

#[test]
fn the_table_of_routes_is_the_programs() {
    let page = Page::read("docs/http.md".into());
    assert_eq!(tabled(&page), routes());
}

/// The URLs in a text for one port.
fn urls(text: &str, port: u16) -> Vec<Uri> {
    let ends = |c: char| c.is_whitespace() || "'\"`)".contains(c);
    let starts = text.match_indices("http").map(|(at, _)| at);
    let words = starts.map(|at| text[at..].split(ends).next().unwrap_or_default());
    words
        .filter_map(|word| word.parse::<Uri>().ok())
        .filter(|uri| uri.port_u16() == Some(port))
        .collect()
}

#[test]
fn every_url_in_the_pages_is_served() {
    let lab = tabled(&Page::read("docs/lab.md".into()));
    let (mut seen, mut wrong) = (0, Vec::new());
    for page in pages() {
        for (port, routes) in [(9160, routes()), (9161, lab.clone())] {
            for uri in urls(page.text(), port) {
                seen += 1;
                let path = uri.path();
                if !routes.iter().any(|(_, route)| route == path) {
                    wrong.push(format!("{}: nothing is at {uri}", page.path.display()));
                }
                let asks = path == "/api/v1/probe/show";
                if asks && let Err(error) = Query::<probe::show::Ask>::try_from_uri(&uri) {
                    wrong.push(format!("{}: {uri}: {}", page.path.display(), error.body_text()));
                }
            }
        }
        // Paths in sentences and tables, with a method in front or without.
        for (line, span) in page.spans() {
            let (method, path) = match span.split_once(' ') {
                Some((method, path)) => (Some(method), path),
                None => (None, span),
            };
            if !path.starts_with("/api/v1/") || path == "/api/v1/" {
                continue;
            }
            seen += 1;
            let is = |(of, route): &(String, String)| {
                route == bare(path) && method.is_none_or(|method| method == of)
            };
            if !routes().iter().chain(&lab).any(is) {
                wrong.push(format!("{}: `{span}` is not served", page.at(line)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 20, "only {seen} URLs and paths were found");
}

#[test]
fn tests_that_the_pages_post_are_read() {
    let mut seen = 0;
    for page in pages() {
        for (line, text) in page.lines().filter(|(_, text)| text.contains("curl ")) {
            let Some((_, body)) = text.split_once(" -d '{\"what\"") else { continue };
            let body = format!("{{\"what\"{}", body.split('\'').next().unwrap());
            let read = probe::control::Order::read(body.as_bytes());
            assert!(read.is_ok(), "{}: {body}: {}", page.at(line), read.unwrap_err());
            seen += 1;
        }
    }
    assert!(seen > 0, "no request was found");
}
