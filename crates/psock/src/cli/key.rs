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
    let to_stdout = args.file == Path::new("-");
    if !to_stdout {
        let uncreated = |source| CommandError::Create { file: args.file.clone(), source };
        key.write(&args.file).map_err(uncreated)?;
    }
    let mut out = io::stdout();
    let written = match (to_stdout, args.json) {
        (true, false) => writeln!(out, "{}", hex.as_str()),
        (true, true) => writeln!(out, "{}", json!({ "key": hex.as_str() })),
        (false, false) => Ok(()),
        (false, true) => writeln!(out, "{}", json!({ "file": args.file })),
    };
    written.map_err(|source| CommandError::Write { file: "-".into(), source })
}
