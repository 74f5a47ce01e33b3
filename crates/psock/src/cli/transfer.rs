//! `nigh psock send` and `nigh psock recv`.

use super::{CommandError, RecvArgs, SendArgs, progress::Progress};
use crate::PsockStream;
use std::{
    fs::{self, File},
    io::{self, ErrorKind, Read, Write},
    net::Shutdown,
    path::{Path, PathBuf},
};

/// Bytes that are read and written at a time.
const CHUNK: usize = 256 << 10;

pub(super) fn send(args: &SendArgs) -> Result<(), CommandError> {
    let unread = |source| CommandError::Read { file: args.file.clone(), source };
    let (mut from, length): (Box<dyn Read>, _) = if is_standard(&args.file) {
        (Box::new(io::stdin().lock()), None)
    } else {
        let unopened = |source| CommandError::Open { file: args.file.clone(), source };
        let file = File::open(&args.file).map_err(unopened)?;
        let meta = file.metadata().map_err(unread)?;
        if meta.is_dir() {
            return Err(unread(io::Error::from(ErrorKind::IsADirectory)));
        }
        let length = meta.is_file().then_some(meta.len());
        (Box::new(file), length)
    };
    let stream = args.end.open()?;
    let mut progress = Progress::new(&args.show, length);
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = match next(&mut from, &mut chunk) {
            Ok(read) => read,
            Err(source) => {
                // The other end must not take what it has for everything.
                stream.abort();
                return Err(unread(source));
            }
        };
        let Some(bytes) = read else { break };
        let broken = |source| CommandError::Stream { bytes: progress.bytes, source };
        (&stream).write_all(bytes).map_err(broken)?;
        progress.add(bytes.len(), &stream);
    }
    let broken = |source| CommandError::Stream { bytes: progress.bytes, source };
    stream.shutdown(Shutdown::Write).map_err(broken)?;
    // The other end closes when it has written everything.
    if (&stream).read(&mut [0]).map_err(broken)? != 0 {
        let source = io::Error::other("the other end sends too: is it `nigh psock recv`?");
        return Err(broken(source));
    }
    let counters = stream.counters();
    let bytes = progress.bytes;
    stream.close().map_err(|source| CommandError::Session { bytes, source })?;
    progress.finish(&args.show, false, &counters)
}

pub(super) fn receive(args: &RecvArgs) -> Result<(), CommandError> {
    let stream = args.end.open()?;
    let mut progress = Progress::new(&args.show, None);
    let result = take(args, &stream, &mut progress);
    if let Err(error) = result {
        // The sender must not think that everything is here.
        stream.abort();
        return Err(error);
    }
    let counters = stream.counters();
    let bytes = progress.bytes;
    stream.close().map_err(|source| CommandError::Session { bytes, source })?;
    progress.finish(&args.show, is_standard(&args.file), &counters)
}

/// Writes the stream to where it goes.
fn take(
    args: &RecvArgs,
    stream: &PsockStream,
    progress: &mut Progress,
) -> Result<(), CommandError> {
    let unwritten = |source| CommandError::Write { file: args.file.clone(), source };
    let mut part: Option<(PathBuf, File)> = None;
    let mut into: Box<dyn Write> = if is_standard(&args.file) {
        Box::new(io::stdout().lock())
    } else if fs::metadata(&args.file).is_ok_and(|meta| !meta.is_file()) {
        // A pipe or device is written to, and never replaced.
        Box::new(File::options().write(true).open(&args.file).map_err(unwritten)?)
    } else {
        let name = partial(&args.file);
        let file = File::create(&name).map_err(unwritten)?;
        Box::new(&part.insert((name, file)).1)
    };
    let mut chunk = vec![0; CHUNK];
    while let Some(bytes) = next(&mut &*stream, &mut chunk)
        .map_err(|source| CommandError::Stream { bytes: progress.bytes, source })?
    {
        into.write_all(bytes).map_err(unwritten)?;
        progress.add(bytes.len(), stream);
    }
    into.flush().map_err(unwritten)?;
    drop(into);
    if let Some((part, file)) = part {
        // What the system could not write it says here or never.
        file.sync_all().map_err(unwritten)?;
        fs::rename(part, &args.file).map_err(unwritten)?;
    }
    Ok(())
}

/// Reads what is there, whatever interrupts; `None` at the end.
fn next<'a>(from: &mut impl Read, chunk: &'a mut [u8]) -> io::Result<Option<&'a [u8]>> {
    loop {
        match from.read(chunk) {
            Ok(0) => return Ok(None),
            Ok(length) => return Ok(chunk.get(..length)),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn is_standard(file: &Path) -> bool {
    file == Path::new("-")
}

/// What a file is called until everything has come.
fn partial(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".part");
    name.into()
}
