//! Why a request is not answered: a wrong body (RFC 7285, 8.5.2), or what HTTP itself has a status for.

use super::{error::Problem, media, resource::Response};

/// Why a request is not answered with the resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The body is wrong: 400 with an error resource.
    Body(Problem),
    /// There is no such resource: 404.
    NotFound,
    /// The resource is there, but not for this method: 405, and these are.
    Method(&'static str),
    /// The client takes neither the resource nor an error: 406.
    NotAcceptable(&'static str),
    /// The body's media type is not the one that the directory gives: 415.
    MediaType(&'static str),
    /// What was asked for is larger than the operator's limits: 503, with a sentence.
    TooLarge(String),
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Body(problem)
    }
}

impl Failure {
    /// The reply. Only wrong bodies have a code of ALTO (8.5.2 knows no other), the rest is a status
    /// and a sentence.
    pub fn response(&self) -> Response {
        let text = |status, sentence: String| {
            Response::new(status, media::TEXT, (sentence + "\n").into_bytes())
        };
        match self {
            Self::Body(problem) => {
                Response::new(400, media::ERROR, problem.to_json().to_string().into_bytes())
            }
            Self::NotFound => {
                text(404, "There is no such resource; the directory lists all.".into())
            }
            Self::Method(allow) => {
                let mut response = text(405, format!("This resource is requested with {allow}."));
                response.allow = Some(allow);
                response
            }
            Self::NotAcceptable(media_type) => {
                text(406, format!("This resource is of the media type {media_type}."))
            }
            Self::MediaType(media_type) => {
                text(415, format!("The body must be of the media type {media_type}."))
            }
            Self::TooLarge(sentence) => text(503, sentence.clone()),
        }
    }
}
