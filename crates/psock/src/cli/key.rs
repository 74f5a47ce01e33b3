//! `nigh psock key`.

use super::{CommandError, KeyArgs};
use crate::PresharedKey;
use serde_json::json;
use std::{
    io::{self, Write},
    path::Path,
};

pub(super) fn run(args: &KeyArgs) -> Result<(), CommandError> {
    let key = PresharedKey::generate()?;
    let hex = key.to_hex();
    let mut out = io::stdout();
    let written = match (args.file == Path::new("-"), args.json) {
        (true, false) => writeln!(out, "{}", hex.as_str()),
        (true, true) => writeln!(out, "{}", json!({ "key": hex.as_str() })),
        (false, false) => key.write(&args.file),
        (false, true) => {
            let line = json!({ "file": args.file });
            key.write(&args.file).and_then(|()| writeln!(out, "{line}"))
        }
    };
    written.map_err(|source| CommandError::Write { file: args.file.clone(), source })
}
