//! Pages of a real web server, Python's, on loopback.

use super::{anywhere, wait};
use probe::tools::{
    Context, Permission, Refusal,
    http::{Error, Settings, run},
};
use std::{
    io::{Read, Write},
    net::{IpAddr, TcpListener},
    process::Command,
    sync::Arc,
    time::Duration,
};
use testbed::{Process, wait_until};

/// Serves a folder, with TLS if a certificate is given; the port is chosen by the system and printed.
const SERVER: &str = "
import functools, http.server, ssl, sys
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
server = http.server.HTTPServer(('127.0.0.1', 0), handler)
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
";

/// All addresses have agreed to some test, and none is on the allow list.
struct Agreed;

impl Permission for Agreed {
    fn allows(&self, _: IpAddr) -> bool {
        true
    }

    fn lists(&self, _: IpAddr) -> bool {
        false
    }
}

fn serve(words: &[&str]) -> (Process, u16) {
    let mut command = Command::new("python3");
    command.args(["-c", SERVER]).args(words);
    let mut server = Process::start(command).unwrap();
    let mut port = None;
    let waited = wait_until("the server's port", Duration::from_secs(20), || {
        port = server.stdout().trim().parse().ok();
        port.is_some() || server.ended().is_some()
    });
    let port = port.unwrap_or_else(|| panic!("{waited:?} {}", server.stderr()));
    (server, port)
}

#[test]
fn a_page_is_fetched_step_by_step() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("page"), vec![b'x'; 300_000]).unwrap();
    let (_server, port) = serve(&[folder.path().to_str().unwrap()]);
    let context = anywhere();
    let page = |path: &str| format!("http://127.0.0.1:{port}/{path}").parse().unwrap();
    let http = wait(run(&page("page"), &Settings::default(), &context)).unwrap();
    assert_eq!((http.status, http.bytes, http.tls_ns), (200, 300_000, None));
    assert!(http.connect_ns > 0 && 0 < http.first_byte_ns && http.first_byte_ns <= http.whole_ns);
    let http = wait(run(&page("none"), &Settings::default(), &context)).unwrap();
    assert_eq!(http.status, 404);
    let short = Settings { most: 299_999, ..Settings::default() };
    let error = wait(run(&page("page"), &short, &context)).unwrap_err();
    assert!(matches!(error, Error::TooLong { .. }), "{error}");
    assert_eq!(context.counters.refused(Refusal::Http), 1);
    // A redirection is an answer, and nobody goes where it leads.
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    let http = wait(run(&page("folder"), &Settings::default(), &context)).unwrap();
    assert_eq!(http.status, 301);
    let error = wait(run(&page("page"), &Settings::default(), &Context::new(Arc::new(Agreed))));
    assert!(matches!(error, Err(Error::Forbidden(_))), "{error:?}");
    let nowhere = Context::new(Arc::new(|_: IpAddr| false));
    let error = wait(run(&page("page"), &Settings::default(), &nowhere)).unwrap_err();
    assert!(matches!(error, Error::Forbidden(_)), "{error}");
}

#[test]
fn over_tls_the_certificate_must_be_good() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("page"), b"hello").unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| folder.path().join(name));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let words = [folder.path(), &certificate, &key].map(|path| path.to_str().unwrap().to_owned());
    let (_server, port) = serve(&words.each_ref().map(String::as_str));
    let to = format!("https://127.0.0.1:{port}/page").parse().unwrap();
    let context = anywhere();
    let known = Settings { authority: Some(certificate), ..Settings::default() };
    let http = wait(run(&to, &known, &context)).unwrap();
    assert_eq!((http.status, http.bytes), (200, 5));
    assert!(http.tls_ns.is_some_and(|tls| tls > 0));
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let file = folder.path().join("other.pem");
    std::fs::write(&file, other.cert.pem()).unwrap();
    let unknown = Settings { authority: Some(file), ..Settings::default() };
    let error = wait(run(&to, &unknown, &context)).unwrap_err();
    assert!(matches!(error, Error::Tls { .. }), "{error}");
}

#[test]
fn what_is_not_http_is_refused_and_counted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let server = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let _ = client.read(&mut [0; 1024]).unwrap();
        client.write_all(b"220 mail.example.org ESMTP\r\n\r\n").unwrap();
    });
    let context = anywhere();
    let error = wait(run(&to, &Settings::default(), &context)).unwrap_err();
    assert!(matches!(error, Error::Answer { .. }), "{error}");
    assert_eq!(context.counters.refused(Refusal::Http), 1);
    server.join().unwrap();
}
