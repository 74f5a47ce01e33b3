//! `nigh psock key`.

use super::{CommandError, KeyArgs};
use crate::PresharedKey;
use std::{
    io::{self, Write},
    path::Path,
};

pub(super) fn run(args: &KeyArgs) -> Result<(), CommandError> {
    let key = PresharedKey::generate()?;
    let written = if args.file == Path::new("-") {
        writeln!(io::stdout(), "{}", key.to_hex().as_str())
    } else {
        key.write(&args.file)
    };
    written.map_err(|source| CommandError::Write { file: args.file.clone(), source })
}
