//! Any bytes as what a client says first: whether it is a ClientHello does not depend on how it was cut, and
//! names and fingerprints have the form that logs expect.

use classify::tls::{Carrier, Found, client_hello, ja4, parse};

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let whole = client_hello(data);
    for cut in [data.len() / 3, data.len().saturating_sub(1)] {
        match client_hello(data.get(..cut).unwrap_or_default()) {
            Found::More => {}
            early => assert_eq!(early, whole, "{cut} bytes are enough to say"),
        }
    }
    let body = parse(data);
    let hello = if let Found::Hello(hello) = whole { Some(hello) } else { body };
    let Some(hello) = hello else { return };
    for carrier in [Carrier::Tcp, Carrier::Quic] {
        let text = ja4(&hello, carrier);
        assert_eq!(text.split('_').map(str::len).collect::<Vec<_>>(), [10, 12, 12], "{text}");
        assert!(text.is_ascii());
    }
    if let Some(name) = hello.server_name {
        assert!(name.len() <= 253 && name.bytes().all(|byte| byte.is_ascii_graphic()));
        assert!(hello.named);
    }
}
