//! ALTO over HTTPS (RFC 7285 and its extensions).
