//! Keys of data sets: from files that only their owner can read, from commands and from the kernel's
//! keyrings; their ids, and the keys of periods that are derived from them.

mod command;
mod keyring;
mod period;
mod source;

pub use command::CommandError;
pub use keyring::KeyringError;
pub use period::Rotation;
pub use source::Source;

use config::{
    file::{PrivateError, create_private, read_private},
    hex,
};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use std::io::{self, Read};
use std::path::Path;
use zeroize::Zeroizing;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Its file cannot be used.
    #[error("the key: {0}")]
    File(#[from] PrivateError),
    /// What it holds is no key.
    #[error("{of} holds no key: it must be {bytes} bytes, or {} hexadecimal digits", 2 * bytes)]
    Content {
        /// The file, or what else was read.
        of: String,
        /// How long a key is.
        bytes: usize,
    },
    /// A command gives none.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The kernel's keyrings give none.
    #[error(transparent)]
    Keyring(#[from] KeyringError),
}

/// A key of a data set, wiped from memory when dropped.
pub type Key = Zeroizing<[u8; 32]>;

/// A new key.
///
/// # Errors
/// When the system gives no random numbers.
pub fn fresh() -> io::Result<Key> {
    let mut key = Zeroizing::new([0; 32]);
    SystemRandom::new().fill(&mut *key).map_err(|_| io::Error::other("no random numbers"))?;
    Ok(key)
}

/// Makes a file with a new key, as hexadecimal digits, that only its owner may use.
///
/// # Errors
/// When there is such a file already, or it cannot be made.
pub fn create(path: &Path) -> io::Result<()> {
    let key = fresh()?;
    let mut digits = Zeroizing::new(hex::encode(&*key));
    digits.push('\n');
    create_private(path, digits.as_bytes())
}

/// Reads a key of `N` bytes from a file that holds just these, or their hexadecimal digits and perhaps
/// the end of the line. The key is wiped from memory when dropped.
///
/// # Errors
///
/// When the file cannot be read, others have rights to it, or what it holds is no key.
pub fn read_key<const N: usize>(path: &Path) -> Result<Zeroizing<[u8; N]>, KeyError> {
    parse(&read_private(path)?, || path.display().to_string())
}

/// The identifier of a key, which reveals nothing of it: 8 hexadecimal digits of a derivation.
pub fn id(key: &Key) -> String {
    let derived = derive(key, b"nigh mask: id, 1");
    hex::encode(&derived[..4])
}

/// A key for a purpose, which reveals nothing of the key that it is derived from: HMAC-SHA256.
fn derive(key: &Key, label: &[u8]) -> Key {
    let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &**key), label);
    let mut derived = Zeroizing::new([0; 32]);
    derived.copy_from_slice(mac.as_ref());
    derived
}

/// Bytes to read for a key of `N`: two more than its digits show that it is too long.
const fn most<const N: usize>() -> usize {
    2 * N + 2
}

/// The first bytes of what can be read.
fn read_bounded(input: impl Read, most: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    // Room for all at once: what is moved when a vector grows is not wiped.
    let mut bytes = Zeroizing::new(Vec::with_capacity(most));
    input.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The key that these bytes are, or spell.
fn parse<const N: usize>(
    bytes: &[u8],
    of: impl FnOnce() -> String,
) -> Result<Zeroizing<[u8; N]>, KeyError> {
    let mut key = Zeroizing::new([0; N]);
    let digits = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let is_key = if bytes.len() == N {
        key.copy_from_slice(bytes);
        true
    } else {
        hex::decode(digits, &mut *key)
    };
    is_key.then_some(key).ok_or_else(|| KeyError::Content { of: of(), bytes: N })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt};

    /// Reads a key file of this content and these permissions.
    fn read(content: &[u8], mode: u32) -> Result<[u8; 16], String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        fs::write(&path, content).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("permissions");
        read_key(&path).map(|key| *key).map_err(|error| error.to_string())
    }

    #[test]
    fn bytes_and_digits_are_keys() {
        let key = std::array::from_fn(|n| 0xf0 | n as u8);
        let digits = b"f0f1f2f3f4f5f6f7F8F9FAFBFCFDFEFF";
        assert_eq!(read(&key, 0o600), Ok(key));
        assert_eq!(read(digits, 0o400), Ok(key));
        assert_eq!(read(&[digits.as_slice(), b"\n"].concat(), 0o600), Ok(key));
    }

    #[test]
    fn a_new_key_is_another_one_each_time_and_is_its_owners_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        create(&one).expect("a key");
        create(&two).expect("a key");
        let key = |path: &Path| read_key::<32>(path).expect("a key");
        assert_ne!(*key(&one), *key(&two));
        let error = create(&one).expect_err("it is there");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn what_others_can_read_is_refused_with_what_to_do() {
        for mode in [0o604, 0o620, 0o601, 0o644] {
            let error = read(&[1; 16], mode).unwrap_err();
            assert!(error.contains(&format!("mode {mode:04o}")), "{error}");
            assert!(error.contains("chmod 600 "), "{error}");
        }
    }

    #[test]
    fn an_id_is_another_one_for_each_key() {
        // By Python: hmac.new(bytes(range(32)), b"nigh mask: id, 1", "sha256").hexdigest()[:8]
        assert_eq!(id(&Zeroizing::new(std::array::from_fn(|n| n as u8))), "dff9d19b");
        assert_ne!(id(&Zeroizing::new([1; 32])), id(&Zeroizing::new([2; 32])));
    }

    #[test]
    fn anything_else_is_no_key_and_is_not_shown() {
        let digits = b"0123456789abcdef0123456789abcdef";
        for content in [
            b"".as_slice(),
            &[7; 15],
            &[7; 17],
            &[b'0'; 31],
            &[b'0'; 33],
            &[b'0'; 1000],
            &[digits.as_slice(), b"\n\n"].concat(),
            b"0123456789abcdef0123456789abcde+",
        ] {
            let error = read(content, 0o600).unwrap_err();
            assert!(error.ends_with("it must be 16 bytes, or 32 hexadecimal digits"), "{error}");
            assert!(!error.contains("0123456789"), "{error}");
        }
        let missing = read_key::<16>(Path::new("/nonexistent/key")).unwrap_err();
        assert!(missing.to_string().contains("/nonexistent/key"), "{missing}");
    }
}
