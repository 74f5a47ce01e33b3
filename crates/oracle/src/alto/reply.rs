//! HTTP responses from what the core and the services answer.

use super::{error::Problem, media, resource::Response as Answer};
use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, Response, StatusCode, header},
};

/// A whole response.
pub(super) fn of(answer: Answer) -> Response<Body> {
    let (status, media_type, allow) = (answer.status, answer.media_type, answer.allow);
    let mut response = json(status, media_type, answer.into_bytes());
    if let Some(allow) = allow {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
    }
    response
}

/// A response of a media type.
pub(super) fn json(status: u16, media_type: &'static str, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// What is wrong with a request, as an error resource (RFC 7285 section 8.5).
pub(super) fn problem(status: u16, problem: &Problem) -> Response<Body> {
    json(status, media::ERROR, problem.to_json().to_string().into())
}

/// A sentence, where no error code of ALTO fits.
pub(super) fn sentence(status: u16, text: &str) -> Response<Body> {
    json(status, media::TEXT, format!("{text}\n").into())
}

/// A sentence for a client that may come again later.
pub(super) fn later(status: u16, text: &str, seconds: u64) -> Response<Body> {
    let mut response = sentence(status, text);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}
