//! Any bytes as bencoding: what is read strictly is also read without order and to the same end, every
//! value within it reads again as itself, and truncated input is distinguished from invalid input.

use classify::p2p::bencode::{DEPTH, Kind, Value, read, read_unordered};

/// Walks all that a value holds; how deep it is.
fn walk(value: Value<'_>) -> usize {
    match value {
        Value::Integer(_) | Value::Bytes(_) => 0,
        Value::List(list) => {
            let (again, end) = read_unordered(list.raw()).expect("it was checked");
            assert_eq!((again, end), (value, list.raw().len()));
            1 + list.iter().map(walk).max().unwrap_or_default()
        }
        Value::Dict(dict) => {
            let (again, end) = read_unordered(dict.raw()).expect("it was checked");
            assert_eq!((again, end), (value, dict.raw().len()));
            let depth = dict.iter().map(|(key, inner)| {
                assert!(dict.get(key).is_some());
                walk(inner)
            });
            1 + depth.max().unwrap_or_default()
        }
    }
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let loose = read_unordered(data);
    match read(data) {
        Ok(found) => assert_eq!(loose, Ok(found)),
        Err(error) => assert!(error.offset <= data.len()),
    }
    match loose {
        Ok((value, end)) => {
            assert!(end <= data.len());
            // The walk is quadratic in depth; values are small enough for it.
            assert!(walk(value) <= DEPTH);
            for cut in [0, 1, end / 2, end - 1] {
                assert!(read_unordered(&data[..cut.min(end - 1)]).is_err());
            }
        }
        Err(error) if error.kind == Kind::Cut => {}
        Err(error) => {
            // More bytes do not make right what is wrong.
            let longer = [data, b"0"].concat();
            assert_eq!(read_unordered(&longer), Err(error));
        }
    }
}
