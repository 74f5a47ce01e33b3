//! The sections `[echo]` and `[anycast]` of the configuration.

use serde::Deserialize;

/// What is wrong with a value that parsed: the dotted key and one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Dotted key as in the file, such as `echo.limit.rate` or `anycast.upstream[1].peer`.
    pub key: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// The section `[echo]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EchoConfig {
    /// Names of the interfaces on which requests arrive.
    pub interfaces: Vec<String>,
}

/// The section `[anycast]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnycastConfig {}

/// Both sections, as `nigh run` hands them over.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The section `[echo]`.
    pub echo: EchoConfig,
    /// The section `[anycast]`, if there is one.
    pub anycast: Option<AnycastConfig>,
}

impl Config {
    /// Everything that is wrong with the values, in the order of the file; empty when all is well.
    pub fn problems(&self) -> Vec<Problem> {
        Vec::new()
    }
}
