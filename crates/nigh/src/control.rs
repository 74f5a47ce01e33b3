//! The daemon's answers on its control socket.
//!
//! Requests: `{"do":"status"}`, `{"do":"drain"}`, `{"do":"undrain"}`, `{"do":"reload"}`, and to each
//! job by its name, such as `{"do":"echo","request":{...}}`. Answers: `{"ok":VALUE}` or `{"error":"sentence"}`.

use crate::node::Node;
use ::control::{Reply, parse};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

pub use ::control::Answer;

/// One request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The action.
    Status {
        /// As text for people instead of an object.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        text: bool,
        /// Of one job only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job: Option<String>,
    },
    /// Take the node out of service; answered when no more requests arrive.
    Drain {},
    /// Take the node into service again.
    Undrain {},
    /// Read the configuration file again.
    Reload {},
}

/// The part of a request that is read first.
#[derive(Deserialize)]
struct Asked {
    #[serde(rename = "do")]
    noun: String,
}

/// A request to a job.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfJob {
    #[serde(rename = "do")]
    noun: String,
    request: Value,
}

/// Handles one request line.
pub(crate) async fn reply(node: Arc<Node>, line: Vec<u8>) -> Result<Reply, String> {
    answer(&node, &line).await.map(Reply::Value)
}

async fn answer(node: &Node, line: &[u8]) -> Result<Value, String> {
    let Asked { noun } = parse(line)?;
    if node.jobs().knows(&noun) {
        let OfJob { noun, request } = parse(line)?;
        return node.jobs().control(&noun, request).await.map_err(|error| error.to_string());
    }
    match parse(line)? {
        Request::Status { text: false, job: None } => Ok(node.status()),
        Request::Status { text: true, job: None } => Ok(node.render().into()),
        Request::Status { text, job: Some(job) } => {
            let job = node.jobs().of(&job).await.map_err(|error| error.to_string())?;
            Ok(if text { job.render().into() } else { job.status() })
        }
        Request::Drain {} => node.drain().await.map_err(|error| error.to_string()),
        Request::Undrain {} => node.undrain().await.map_err(|error| error.to_string()),
        Request::Reload {} => node.reload().await.map_err(|error| error.to_string()),
    }
}
