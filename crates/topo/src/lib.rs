//! Longest-prefix match, graph, shortest paths, path properties and topology loaders.
#![forbid(unsafe_code)]
