//! Who may read over HTTP what tells of people's traffic.
//!
//! Prefixes, hosts and what they use are in the status and the tops. They are shown to who bears the token
//! of `node.http_token`, and to programs on this machine whose user could ask the control socket or is trusted with
//! the daemon: root, the daemon's user, members of the group nigh if the daemon runs with it, and who started it by sudo.

use crate::privileges::USER;
use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::Response,
};
use config::token::{Token, TokenError};
use nix::unistd::{Gid, Group, Uid, User, getegid, geteuid, getgrouplist};
use std::{ffi::CString, path::Path, sync::Arc};
use tokio::{sync::Semaphore, task::spawn_blocking};
use web::{Ends, refuse};

/// How many requests may find out at once which user asks.
const LOOKUPS: usize = 2;

/// Who may read.
#[derive(Clone, Debug)]
pub struct Viewers {
    token: Option<Arc<Token>>,
    users: [Option<Uid>; 3],
    group: Option<Gid>,
    /// Places to find out who asks: names of users may come from a network that hangs.
    lookups: Arc<Semaphore>,
}

impl Viewers {
    /// Those of this process; with a file, also who bears the token in it.
    ///
    /// # Errors
    ///
    /// See [`TokenError`].
    pub fn new(token: Option<&Path>) -> Result<Self, TokenError> {
        // sudo(8) sets it to the user who called it.
        let started = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
        Ok(Self {
            token: token.map(Token::read).transpose()?.map(Arc::new),
            users: [Some(Uid::from_raw(0)), Some(geteuid()), started.map(Uid::from_raw)],
            // Another group may have all users of the machine.
            group: Group::from_gid(getegid())
                .ok()
                .flatten()
                .filter(|it| it.name == USER)
                .map(|it| it.gid),
            lookups: Arc::new(Semaphore::new(LOOKUPS)),
        })
    }

    fn bears_token(&self, headers: &HeaderMap) -> bool {
        let shown = bearer(headers);
        self.token.as_ref().zip(shown).is_some_and(|(token, shown)| token.is(shown))
    }

    /// Whether the user of this machine is one of them. Blocks: names of users may come from the network.
    fn include(&self, user: Uid) -> bool {
        self.users.contains(&Some(user)) || self.has_member(user).unwrap_or(false)
    }

    fn has_member(&self, user: Uid) -> Option<bool> {
        let group = self.group?;
        let user = User::from_uid(user).ok()??;
        let groups = getgrouplist(&CString::new(user.name).ok()?, user.gid).ok()?;
        Some(groups.contains(&group))
    }
}

/// The token that a request bears (RFC 6750 section 2.1).
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then_some(token)
}

/// Lets requests of viewers pass and refuses others.
pub async fn permitted(State(viewers): State<Viewers>, request: Request, next: Next) -> Response {
    if viewers.bears_token(request.headers()) {
        return next.run(request).await;
    }
    let ends = request.extensions().get::<Ends>().copied();
    // Held until the answer is there, whether or not the client still waits for it.
    let place = viewers.lookups.clone().acquire_owned().await;
    let may = move || {
        let _place = place;
        let user = ends.and_then(|ends| ends.user());
        user.is_some_and(|user| viewers.include(Uid::from_raw(user)))
    };
    if spawn_blocking(may).await.unwrap_or(false) {
        return next.run(request).await;
    }
    unauthorized(
        "nigh",
        "this tells of people's traffic: send the token of node.http_token as `Authorization: Bearer TOKEN`, \
         or ask on this machine as root or a member of the group nigh",
    )
}

/// Asks for a token.
pub fn unauthorized(realm: &'static str, error: impl Into<String>) -> Response {
    let mut response = refuse(StatusCode::UNAUTHORIZED, error);
    let challenge = HeaderValue::from_str(&format!("Bearer realm=\"{realm}\""));
    response.headers_mut().extend(challenge.map(|value| (header::WWW_AUTHENTICATE, value)));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_viewers_are_root_the_daemon_who_started_it_and_its_group() {
        // Users that Linux always has, each in a group of its own: daemon, bin and sys (base-passwd).
        let [daemon, bin, sys] = [1, 2, 3].map(Uid::from_raw);
        let users = [Some(Uid::from_raw(0)), Some(daemon), None];
        let group = Some(Gid::from_raw(2));
        let lookups = Arc::new(Semaphore::new(LOOKUPS));
        let viewers = Viewers { token: None, users, group, lookups };
        for (user, may) in [(0, true), (1, true), (2, true), (3, false), (4_000_000_000, false)] {
            assert_eq!(viewers.include(Uid::from_raw(user)), may, "{user}");
        }
        let started = Viewers { users: [None, None, Some(sys)], group: None, ..viewers };
        assert!(started.include(sys) && !started.include(bin) && !started.include(daemon));
    }

    #[test]
    fn only_the_token_is_the_token() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        config::file::write_private(&path, b"0123456789abcdef\n").expect("it is written");
        let with = Viewers::new(Some(&path)).expect("a token");
        let without = Viewers::new(None).expect("no token");
        for (value, is) in [
            ("Bearer 0123456789abcdef", true),
            ("bearer 0123456789abcdef", true),
            ("Bearer 0123456789abcdeg", false),
            ("Basic 0123456789abcdef", false),
            ("Bearer ", false),
        ] {
            let value = HeaderValue::from_static(value);
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value)]);
            assert_eq!(with.bears_token(&headers), is, "{headers:?}");
            assert!(!without.bears_token(&headers), "{headers:?}");
        }
        assert!(!with.bears_token(&HeaderMap::new()));
        let missing = Viewers::new(Some(&folder.path().join("none")));
        assert!(matches!(missing, Err(TokenError::File(_))), "{missing:?}");
    }
}
