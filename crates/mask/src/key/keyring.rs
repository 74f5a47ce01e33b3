//! Keys from the kernel's keyrings (keyrings(7)), of type `user`: they leave no file behind.

use super::{Key, KeyError, most, parse};
use linux_keyutils::{KeyError as Refusal, KeyRing, KeyRingIdentifier};
use zeroize::Zeroizing;

/// ENOSYS: the kernel is built without keyrings.
const NO_SUCH_CALL: i32 = 38;

/// Why the kernel's keyrings give no key.
#[derive(Debug, thiserror::Error)]
#[error("no key {name:?} from the kernel's keyrings: {}", what_to_do(.name, .refusal))]
pub struct KeyringError {
    /// Its name.
    pub name: String,
    /// The kernel's error.
    pub refusal: Refusal,
}

fn what_to_do(name: &str, refusal: &Refusal) -> String {
    match refusal {
        Refusal::KeyDoesNotExist => format!(
            "neither the session's nor the user's has it: `keyctl padd user {name} @u < FILE` puts it there"
        ),
        Refusal::KeyExpired => "it has expired: add it again".to_owned(),
        Refusal::KeyRevoked => "it has been revoked: add it again".to_owned(),
        Refusal::AccessDenied => {
            "its permissions do not let its possessor read it: see `keyctl describe`".to_owned()
        }
        Refusal::PermissionDenied | Refusal::Unknown(NO_SUCH_CALL) => {
            "the kernel does not permit keyrings here, as in many containers: give `--key FILE` or \
             `--key-command`"
                .to_owned()
        }
        Refusal::InvalidDescription => "a key cannot have that name".to_owned(),
        other => format!("keyctl(2): {other}"),
    }
}

/// The key of this name in the session's keyring, or in the user's.
pub(super) fn key_of(name: &str) -> Result<Key, KeyError> {
    let mut bytes = Zeroizing::new(vec![0; most::<32>()]);
    let refused = |refusal| KeyringError { name: name.to_owned(), refusal };
    // The length of the whole key, which perhaps has not found room.
    let length = read(name, &mut bytes).map_err(refused)?;
    parse(bytes.get(..length).unwrap_or_default(), || format!("the kernel's key {name:?}"))
}

fn read(name: &str, bytes: &mut Zeroizing<Vec<u8>>) -> Result<usize, Refusal> {
    // Only the keys of its own keyrings can a process read, and a service's session is not linked to its
    // user's keyring. The process's own keyring ends with it.
    let process = KeyRing::from_special_id(KeyRingIdentifier::Process, true)?;
    process.link_keyring_id(KeyRingIdentifier::User)?;
    let session = KeyRing::from_special_id(KeyRingIdentifier::Session, false);
    let found = session.and_then(|session| session.search(name));
    found.or_else(|_| process.search(name))?.read(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_keyutils::KeyPermissionsBuilder;
    use std::io::Write;

    /// Puts a key into a keyring that the kernel soon forgets; `None` where the kernel lets none be used.
    fn put(ring: KeyRingIdentifier, name: &str, content: &[u8]) -> Option<linux_keyutils::Key> {
        match KeyRing::from_special_id(ring, true).and_then(|ring| ring.add_key(name, content)) {
            Ok(key) => {
                key.set_timeout(60).expect("a timeout");
                Some(key)
            }
            Err(Refusal::PermissionDenied | Refusal::Unknown(NO_SUCH_CALL)) => {
                assert!(
                    std::env::var("CI").as_deref() != Ok("true"),
                    "the kernel's keyrings cannot be used, and CI=true allows no skipping"
                );
                // Past the test harness, which would swallow the line.
                let test = std::thread::current().name().unwrap_or("a test").to_owned();
                let _ = writeln!(std::io::stderr(), "SKIPPED: needs the kernel's keyrings: {test}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn name(of: &str) -> String {
        format!("nigh-test-{of}-{}", std::process::id())
    }

    fn error_of(name: &str) -> String {
        key_of(name).map(|_| ()).expect_err("no key").to_string()
    }

    #[test]
    fn keys_of_the_session_and_of_the_user_are_read() {
        let digits = b"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";
        for ring in [KeyRingIdentifier::Session, KeyRingIdentifier::User] {
            let name = name(&format!("read-{}", ring as u32));
            let Some(key) = put(ring, &name, digits) else { return };
            assert_eq!(*key_of(&name).expect("a key"), std::array::from_fn(|n| n as u8));
            key.update(&[7; 32]).expect("updated");
            assert_eq!(*key_of(&name).expect("a key"), [7; 32]);
            KeyRing::from_special_id(ring, false).and_then(|it| it.unlink_key(key)).expect("gone");
            let error = error_of(&name);
            assert!(error.contains(&format!("`keyctl padd user {name} @u < FILE`")), "{error}");
        }
    }

    #[test]
    fn what_is_no_key_is_refused_and_not_shown() {
        for content in [&b"secret"[..], &[b's'; 67], &[b's'; 10_000]] {
            let name = name("no-key");
            let Some(key) = put(KeyRingIdentifier::User, &name, content) else { return };
            let error = error_of(&name);
            assert!(error.ends_with("holds no key: it must be 32 bytes, or 64 hexadecimal digits"));
            assert!(!error.contains("secret") && !error.contains("sss"), "{error}");
            key.invalidate().expect("gone");
        }
    }

    #[test]
    fn a_key_that_cannot_be_read_is_reported_with_what_to_do() {
        let (hidden, revoked) = (name("hidden"), name("revoked"));
        let Some(key) = put(KeyRingIdentifier::User, &hidden, &[7; 32]) else { return };
        key.set_perms(KeyPermissionsBuilder::builder().build()).expect("permissions");
        let error = error_of(&hidden);
        assert!(error.contains(&hidden) && error.contains("see `keyctl describe`"), "{error}");
        let Some(key) = put(KeyRingIdentifier::User, &revoked, &[7; 32]) else { return };
        key.revoke().expect("revoked");
        assert!(
            error_of(&revoked).contains("it has been revoked: add it again"),
            "{}",
            error_of(&revoked)
        );
        assert!(error_of("a\0b").contains("a key cannot have that name"));
    }

    #[test]
    fn a_kernel_without_keyrings_is_reported_with_the_alternatives() {
        for refusal in [Refusal::PermissionDenied, Refusal::Unknown(NO_SUCH_CALL)] {
            let error = KeyringError { name: "campus".into(), refusal }.to_string();
            assert!(error.contains("containers") && error.contains("`--key FILE`"), "{error}");
        }
    }
}
