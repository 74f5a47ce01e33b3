//! An external web server, and an internal curl.

use super::site::Site;
use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    sync::{Arc, Mutex},
};

/// The server's address and port.
pub(crate) const WEB: &str = "10.62.0.2:8080";

/// Files by their paths.
type Files = Arc<Mutex<HashMap<String, Vec<u8>>>>;

/// How a response marks the end of its body; those behind the third are odd: two blanks in the status line,
/// chunk sizes of 16 digits, chunks of HTTP/1.0.
const FORMS: [&str; 6] = ["length", "chunked", "close", "blanks", "digits", "old"];

/// A server that answers `GET /FORM/NAME` and keeps what `PUT /FORM/NAME` brings; it ends with the test.
pub(crate) struct Web {
    files: Files,
    folder: tempfile::TempDir,
}

impl Web {
    pub(crate) fn start(site: &Site) -> Self {
        let files = Files::default();
        let listener = site.external.enter(|| TcpListener::bind(WEB)).unwrap();
        let serves = Arc::clone(&files);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let files = Arc::clone(&serves);
                // What a client does who is refused is of no interest here.
                std::thread::spawn(move || drop(talk(stream, &files)));
            }
        });
        Self { files, folder: tempfile::tempdir().unwrap() }
    }

    /// Offers a file.
    pub(crate) fn offer(&self, name: &str, content: &[u8]) {
        self.files.lock().unwrap().insert(name.to_owned(), content.to_owned());
    }

    /// What was brought under a name.
    pub(crate) fn brought(&self, name: &str) -> Option<Vec<u8>> {
        self.files.lock().unwrap().get(name).cloned()
    }

    /// The whole file, fetched by an internal curl; none when it did not get that.
    pub(crate) fn fetch(&self, site: &Site, form: &str, name: &str) -> Option<Vec<u8>> {
        assert!(FORMS.contains(&form));
        let to = self.to();
        let words = ["curl", "-s", "-S", "-m", "20", "-o", to.to_str().unwrap()];
        let url = format!("http://{WEB}/{form}/{name}");
        let whole = site.client(&[&words[..], &[&url]].concat());
        let content = std::fs::read(&to);
        let _ = std::fs::remove_file(&to);
        content.ok().filter(|_| whole)
    }

    /// Whether an internal curl could upload a file.
    pub(crate) fn bring(&self, site: &Site, form: &str, name: &str, content: &[u8]) -> bool {
        let from = self.to();
        std::fs::write(&from, content).unwrap();
        let mut words = vec!["curl", "-s", "-S", "-m", "20", "-T", from.to_str().unwrap()];
        if form == "chunked" {
            words.extend(["-H", "Transfer-Encoding: chunked"]);
        }
        let url = format!("http://{WEB}/{form}/{name}");
        words.push(&url);
        site.client(&words)
    }

    fn to(&self) -> PathBuf {
        self.folder.path().join("file")
    }
}

/// Answers the requests of a connection.
fn talk(stream: TcpStream, files: &Files) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let mut words = head.split(' ');
        let (method, path) = (words.next(), words.next().unwrap_or_default());
        let (form, name) = path.trim_start_matches('/').split_once('/').unwrap_or_default();
        if method == Some("PUT") {
            if head.contains("Expect: 100-continue") {
                writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            }
            let body = body(&mut reader, &head)?;
            files.lock().unwrap().insert(name.to_owned(), body);
            writer.write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")?;
            continue;
        }
        let content = files.lock().unwrap().get(name).cloned().unwrap_or_default();
        match form {
            "length" | "blanks" => {
                let blanks = if form == "blanks" { "  " } else { " " };
                let length = content.len();
                write!(writer, "HTTP/1.1{blanks}200 OK\r\nContent-Length: {length}\r\n\r\n")?;
                writer.write_all(&content)?;
            }
            "chunked" | "digits" | "old" => {
                let version = if form == "old" { "1.0" } else { "1.1" };
                write!(writer, "HTTP/{version} 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
                let digits = if form == "digits" { 16 } else { 1 };
                for chunk in content.chunks(10_000) {
                    write!(writer, "{:0digits$x}\r\n", chunk.len())?;
                    writer.write_all(chunk)?;
                    writer.write_all(b"\r\n")?;
                }
                writer.write_all(b"0\r\n\r\n")?;
            }
            _ => {
                writer.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
                return writer.write_all(&content);
            }
        }
    }
}

/// A request's body, by its length or in chunks.
fn body(reader: &mut impl BufRead, head: &str) -> std::io::Result<Vec<u8>> {
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
    if let Some(length) = length {
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        return Ok(body);
    }
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let wrong = |_| std::io::Error::other("no length of a chunk");
        let length = usize::from_str_radix(line.trim(), 16).map_err(wrong)?;
        let at = body.len();
        body.resize(at + length, 0);
        reader.read_exact(&mut body[at..])?;
        reader.read_exact(&mut [0; 2])?;
        if length == 0 {
            return Ok(body);
        }
    }
}
