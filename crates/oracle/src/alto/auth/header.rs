//! The header fields of HTTP Digest: `Authorization` read, `WWW-Authenticate` written and read.
//!
//! Both are a scheme and a list of parameters (RFC 9110 section 11). Everything is bounded by the length of a
//! request's head, a parameter may be there once, and what is not understood is refused as a whole.

use config::hex;

/// Most parameters of one field; RFC 7616 knows eleven.
const MOST: usize = 24;

/// The field cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Another scheme than Digest.
    #[error("the scheme is not Digest")]
    Scheme,
    /// No list of parameters.
    #[error("this is not a list of parameters (RFC 9110 section 11.2)")]
    Syntax,
    /// A parameter is missing, twice there, or has no proper value.
    #[error("the parameter {0} is missing or invalid (RFC 7616 section 3.4)")]
    Parameter(&'static str),
}

/// How a client names its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum User {
    /// By the name.
    Name(String),
    /// By H(name:realm) (RFC 7616 section 3.4.4).
    Hash([u8; 32]),
}

/// The parameters of `Authorization: Digest`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Whose they are.
    pub user: User,
    /// The realm that they are for.
    pub realm: String,
    /// The server's nonce.
    pub nonce: String,
    /// What is asked for.
    pub uri: String,
    /// The proof.
    pub response: [u8; 32],
    /// The client's nonce.
    pub cnonce: String,
    /// How often the server's nonce has been used, this time included.
    pub count: u32,
    count_text: String,
    /// The server's `opaque`, sent with its nonce.
    pub opaque: Option<String>,
}

impl Credentials {
    /// Reads the value of the field.
    ///
    /// # Errors
    ///
    /// It is not Digest with SHA-256 and `qop=auth`, or has a mistake.
    pub fn parse(text: &str) -> Result<Credentials, HeaderError> {
        let mut parameters = Parameters::parse(text)?;
        parameters.must_be("algorithm", "SHA-256")?;
        parameters.must_be("qop", "auth")?;
        let hashed = match parameters.take("userhash") {
            None => false,
            Some(value) if value.eq_ignore_ascii_case("false") => false,
            Some(value) if value.eq_ignore_ascii_case("true") => true,
            Some(_) => return Err(HeaderError::Parameter("userhash")),
        };
        let user = match (parameters.take("username"), parameters.take("username*"), hashed) {
            (Some(name), None, false) => Some(User::Name(name)),
            (Some(digits), None, true) => hex::array(&digits).map(User::Hash),
            (None, Some(name), false) => extended(&name).map(User::Name),
            _ => None,
        };
        let count_text = parameters.need("nc")?;
        let count = hex::array(&count_text).map(u32::from_be_bytes).filter(|count| *count > 0);
        let response = hex::array(&parameters.need("response")?);
        Ok(Credentials {
            user: user.ok_or(HeaderError::Parameter("username"))?,
            realm: parameters.need("realm")?,
            nonce: parameters.need("nonce")?,
            uri: parameters.need("uri")?,
            response: response.ok_or(HeaderError::Parameter("response"))?,
            cnonce: parameters.need("cnonce")?,
            count: count.ok_or(HeaderError::Parameter("nc"))?,
            count_text,
            opaque: parameters.take("opaque"),
        })
    }

    /// The count as the client wrote and hashed it.
    pub(super) fn count_text(&self) -> &str {
        &self.count_text
    }
}

/// The parameters of `WWW-Authenticate: Digest` that are not constant here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// What the password is for.
    pub realm: String,
    /// A new nonce.
    pub nonce: String,
    /// What the client must send back.
    pub opaque: String,
    /// Only the nonce was wrong.
    pub stale: bool,
}

impl Challenge {
    /// Reads the value of the field, for a client.
    ///
    /// # Errors
    ///
    /// It is not Digest with SHA-256, or has a mistake.
    pub fn parse(text: &str) -> Result<Challenge, HeaderError> {
        let mut parameters = Parameters::parse(text)?;
        parameters.must_be("algorithm", "SHA-256")?;
        let offers = parameters.need("qop")?;
        if !offers.split(',').any(|offer| offer.trim().eq_ignore_ascii_case("auth")) {
            return Err(HeaderError::Parameter("qop"));
        }
        Ok(Challenge {
            realm: parameters.need("realm")?,
            nonce: parameters.need("nonce")?,
            opaque: parameters.need("opaque")?,
            stale: parameters.take("stale").is_some_and(|stale| stale.eq_ignore_ascii_case("true")),
        })
    }
}

/// The value of the field for a challenge.
pub fn challenge(challenge: &Challenge) -> String {
    let Challenge { realm, nonce, opaque, stale } = challenge;
    let (realm, nonce, opaque) = (quoted(realm), quoted(nonce), quoted(opaque));
    let stale = if *stale { ", stale=true" } else { "" };
    format!(
        "Digest realm={realm}, qop=\"auth\", algorithm=SHA-256, nonce={nonce}, opaque={opaque}, \
         charset=UTF-8, userhash=true{stale}"
    )
}

/// A text as a quoted string (RFC 9110 section 5.6.4).
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The parameters of a field that are not taken yet.
struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn parse(text: &str) -> Result<Parameters, HeaderError> {
        let mut rest = Rest(text);
        let scheme = rest.token().unwrap_or_default();
        if !scheme.eq_ignore_ascii_case("Digest") || !rest.0.starts_with(' ') {
            return Err(HeaderError::Scheme);
        }
        let mut found: Vec<(String, String)> = Vec::new();
        loop {
            rest.space();
            if rest.0.is_empty() {
                return Ok(Parameters(found));
            }
            // A list may have empty elements (RFC 9110 section 5.6.1).
            if rest.eat(',') {
                continue;
            }
            let (name, value) = rest.parameter().ok_or(HeaderError::Syntax)?;
            if found.len() == MOST || found.iter().any(|(known, _)| *known == name) {
                return Err(HeaderError::Syntax);
            }
            found.push((name, value));
            rest.space();
            if !rest.0.is_empty() && !rest.eat(',') {
                return Err(HeaderError::Syntax);
            }
        }
    }

    fn take(&mut self, name: &str) -> Option<String> {
        let index = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(index).1)
    }

    fn need(&mut self, name: &'static str) -> Result<String, HeaderError> {
        self.take(name).ok_or(HeaderError::Parameter(name))
    }

    fn must_be(&mut self, name: &'static str, value: &str) -> Result<(), HeaderError> {
        let given = self.need(name)?;
        given.eq_ignore_ascii_case(value).then_some(()).ok_or(HeaderError::Parameter(name))
    }
}

/// What of a field is not read yet.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn space(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn eat(&mut self, sign: char) -> bool {
        let rest = self.0.strip_prefix(sign);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn token(&mut self) -> Option<&'a str> {
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        let rest = self.0.trim_start_matches(is_token);
        let token = self.0.strip_suffix(rest)?;
        self.0 = rest;
        (!token.is_empty()).then_some(token)
    }

    /// A quoted string without its quotes and the signs that quote within it.
    fn quoted(&mut self) -> Option<String> {
        let mut signs = self.0.strip_prefix('"')?.chars();
        let mut text = String::new();
        loop {
            let sign = match signs.next()? {
                '"' => break,
                '\\' => signs.next()?,
                sign => sign,
            };
            if sign.is_control() && sign != '\t' {
                return None;
            }
            text.push(sign);
        }
        self.0 = signs.as_str();
        Some(text)
    }

    /// A name in small letters, and its value.
    fn parameter(&mut self) -> Option<(String, String)> {
        let name = self.token()?.to_ascii_lowercase();
        self.space();
        if !self.eat('=') {
            return None;
        }
        self.space();
        let value = if self.0.starts_with('"') { self.quoted()? } else { self.token()?.to_owned() };
        Some((name, value))
    }
}

/// An extended value such as `UTF-8''J%C3%A4s%C3%B8n%20Doe` (RFC 8187 section 3.2).
fn extended(text: &str) -> Option<String> {
    let mut parts = text.splitn(3, '\'');
    let (charset, _language, value) = (parts.next()?, parts.next()?, parts.next()?);
    if !charset.eq_ignore_ascii_case("UTF-8") {
        return None;
    }
    let mut bytes = Vec::new();
    let mut pieces = value.split('%');
    bytes.extend_from_slice(pieces.next()?.as_bytes());
    for piece in pieces {
        let (digits, plain) = piece.split_at_checked(2)?;
        bytes.extend_from_slice(&hex::array::<1>(digits)?);
        bytes.extend_from_slice(plain.as_bytes());
    }
    let name = String::from_utf8(bytes).ok()?;
    (!name.chars().any(char::is_control)).then_some(name)
}
