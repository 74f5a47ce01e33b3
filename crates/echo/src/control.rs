//! What can be asked of a running responder over the daemon's control socket.

use serde::{Deserialize, Serialize};

/// One request, as a JSON object on the control socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The ledger, a row for each address.
    Ledger,
    /// The busiest source prefixes.
    Top {
        /// How many rows at the most.
        count: usize,
    },
}
