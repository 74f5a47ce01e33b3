//! The map: one file with its style and its script, and a policy that allows these two and nothing else.

use axum::{
    http::{HeaderName, header},
    response::IntoResponse,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use ring::digest::{SHA256, digest};
use std::future::{Ready, ready};

const PAGE: &str = include_str!("map.html");

/// What answers requests for the page.
pub(super) fn page() -> impl Fn() -> Ready<axum::response::Response> + Clone + Send + Sync + 'static
{
    let policy = policy();
    move || {
        let headers: [(HeaderName, &str); 5] = [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CONTENT_SECURITY_POLICY, &policy),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CACHE_CONTROL, "no-cache"),
        ];
        ready((headers, PAGE).into_response())
    }
}

/// The style and the script are allowed by what they are (CSP Level 3, 8.3), not by where they come
/// from: should a name ever get into the page as markup, a script in it would not run.
fn policy() -> String {
    let [style, script] = ["style", "script"].map(|element| hash(inside(PAGE, element)));
    format!(
        "default-src 'none'; script-src '{script}'; style-src '{style}'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// What is between the tags of the only element of that name.
fn inside<'a>(page: &'a str, element: &str) -> &'a str {
    let rest = page.split_once(&format!("<{element}>")).map_or("", |(_, rest)| rest);
    rest.split_once(&format!("</{element}>")).map_or("", |(text, _)| text)
}

/// As a policy names a text.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(digest(&SHA256, text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_named_as_in_the_standard() {
        // The example of CSP Level 3, 2.3.1.
        let text = "alert('Hello, world.');";
        assert_eq!(hash(text), "sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng=");
    }

    #[test]
    fn the_page_has_one_style_and_one_script_and_takes_nothing_from_elsewhere() {
        for element in ["style", "script"] {
            assert_eq!(PAGE.matches(&format!("<{element}")).count(), 1);
            assert!(inside(PAGE, element).len() > 1000);
        }
        for word in ["http:", "https:", "url(", "@import", " src=", " style=", " onclick="] {
            assert!(!PAGE.contains(word), "{word}");
        }
        // What would make markup of a name.
        for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!PAGE.contains(word), "{word}");
        }
    }
}
