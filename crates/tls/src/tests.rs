//! Files with mistakes; the ALTO server's tests have more of them.

use super::*;
use std::os::unix::fs::PermissionsExt;

/// PEM of a certificate that is none.
const BROKEN: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

fn made() -> rcgen::CertifiedKey<rcgen::KeyPair> {
    rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap()
}

#[test]
fn authorities_are_all_good_or_the_usable_ones_of_a_list() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list");
    let good = made().cert.pem();
    for (text, all, usable) in [
        (good.clone(), Some(1), Some(1)),
        (format!("{good}{BROKEN}{}", made().cert.pem()), None, Some(2)),
        (BROKEN.to_owned(), None, None),
        (String::new(), None, None),
    ] {
        fs::write(&path, text).unwrap();
        assert_eq!(roots(&path).ok().map(|roots| roots.len()), all);
        assert_eq!(usable_roots(&path).ok().map(|roots| roots.len()), usable);
        for demanded in [false, true] {
            let verifier = client_verifier(&path, demanded).ok();
            assert_eq!(verifier.map(|it| it.client_auth_mandatory()), all.map(|_| demanded));
        }
    }
    let error = roots(&path).unwrap_err().to_string();
    assert!(error.contains(path.to_str().unwrap()) && error.contains("PEM"), "{error}");
}

#[test]
fn a_private_key_is_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    fs::write(&path, made().signing_key.serialize_pem()).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    private_key(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let error = private_key(&path).unwrap_err().to_string();
    assert!(error.contains(&format!("chmod 600 {}", path.display())), "{error}");
    key(&path).unwrap();
}
