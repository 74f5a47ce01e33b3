//! The input of TIPS (RFC 9569 sections 6.1 and 7.4.1).

use crate::alto::{error::Problem, updates::params};

/// What a client asks a view for.
#[derive(Clone, Debug, PartialEq)]
pub struct TipsRequest {
    /// Identity of the resource.
    pub resource: String,
    /// Tag of the version that the client has.
    pub tag: Option<String>,
    /// What the resource is asked with, as JSON text.
    pub input: Option<String>,
}

/// Reads the request for a view.
///
/// # Errors
///
/// What is wrong, in the form of section 6.2.
pub fn parse_open(body: &[u8]) -> Result<TipsRequest, Problem> {
    let object = params::object(body)?;
    let resource = params::text(&object, "resource-id", "resource-id")?
        .ok_or_else(|| Problem::missing("resource-id"))?;
    Ok(TipsRequest {
        resource,
        tag: params::text(&object, "tag", "tag")?,
        input: params::input(&object, "input")?,
    })
}

/// Reads the request for the next edge of a view of `resource`.
///
/// # Errors
///
/// As [`parse_open`]; also if it names another resource, or has input.
pub fn parse_next(body: &[u8], resource: &str) -> Result<TipsRequest, Problem> {
    let request = parse_open(body)?;
    if request.resource != resource {
        return Err(Problem::invalid_value("resource-id", &request.resource.into()));
    }
    if let Some(input) = request.input {
        return Err(Problem::invalid_value("input", &input.into()));
    }
    Ok(request)
}
