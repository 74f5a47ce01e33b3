//! Network namespaces, links, real routers and packet builders for tests and the demo; development only.
#![forbid(unsafe_code)]
