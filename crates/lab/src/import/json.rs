//! JSON values from files: one a line, the elements of one array, or one behind the other.

use super::Failure;
use super::input::{Lines, Rationed};
use super::report::Context;
use serde::Deserializer as _;
use serde::de::{self, SeqAccess, Visitor};
use serde_json::{Deserializer, Value};
use std::cell::Cell;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::rc::Rc;

/// Longest value, bytes.
const VALUE: u64 = 16 << 20;

/// Takes a value, with its line or, in an array, its number.
type Take<'t> = dyn FnMut(&mut Context<'_>, u64, Value) -> Result<(), Failure> + 't;

/// Reads values one a line, or those of an array.
pub(super) fn records(
    mut reader: impl BufRead,
    context: &mut Context<'_>,
    take: &mut Take<'_>,
) -> Result<(), Failure> {
    let start = reader.fill_buf()?;
    if start.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        return elements(reader, context, take);
    }
    let mut lines = Lines::new(reader, VALUE);
    while let Some((number, line)) = lines.next(context)? {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match serde_json::from_str(line) {
            Ok(value) => take(context, number, value)?,
            Err(_) => context.bad(number, "the line is not a JSON value", line),
        }
    }
    Ok(())
}

/// Reads values that follow each other, each on as many lines as it likes.
pub(super) fn documents(
    reader: impl BufRead,
    context: &mut Context<'_>,
    take: &mut Take<'_>,
) -> Result<(), Failure> {
    let (rationed, left) = Rationed::new(reader, VALUE);
    let values = Deserializer::from_reader(BufReader::new(rationed)).into_iter::<Value>();
    for (value, number) in values.zip(1..) {
        match value {
            Ok(value) => take(context, number, value)?,
            Err(error) if error.is_io() => return Err(Failure::Io(error.into())),
            Err(error) => {
                let line = error.line() as u64;
                context.bad(line, "the text is not JSON from here on", &error.to_string());
                break;
            }
        }
        left.set(VALUE);
    }
    Ok(())
}

/// Reads the elements of an array one by one.
fn elements(
    reader: impl BufRead,
    context: &mut Context<'_>,
    take: &mut Take<'_>,
) -> Result<(), Failure> {
    let (rationed, left) = Rationed::new(reader, VALUE);
    let mut deserializer = Deserializer::from_reader(BufReader::new(rationed));
    let mut failure = None;
    let elements = Elements {
        left,
        take: &mut |number, value| take(context, number, value),
        failure: &mut failure,
    };
    let result = deserializer.deserialize_seq(elements);
    match (failure, result) {
        (Some(failure), _) => Err(failure),
        (None, Ok(())) => Ok(()),
        (None, Err(error)) if error.is_io() => Err(Failure::Io(error.into())),
        (None, Err(error)) => {
            let line = error.line() as u64;
            context.bad(line, "the text is not JSON from here on", &error.to_string());
            Ok(())
        }
    }
}

struct Elements<'a> {
    left: Rc<Cell<u64>>,
    take: &'a mut dyn FnMut(u64, Value) -> Result<(), Failure>,
    failure: &'a mut Option<Failure>,
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let mut number = 0;
        while let Some(value) = elements.next_element()? {
            number += 1;
            self.left.set(VALUE);
            if let Err(failure) = (self.take)(number, value) {
                *self.failure = Some(failure);
                return Err(de::Error::custom("given up"));
            }
        }
        Ok(())
    }
}
