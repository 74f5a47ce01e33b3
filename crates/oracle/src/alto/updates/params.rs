//! The input of update streams and of their control (RFC 8895 sections 6.5 and 7.5).

use crate::alto::{error::Problem, name};
use serde_json::{Map, Value};

/// A resource that the client wants to follow.
#[derive(Clone, Debug, PartialEq)]
pub struct Add {
    /// The client's name for it in this stream.
    pub substream: String,
    /// Identity of the resource.
    pub resource: String,
    /// Tag of the version that the client has.
    pub tag: Option<String>,
    /// Whether the client takes patches.
    pub incremental: bool,
    /// What the resource is asked with, as JSON text; none if the request has no such field.
    pub input: Option<String>,
}

/// A request to a stream or to its control.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params {
    /// What is to be followed from now on.
    pub add: Vec<Add>,
    /// What is no longer to be followed; an empty list means everything.
    pub remove: Option<Vec<String>>,
}

/// Reads the request for a new stream. `remove` is ignored (section 6.5).
///
/// # Errors
///
/// What is wrong, in the form of section 6.6.
pub fn parse_open(body: &[u8]) -> Result<Params, Problem> {
    let object = object(body)?;
    let add = adds(&object)?;
    if add.is_empty() {
        return Err(Problem::missing("add"));
    }
    Ok(Params { add, remove: None })
}

/// Reads a control request.
///
/// # Errors
///
/// What is wrong, in the form of section 7.6; what depends on the stream is checked there.
pub fn parse_control(body: &[u8]) -> Result<Params, Problem> {
    let object = object(body)?;
    let add = adds(&object)?;
    let remove = match object.get("remove") {
        None => None,
        Some(Value::Array(names)) => Some(substreams(names)?),
        Some(_) => return Err(Problem::invalid_type("remove")),
    };
    if add.is_empty() && remove.is_none() {
        return Err(Problem::missing("add"));
    }
    Ok(Params { add, remove })
}

/// The body as an object.
///
/// # Errors
///
/// It is no JSON, or no object.
pub fn object(body: &[u8]) -> Result<Map<String, Value>, Problem> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Problem::syntax("the body must be a JSON object")),
        Err(error) => Err(Problem::syntax(error.to_string())),
    }
}

/// A member that is a string, if it is there.
///
/// # Errors
///
/// It is something else; `path` is what the error calls it.
pub fn text(
    object: &Map<String, Value>,
    name: &str,
    path: &str,
) -> Result<Option<String>, Problem> {
    match object.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(Problem::invalid_type(path)),
    }
}

/// The member `input` as JSON text, if it is there.
///
/// # Errors
///
/// It is no object; `path` is what the error calls it.
pub fn input(object: &Map<String, Value>, path: &str) -> Result<Option<String>, Problem> {
    match object.get("input") {
        None => Ok(None),
        Some(input @ Value::Object(_)) => Ok(Some(input.to_string())),
        Some(_) => Err(Problem::invalid_type(path)),
    }
}

fn adds(object: &Map<String, Value>) -> Result<Vec<Add>, Problem> {
    match object.get("add") {
        None => Ok(Vec::new()),
        Some(Value::Object(entries)) => {
            entries.iter().map(|(substream, entry)| add(substream, entry)).collect()
        }
        Some(_) => Err(Problem::invalid_type("add")),
    }
}

fn add(substream: &str, entry: &Value) -> Result<Add, Problem> {
    // A SubstreamID is written as a ResourceID (section 5.2).
    if !name::is_resource(substream) {
        return Err(Problem::invalid_value("add", &substream.into()));
    }
    let path = |field: &str| format!("add/{substream}/{field}");
    let Value::Object(entry) = entry else {
        return Err(Problem::invalid_type(format!("add/{substream}")));
    };
    let resource = text(entry, "resource-id", &path("resource-id"))?
        .ok_or_else(|| Problem::missing(path("resource-id")))?;
    let incremental = match entry.get("incremental-changes") {
        None => true,
        Some(Value::Bool(wanted)) => *wanted,
        Some(_) => return Err(Problem::invalid_type(path("incremental-changes"))),
    };
    Ok(Add {
        substream: substream.to_owned(),
        resource,
        tag: text(entry, "tag", &path("tag"))?,
        incremental,
        input: input(entry, &path("input"))?,
    })
}

fn substreams(names: &[Value]) -> Result<Vec<String>, Problem> {
    let name = |value: &Value| match value {
        Value::String(name) => Ok(name.clone()),
        other => Err(Problem::invalid_value("remove", other)),
    };
    names.iter().map(name).collect()
}
