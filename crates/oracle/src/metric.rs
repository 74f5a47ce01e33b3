//! Cost expressions over the properties of a path, compiled once.
