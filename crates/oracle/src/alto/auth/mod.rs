//! Who may ask: HTTP Digest (RFC 7616) with SHA-256 and `qop=auth`, as RFC 7285 section 8.3.5 wants it.
//!
//! ```text
//! Authorization ─▶ header.rs: Credentials ─▶ is the response right? ─▶ nonce.rs: ours, young, count unused?
//!                                                    │ no                      │ no
//!                                                    ▼                         ▼
//!                                            401, a challenge          401, a challenge with stale=true
//! ```
//!
//! Of the users only hashes are kept: H(name:realm), by which they are found whether the client hashes its name
//! or not, and H(name:realm:password). Both are valid for this realm alone. What an unauthenticated client sends takes no
//! memory: a nonce is stored only after a client that knows a password has used it.

pub mod config;
pub mod header;
mod nonce;

use super::counters::Refusal;
use ::config::hex;
use arc_swap::ArcSwap;
use axum::http::{HeaderMap, Method, Uri, header as field};
use config::{Secret, UserConfig};
use header::{Credentials, User};
use nonce::{Nonces, Use};
use ring::{digest, hmac};
use std::{collections::HashMap, sync::Arc, time::Instant};

/// A SHA-256.
type Hash = [u8; 32];

/// H() of RFC 7616 section 3.3 over parts with colons between them.
fn hash<const N: usize>(parts: [&[u8]; N]) -> Hash {
    let mut context = digest::Context::new(&digest::SHA256);
    for (index, part) in parts.into_iter().enumerate() {
        if index > 0 {
            context.update(b":");
        }
        context.update(part);
    }
    let mut hash = [0; 32];
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

/// What the response of a client must be (RFC 7616 section 3.4.1); `a1` is H(A1) in hexadecimal digits.
fn expected(a1: &str, credentials: &Credentials, method: &str) -> Hash {
    let a2 = hash([method.as_bytes(), credentials.uri.as_bytes()]);
    hash([
        a1.as_bytes(),
        credentials.nonce.as_bytes(),
        credentials.count_text().as_bytes(),
        credentials.cnonce.as_bytes(),
        b"auth",
        hex::encode(&a2).as_bytes(),
    ])
}

/// H(A1) in hexadecimal digits, by H(name:realm).
pub struct Users(HashMap<Hash, String>);

impl Users {
    /// What is kept of these users.
    ///
    /// # Errors
    ///
    /// A file with a password cannot be used.
    pub fn read(realm: &str, users: &[UserConfig]) -> Result<Users, config::PasswordError> {
        let mut known = HashMap::new();
        for user in users {
            let Secret(password) = user.secret()?;
            let (name, realm) = (user.name.as_bytes(), realm.as_bytes());
            let a1 = hex::encode(&hash([name, realm, password.as_bytes()]));
            known.insert(hash([name, realm]), a1);
        }
        Ok(Users(known))
    }
}

/// Lets in who knows a password.
pub struct Gate {
    realm: String,
    users: ArcSwap<Users>,
    /// H(A1) of no user, so that an unknown name takes as long as a known one.
    no_user: String,
    /// Hashes are compared by their keyed hashes, which takes the same time wherever they differ.
    compare: hmac::Key,
    nonces: Nonces,
}

impl Gate {
    /// A gate for these users.
    ///
    /// # Errors
    ///
    /// A file with a password cannot be used.
    pub fn new(realm: String, users: &[UserConfig]) -> Result<Gate, config::PasswordError> {
        let users = Users::read(&realm, users)?;
        Ok(Gate {
            realm,
            users: ArcSwap::from_pointee(users),
            no_user: hex::encode(&rand::random::<Hash>()),
            compare: hmac::Key::new(hmac::HMAC_SHA256, &rand::random::<Hash>()),
            nonces: Nonces::new(),
        })
    }

    /// Lets in other users from now on, with the nonces that they have.
    pub fn replace(&self, users: Users) {
        self.users.store(Arc::new(users));
    }

    /// Whether a request may be answered, and if not, why.
    ///
    /// # Errors
    ///
    /// [`Refusal::Anonymous`], `Credentials`, `Uri`, `Password`, `Nonce` or `Replay`.
    pub fn check(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        now: Instant,
    ) -> Result<(), Refusal> {
        let mut values = headers.get_all(field::AUTHORIZATION).iter();
        let value = values.next().ok_or(Refusal::Anonymous)?;
        let text = std::str::from_utf8(value.as_bytes()).map_err(|_| Refusal::Credentials)?;
        let credentials = Credentials::parse(text).map_err(|_| Refusal::Credentials)?;
        let opaque = self.opaque();
        if values.next().is_some()
            || credentials.realm != self.realm
            || credentials.opaque.as_ref().is_some_and(|given| *given != opaque)
        {
            return Err(Refusal::Credentials);
        }
        if !is_target(&credentials.uri, uri) {
            return Err(Refusal::Uri);
        }
        let user = match &credentials.user {
            User::Name(name) => hash([name.as_bytes(), self.realm.as_bytes()]),
            User::Hash(hash) => *hash,
        };
        let users = self.users.load();
        let known = users.0.get(&user);
        let right = expected(known.unwrap_or(&self.no_user), &credentials, method.as_str());
        let tag = hmac::sign(&self.compare, &right);
        let same = hmac::verify(&self.compare, &credentials.response, tag.as_ref()).is_ok();
        if !same || known.is_none() {
            return Err(Refusal::Password);
        }
        match self.nonces.take(&credentials.nonce, credentials.count, now) {
            Use::First => Ok(()),
            Use::Stale => Err(Refusal::Nonce),
            Use::Again => Err(Refusal::Replay),
        }
    }

    /// The value of WWW-Authenticate for a client that was refused (RFC 7616 section 3.3).
    pub fn challenge(&self, refusal: Refusal, now: Instant) -> String {
        header::challenge(&header::Challenge {
            realm: self.realm.clone(),
            nonce: self.nonces.make(now),
            opaque: self.opaque(),
            // The password was right: a client asks again by itself.
            stale: matches!(refusal, Refusal::Nonce | Refusal::Replay),
        })
    }

    /// Not used here, but clients must send it back.
    fn opaque(&self) -> String {
        hex::encode(&hash([b"opaque", self.realm.as_bytes()]))
    }
}

/// Whether the client's `uri` is what it asks for: as it appears in the request, or its path, which is all that a
/// request over HTTP/2 needs to have in common with it.
fn is_target(given: &str, uri: &Uri) -> bool {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    given == path || *uri == *given
}

#[cfg(test)]
mod tests;
