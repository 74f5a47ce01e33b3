//! The examples of RFC 7616, and each reason for which a request is refused.

use super::{
    header::{Challenge, HeaderError},
    *,
};
use axum::http::{HeaderValue, header::AUTHORIZATION};
use proptest::prelude::*;
use std::time::Duration;

/// RFC 7616 section 3.9.1, the answer with SHA-256.
const MUFASA: &str = r#"Digest username="Mufasa",
    realm="http-auth@example.org",
    uri="/dir/index.html",
    algorithm=SHA-256,
    nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
    nc=00000001,
    cnonce="f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
    qop=auth,
    response="753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
    opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS""#;

/// The example on one line, as fields are.
fn mufasa() -> String {
    MUFASA.replace('\n', "")
}

fn user(name: &str, password: &str) -> UserConfig {
    let password = Some(Secret(password.to_owned()));
    UserConfig { name: name.to_owned(), password, password_file: None }
}

fn gate() -> Gate {
    let users = [user("Mufasa", "Circle of Life"), user("Jäsøn Doe", "Secret, or not?")];
    Gate::new("http-auth@example.org".to_owned(), &users).expect("passwords")
}

/// What a client answers to a challenge.
struct Answer<'a> {
    name: &'a str,
    password: &'a str,
    method: &'a str,
    uri: &'a str,
    count: u32,
    hashed: bool,
}

const ANSWER: Answer<'_> = Answer {
    name: "Mufasa",
    password: "Circle of Life",
    method: "GET",
    uri: "/costs?x=1",
    count: 1,
    hashed: false,
};

impl Answer<'_> {
    /// Written beside `expected`, by section 3.4.1.
    fn to(&self, challenge: &str) -> String {
        let Challenge { realm, nonce, opaque, .. } = Challenge::parse(challenge).expect("parses");
        let Answer { name, password, method, uri, count, hashed } = self;
        let h =
            |text: String| hex::encode(digest::digest(&digest::SHA256, text.as_bytes()).as_ref());
        let (a1, a2) = (h(format!("{name}:{realm}:{password}")), h(format!("{method}:{uri}")));
        let response = h(format!("{a1}:{nonce}:{count:08x}:c:auth:{a2}"));
        let name = if *hashed { h(format!("{name}:{realm}")) } else { (*name).to_owned() };
        format!(
            "Digest username=\"{name}\", realm=\"{realm}\", uri=\"{uri}\", algorithm=SHA-256, \
             nonce=\"{nonce}\", nc={count:08x}, cnonce=\"c\", qop=auth, response=\"{response}\", \
             opaque=\"{opaque}\", userhash={hashed}"
        )
    }
}

fn check(gate: &Gate, method: Method, values: &[&str], now: Instant) -> Result<(), Refusal> {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).expect("a value"));
    }
    gate.check(&method, &Uri::from_static("https://localhost/costs?x=1"), &headers, now)
}

/// RFC 7616 section 3.9.1: the response is the one of the example.
#[test]
fn the_example_with_sha_256() {
    let credentials = Credentials::parse(&mufasa()).expect("parses");
    assert_eq!(credentials.user, User::Name("Mufasa".to_owned()));
    let a1 = hex::encode(&hash([b"Mufasa", b"http-auth@example.org", b"Circle of Life"]));
    assert_eq!(expected(&a1, &credentials, "GET"), credentials.response);
    assert_ne!(expected(&a1, &credentials, "POST"), credentials.response);
    let a1 = hex::encode(&hash([b"Mufasa", b"http-auth@example.org", b"Circle Of Life"]));
    assert_ne!(expected(&a1, &credentials, "GET"), credentials.response);
}

/// The example for the gate: user and response are right, but the nonce is another server's.
#[test]
fn the_example_at_the_gate() {
    let text = mufasa();
    let text = text.split_once(",    opaque").expect("an opaque").0;
    let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(text).expect("ok"))]);
    let uri = Uri::from_static("/dir/index.html");
    let refused = gate().check(&Method::GET, &uri, &headers, Instant::now());
    assert_eq!(refused, Err(Refusal::Nonce));
}

/// RFC 7616 section 3.9.2: a name that does not fit a quoted string, in both forms.
#[test]
fn names_in_utf_8() {
    let extended =
        mufasa().replace("username=\"Mufasa\"", "username*=UTF-8''J%C3%A4s%C3%B8n%20Doe");
    let name = User::Name("Jäsøn Doe".to_owned());
    assert_eq!(Credentials::parse(&extended).map(|found| found.user), Ok(name.clone()));
    let raw = mufasa().replace("Mufasa", "Jäsøn Doe");
    assert_eq!(Credentials::parse(&raw).map(|found| found.user), Ok(name));
    for wrong in
        ["UTF-8'J%C3%A4", "UTF-8''%C3", "UTF-8''%C", "UTF-8''%ZZ", "UTF-8''%0A", "ISO-8859-1''a"]
    {
        let text = mufasa().replace("username=\"Mufasa\"", &format!("username*={wrong}"));
        let refused = Err(HeaderError::Parameter("username"));
        assert_eq!(Credentials::parse(&text), refused, "{wrong}");
    }
}

#[test]
fn who_knows_the_password_is_let_in_once_a_count() {
    let (gate, now) = (gate(), Instant::now());
    let challenge = gate.challenge(Refusal::Anonymous, now);
    assert!(!Challenge::parse(&challenge).expect("parses").stale);
    let get = |answer: Answer<'_>| check(&gate, Method::GET, &[&answer.to(&challenge)], now);
    assert_eq!(get(ANSWER), Ok(()));
    assert_eq!(get(ANSWER), Err(Refusal::Replay));
    assert_eq!(get(Answer { count: 2, ..ANSWER }), Ok(()));
    let jason = Answer { name: "Jäsøn Doe", password: "Secret, or not?", ..ANSWER };
    assert_eq!(get(Answer { count: 3, ..jason }), Ok(()));
    assert_eq!(get(Answer { count: 4, hashed: true, ..jason }), Ok(()));
    let absolute = Answer { count: 5, uri: "https://localhost/costs?x=1", ..ANSWER };
    assert_eq!(get(absolute), Ok(()));
    let later = now + Duration::from_secs(1000);
    let text = Answer { count: 6, ..ANSWER }.to(&challenge);
    assert_eq!(check(&gate, Method::GET, &[&text], later), Err(Refusal::Nonce));
    for refusal in [Refusal::Nonce, Refusal::Replay] {
        assert!(Challenge::parse(&gate.challenge(refusal, now)).expect("parses").stale);
    }
}

#[test]
fn each_refusal_has_its_reason() {
    let (gate, now) = (gate(), Instant::now());
    let challenge = gate.challenge(Refusal::Anonymous, now);
    let good = ANSWER.to(&challenge);
    let get = |values: &[&str]| check(&gate, Method::GET, values, now);
    assert_eq!(get(&[]), Err(Refusal::Anonymous));
    for (answer, refusal) in [
        (Answer { password: "circle of life", ..ANSWER }, Refusal::Password),
        (Answer { name: "Simba", ..ANSWER }, Refusal::Password),
        (Answer { name: "Simba", hashed: true, ..ANSWER }, Refusal::Password),
        (Answer { method: "POST", ..ANSWER }, Refusal::Password),
        (Answer { uri: "/costs", ..ANSWER }, Refusal::Uri),
        (Answer { uri: "/costs?x=2", ..ANSWER }, Refusal::Uri),
        (Answer { uri: "https://elsewhere/costs?x=1", ..ANSWER }, Refusal::Uri),
        (Answer { uri: "", ..ANSWER }, Refusal::Uri),
        (Answer { count: 0, ..ANSWER }, Refusal::Credentials),
    ] {
        assert_eq!(get(&[&answer.to(&challenge)]), Err(refusal), "{}", answer.to(&challenge));
    }
    assert_eq!(get(&[&good, &good]), Err(Refusal::Credentials), "twice");
    for (part, instead) in [
        ("Digest ", "Basic "),
        ("Digest ", "Digest"),
        ("algorithm=SHA-256", "algorithm=MD5"),
        ("algorithm=SHA-256, ", ""),
        ("qop=auth", "qop=auth-int"),
        ("qop=auth, ", ""),
        ("realm=\"http", "realm=\"ftp"),
        ("opaque=\"", "opaque=\"0"),
        ("cnonce=\"c\", ", ""),
        ("nc=00000001", "nc=1"),
        ("nc=00000001", "nc=+0000001"),
        ("response=\"", "response=\"0"),
        ("userhash=false", "userhash=true"),
        ("userhash=false", "userhash=perhaps"),
        ("username=\"Mufasa\"", "username=\"Mufasa\", username=\"Mufasa\""),
        ("username=\"Mufasa\"", "username=\"Mufasa\", username*=UTF-8''Mufasa"),
        ("username=\"Mufasa\"", "username=\"Mufasa"),
        ("username=\"Mufasa\", ", "username=\"Mufasa\" "),
    ] {
        assert!(good.contains(part), "{part}");
        let text = good.replacen(part, instead, 1);
        assert_eq!(get(&[&text]), Err(Refusal::Credentials), "{text}");
    }
    // None of these has used the nonce up, nor does another form of the same.
    let other =
        good.replace("algorithm=SHA-256", "ALGORITHM = \"sha-256\" , ,").replace("fasa", "\\fasa");
    assert_eq!(get(&[&other]), Ok(()));
}

#[test]
fn passwords_come_from_files_too_and_are_never_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("password");
    let from_file = |text: &str| {
        std::fs::write(&file, text).expect("written");
        let file = Some(file.clone());
        UserConfig { name: "a".to_owned(), password: None, password_file: file }.secret()
    };
    assert_eq!(from_file("open sesame\n").expect("a password"), Secret("open sesame".to_owned()));
    for text in ["", "\n", "two\nlines", &"x".repeat(300)] {
        let text = from_file(text).expect_err("no password").to_string();
        assert!(text.contains("password_file") && !text.contains("lines"), "{text}");
    }
    let shown = format!("{:?}", user("a", "open sesame"));
    assert!(!shown.contains("sesame"), "{shown}");
}

proptest! {
    /// What is written is read as it was.
    #[test]
    fn a_challenge_is_read_as_it_was(realm in "[ -~éß]{0,30}", nonce in "[ -~]{0,30}", stale: bool) {
        let challenge = Challenge { realm, nonce, opaque: String::new(), stale };
        prop_assert_eq!(Challenge::parse(&header::challenge(&challenge)), Ok(challenge));
    }

    /// No content of the field makes the parser panic, or authenticates a client.
    #[test]
    fn nonsense_is_refused(text in "(Digest )?([a-z*]{1,9}=(\"[^\"]{0,9}\"|[!-~é]{0,9})[, ]{0,2}){0,9}") {
        prop_assert!(Credentials::parse(&text).is_err());
    }
}
