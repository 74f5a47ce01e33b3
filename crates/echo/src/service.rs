//! The responder and its announcement as one service that the daemon starts, asks and stops.

use crate::{config::Config, control::Request};
use prometheus_client::encoding::DescriptorEncoder;

/// The service did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {}

/// A changed configuration could not be put in force; the old one still is.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {}

/// A request on the control socket could not be answered.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {}

/// A running responder with its announcer; clones are handles on the same one (`Send + Sync`, for
/// the HTTP server shares them).
#[derive(Clone, Debug)]
pub struct Service {}

impl Service {
    /// Opens what the configuration names: programs are attached and sessions begin before this returns.
    ///
    /// With `drained` it starts as after [`Service::drain`]: it answers, but nothing is announced
    /// before [`Service::undrain`]. A node that an operator drained stays drained over a restart.
    pub async fn start(_config: Config, _drained: bool) -> Result<Self, StartError> {
        Ok(Self {})
    }

    /// Puts a changed configuration in force; what did not change keeps its counters and sessions.
    pub async fn reload(&self, _config: Config) -> Result<(), ReloadError> {
        Ok(())
    }

    /// The state as JSON: what stands under `echo` in `nigh status --json` and `/api/v1/status`.
    pub fn status(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    /// The same state as text for people, for `nigh status`.
    pub fn render(&self) -> String {
        String::new()
    }

    /// Why the service is not healthy, a sentence each; empty when it is. For `/healthz`.
    pub fn ailments(&self) -> Vec<String> {
        Vec::new()
    }

    /// Answers one request of the control socket.
    pub async fn control(&self, _request: Request) -> Result<serde_json::Value, ControlError> {
        Ok(serde_json::Value::Null)
    }

    /// Adds this service's metrics, prefix `nigh_echo_` and `nigh_anycast_`.
    pub fn collect(&self, _encoder: &mut DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        Ok(())
    }

    /// Drains: GRACEFUL_SHUTDOWN first, then withdraws, then returns when arrivals are quiet.
    pub async fn drain(&self) {}

    /// Ends a drain: the prefixes are announced again as soon as health allows it.
    pub async fn undrain(&self) {}

    /// Ends sessions and detaches programs. Call [`Service::drain`] first for a stop that loses nothing.
    pub async fn stop(&self) {}
}
