//! The process of a parser: it is set up, gives up its rights, and then reads what strangers have sent.

use super::{
    Parser,
    contents::Contents,
    frame::{self, Frame},
    names::Names,
    sandbox::{self, Confinement},
};
use std::{
    io::{self, BufReader, BufWriter, Write},
    os::{fd::AsFd, unix::net::UnixStream},
    process::ExitCode,
};

/// The program's first argument by which it becomes a parser. It is no command: only the daemon gives it.
pub const COMMAND: &str = "gate-parser";

/// Bytes that are read and written at once.
pub(super) const BUFFER: usize = 1 << 17;

/// Runs as a parser if the program's arguments ask for that; none if they do not.
pub fn main() -> Option<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some(COMMAND) {
        return None;
    }
    let result = match arguments.next().as_deref() {
        Some(Names::NAME) => run::<Names>(),
        Some(Contents::NAME) => run::<Contents>(),
        Some(sandbox::Trial::NAME) => run::<sandbox::Trial>(),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    };
    Some(if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run<P: Parser>() -> io::Result<()> {
    sandbox::renounce()?;
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    sandbox::close_all_but(&stream)?;
    // So that most requests are one call to read and one to write.
    let mut input = BufReader::with_capacity(BUFFER, &stream);
    let mut output = BufWriter::with_capacity(BUFFER, &stream);
    let mut body = Vec::new();
    if frame::receive(&mut input, &mut body)?.is_none() {
        return Ok(());
    }
    let text: String = postcard::from_bytes(&body).map_err(io::Error::other)?;
    let settings: P::Settings = serde_json::from_str(&text)?;
    let parser = P::new(&settings);
    let confined = sandbox::confine().map_err(|error| error.to_string());
    let (mut parser, answer): (_, Result<Confinement, String>) = match (parser, confined) {
        (Ok(parser), Ok(confinement)) => (Some(parser), Ok(confinement)),
        (Err(error), _) | (_, Err(error)) => (None, Err(error)),
    };
    let mut frame = Frame::default();
    frame.push(&answer);
    output.write_all(frame.bytes())?;
    output.flush()?;
    while let Some(parser) = &mut parser
        && frame::receive(&mut input, &mut body)?.is_some()
    {
        frame::serve(parser, &body, &mut output)?;
    }
    Ok(())
}
