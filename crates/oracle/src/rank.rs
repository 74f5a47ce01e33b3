//! Ranking: candidates in, the same candidates out, best first.
