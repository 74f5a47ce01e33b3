//! The answers: each is what a command prints with `--json`.

use super::{
    Shown,
    query::{Mistake, Parameters},
};
use crate::{
    SettingsChange,
    control::{FindError, MOST_DRAWN, MOST_ROWS, ReplyError, Sort},
};
use axum::{
    Json,
    extract::State,
    http::{StatusCode, Uri},
    response::{IntoResponse, Response},
};
use clap::ValueEnum;
use serde::Serialize;
use std::sync::Arc;
use web::{fresh, refuse};

/// Rows of an answer by default.
const SOME_ROWS: usize = 100;
/// Nodes of a map by default.
const SOME_NODES: usize = 300;
/// Most nodes that can be asked to be on a map.
const MOST_WITH: usize = 128;

type Parts = State<Arc<Shown>>;

/// `/api/v1/status`
pub(super) async fn status(State(shown): Parts, uri: Uri) -> Response {
    answer(shown, &uri, |_| Ok(()), |shown, ()| shown.context.status()).await
}

/// `/api/v1/nodes`
pub(super) async fn nodes(State(shown): Parts, uri: Uri) -> Response {
    let read = |query: &mut Parameters| Ok((query.one::<String>("after")?, rows(query)?));
    let find = |shown: &Shown, (after, limit): (Option<String>, usize)| {
        shown.context.nodes_after(after.as_deref(), limit)
    };
    answer(shown, &uri, read, find).await
}

/// `/api/v1/node`
pub(super) async fn node(State(shown): Parts, uri: Uri) -> Response {
    let read = |query: &mut Parameters| query.needed("name");
    answer(shown, &uri, read, |shown, name| shown.context.node(&name, None)).await
}

/// `/api/v1/links`
pub(super) async fn links(State(shown): Parts, uri: Uri) -> Response {
    let read = |query: &mut Parameters| {
        let sort = match query.one::<String>("sort")? {
            Some(word) => Sort::from_str(&word, false).map_err(|_| {
                format!("sort={word} is not one of bytes, packets, drops and number")
            })?,
            None => Sort::default(),
        };
        Ok((sort, rows(query)?, query.one("all")?.unwrap_or(false)))
    };
    let find = |shown: &Shown, (sort, limit, all)| shown.context.links(sort, limit, all);
    answer(shown, &uri, read, find).await
}

/// `/api/v1/link`
pub(super) async fn link(State(shown): Parts, uri: Uri) -> Response {
    let read = |query: &mut Parameters| query.needed("name");
    let find = |shown: &Shown, name: String| shown.context.link(&name, SettingsChange::default());
    answer(shown, &uri, read, find).await
}

/// `/api/v1/path`
pub(super) async fn path(State(shown): Parts, uri: Uri) -> Response {
    let read = |query: &mut Parameters| Ok((query.needed("from")?, query.needed("to")?));
    let find = |shown: &Shown, (from, to): (String, String)| shown.context.path(&from, &to);
    answer(shown, &uri, read, find).await
}

/// `/api/v1/events`
pub(super) async fn events(State(shown): Parts, uri: Uri) -> Response {
    let read = |query: &mut Parameters| Ok((query.one("after")?, rows(query)?));
    let find = |shown: &Shown, (after, limit)| shown.log.since(&shown.context, after, limit);
    answer(shown, &uri, read, find).await
}

/// `/api/v1/map`
pub(super) async fn map(State(shown): Parts, uri: Uri) -> Response {
    let read = |query: &mut Parameters| {
        let limit = at_most(query, SOME_NODES, MOST_DRAWN)?;
        let with = query.all("with");
        match with.len() {
            0..=MOST_WITH => Ok((limit, with)),
            _ => Err(format!("with is given more than {MOST_WITH} times")),
        }
    };
    let find = |shown: &Shown, (limit, with): (usize, Vec<String>)| shown.context.map(limit, &with);
    answer(shown, &uri, read, find).await
}

/// How many rows are asked for.
fn rows(query: &mut Parameters) -> Result<usize, Mistake> {
    at_most(query, SOME_ROWS, MOST_ROWS)
}

fn at_most(query: &mut Parameters, some: usize, most: usize) -> Result<usize, Mistake> {
    match query.one("limit")?.unwrap_or(some) {
        limit if limit <= most => Ok(limit),
        limit => Err(format!("limit={limit} is too many: at most {most}")),
    }
}

/// Reads a request, and answers it on a thread that may wait for the engine.
async fn answer<P: Send + 'static, T: Serialize + Send + 'static>(
    shown: Arc<Shown>,
    uri: &Uri,
    read: impl FnOnce(&mut Parameters) -> Result<P, Mistake>,
    find: impl FnOnce(&Shown, P) -> Result<T, ReplyError> + Send + 'static,
) -> Response {
    let parameters = Parameters::read(uri).and_then(|mut query| {
        let parameters = read(&mut query)?;
        query.end()?;
        Ok(parameters)
    });
    let parameters = match parameters {
        Ok(parameters) => parameters,
        Err(mistake) => return refuse(StatusCode::BAD_REQUEST, mistake),
    };
    let work = move || match find(&shown, parameters) {
        Ok(value) => fresh(Json(value).into_response()),
        Err(error) => refuse(status_of(&error), error.to_string()),
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(response) => response,
        Err(_) => refuse(StatusCode::INTERNAL_SERVER_ERROR, "the answer could not be computed"),
    }
}

/// The status that goes with an error.
fn status_of(error: &ReplyError) -> StatusCode {
    match error {
        ReplyError::Find(FindError::NoPair(_) | FindError::Several { .. }) => {
            StatusCode::BAD_REQUEST
        }
        ReplyError::Find(_) => StatusCode::NOT_FOUND,
        ReplyError::Change(_) | ReplyError::NotRouted(_) => StatusCode::BAD_REQUEST,
        ReplyError::Stopped(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}
