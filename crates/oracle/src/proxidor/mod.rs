//! The Proxidor protocol: messages as bytes and as values, and what a server answers.
