//! The HTTP server of `nigh lab run --http`: a map of the running lab, and the output of its commands as JSON.
//!
//! `docs/lab.md` has the paths, below "Over HTTP".
//!
//! Nothing can be changed. Requests are answered by a thread without capabilities, one at a time, with
//! pauses. An error is an object with the field `error`. A request must name the server by an address or as
//! `localhost`: a page of another site that has its name resolved to this address is refused.

mod answers;
mod query;

use crate::control::{Context, EventLog};
use axum::{
    Router,
    http::StatusCode,
    middleware,
    routing::{MethodRouter, get},
};
use datapath::capabilities;
use std::{io, net::SocketAddr, sync::Arc, thread::JoinHandle};
use tokio::{net::TcpListener, sync::oneshot};
use web::{Names, Turns, bind, file, in_turn, refuse, serve};

// The map.
const PAGE: &str = include_str!("../../../web/map.html");
const STYLE: &str = include_str!("../../../web/map.css");
const TEXT_SCRIPT: &str = include_str!("../../../web/map-text.js");
const SCRIPT: &str = include_str!("../../../web/map.js");

/// Pauses between requests, in times of what they take: packets get most of the time.
const PAUSE: u32 = 4;

/// An address where a lab will be shown.
#[derive(Debug)]
pub struct Listener {
    listener: std::net::TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Listens; nobody is answered yet.
    ///
    /// # Errors
    ///
    /// The address is taken, or not this host's.
    pub fn bind(address: SocketAddr) -> Result<Self, web::BindError> {
        let key = "--http";
        let listener = bind(address, key)?;
        let bound = listener.local_addr();
        let address = bound.map_err(|source| web::BindError { address, source, key })?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shows a lab until what it returns is dropped.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn start(self, context: Arc<Context>) -> io::Result<Running> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let log = EventLog::new(&context).map_err(io::Error::other)?;
        let router = router(Arc::new(Shown { context, log }));
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("http".into()).spawn(move || {
            // Before the runtime starts threads of its own.
            capabilities::give_up()?;
            runtime.block_on(async move {
                let listener = TcpListener::from_std(self.listener)?;
                tokio::select! {
                    () = serve(listener, Names::default(), router) => {}
                    _ = stopped => {}
                }
                Ok::<_, io::Error>(())
            })?;
            // An answer that is worked out still must not delay the end.
            runtime.shutdown_background();
            Ok::<_, io::Error>(())
        })?;
        Ok(Running { _stop: stop, _thread: thread })
    }
}

/// A lab that is shown until this is dropped.
#[derive(Debug)]
pub struct Running {
    _stop: oneshot::Sender<()>,
    _thread: JoinHandle<io::Result<()>>,
}

/// What all answers are made of.
struct Shown {
    context: Arc<Context>,
    log: EventLog,
}

/// The answers: what commands print, one at a time.
fn answers() -> [(&'static str, MethodRouter<Arc<Shown>>); 8] {
    [
        ("/api/v1/status", get(answers::status)),
        ("/api/v1/nodes", get(answers::nodes)),
        ("/api/v1/node", get(answers::node)),
        ("/api/v1/links", get(answers::links)),
        ("/api/v1/link", get(answers::link)),
        ("/api/v1/path", get(answers::path)),
        ("/api/v1/events", get(answers::events)),
        ("/api/v1/map", get(answers::map)),
    ]
}

/// The map with its parts.
fn page() -> [(&'static str, MethodRouter<Arc<Shown>>); 4] {
    [
        ("/", get(|| file("text/html; charset=utf-8", PAGE))),
        ("/map.css", get(|| file("text/css", STYLE))),
        ("/map-text.js", get(|| file("text/javascript", TEXT_SCRIPT))),
        ("/map.js", get(|| file("text/javascript", SCRIPT))),
    ]
}

fn router(shown: Arc<Shown>) -> Router {
    let nothing = || async {
        refuse(
            StatusCode::NOT_FOUND,
            "there is no such page; the map is at / and the API at /api/v1/",
        )
    };
    let add = |router: Router<_>, (path, handler)| router.route(path, handler);
    let router = answers()
        .into_iter()
        .fold(Router::new(), add)
        .layer(middleware::from_fn_with_state(Turns::new(PAUSE), in_turn));
    page()
        .into_iter()
        .fold(router, add)
        .fallback(nothing)
        .method_not_allowed_fallback(|| async {
            refuse(StatusCode::METHOD_NOT_ALLOWED, "this is read-only: use GET")
        })
        .with_state(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_manual_has_all_paths() {
        let manual = include_str!("../../../docs/lab.md");
        let (_, manual) = manual.split_once("\n## Over HTTP\n").expect("the section");
        let (section, _) = manual.split_once("\n## ").expect("another section");
        // The first cell of each row has the paths.
        let cells = section.lines().filter_map(|line| line.strip_prefix("| `/")?.split('|').next());
        let spans = cells.flat_map(|cell| cell.split('`').step_by(2));
        let listed: BTreeSet<String> = spans
            .map(|span| span.trim_start_matches('/').split('?').next().unwrap_or_default())
            .map(|path| format!("/{path}"))
            .collect();
        let served: BTreeSet<String> =
            answers().into_iter().chain(page()).map(|(path, _)| path.to_owned()).collect();
        assert_eq!(listed, served);
    }

    #[test]
    fn the_page_takes_nothing_from_elsewhere_and_makes_no_markup_of_names() {
        for element in [
            "<link rel=\"stylesheet\" href=\"map.css\"",
            "<script src=\"map-text.js\"",
            "<script src=\"map.js\"",
        ] {
            assert_eq!(PAGE.matches(element).count(), 1, "{element}");
        }
        for (element, count) in [("<link", 1), ("<script", 2), (" src=", 2), ("<style", 0)] {
            assert_eq!(PAGE.matches(element).count(), count, "{element}");
        }
        assert!(STYLE.len() > 1000 && SCRIPT.len() > 1000 && TEXT_SCRIPT.len() > 1000);
        for text in [PAGE, STYLE, TEXT_SCRIPT, SCRIPT] {
            for word in ["http:", "https:", "url(", "@import", " style=", " onclick="] {
                assert!(!text.contains(word), "{word}");
            }
            // What would make markup of a name.
            for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("]
            {
                assert!(!text.contains(word), "{word}");
            }
        }
    }
}
