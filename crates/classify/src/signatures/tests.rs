//! Signatures that fit, that do not, and that are refused.

use super::*;
use config::Problem;

fn one(text: &str) -> SignatureConfig {
    toml::from_str(text).unwrap()
}

fn tcp(port: u16) -> Flow {
    Flow {
        transport: Transport::Tcp,
        client: "10.0.0.5:40000".parse().unwrap(),
        server: format!("192.0.2.7:{port}").parse().unwrap(),
    }
}

fn problems(list: &[SignatureConfig]) -> Vec<Problem> {
    let mut problems = Vec::new();
    check(list, &mut Report::new(&mut problems, "gate"));
    problems
}

fn named(label: Option<Label>) -> Option<String> {
    label.map(|label| label.application.into_owned())
}

#[test]
fn sides_ports_transports_and_lengths_are_checked() {
    let list = [
        one(r#"name = "chat"
            category = "chat"
            transport = "tcp"
            side = "client"
            ports = [6667]
            pattern = '(?i)^nick [^\r\n]+\r?\n'"#),
        one(r#"name = "odd"
            pattern = '^\xe3\x00.{4}\xff'
            within = 7"#),
    ];
    assert_eq!(problems(&list), []);
    let signatures = Signatures::compile(&list).unwrap();
    let find = |flow, side, bytes: &[u8]| named(signatures.find(&flow, side, bytes));
    assert_eq!(find(tcp(6667), Side::Client, b"NICK me\r\n"), Some("chat".into()));
    assert_eq!(find(tcp(6668), Side::Client, b"NICK me\r\n"), None);
    assert_eq!(find(tcp(6667), Side::Server, b"NICK me\r\n"), None);
    assert_eq!(find(tcp(6667), Side::Client, b"NICK me"), None);
    let odd = b"\xe3\x00\x80\x81\x82\x83\xff and more";
    assert_eq!(find(tcp(1), Side::Server, odd), Some("odd".into()));
    let udp = Flow { transport: Transport::Udp, ..tcp(6667) };
    assert_eq!(find(udp, Side::Client, b"NICK me\r\n"), None);
    assert_eq!(find(udp, Side::Client, odd), Some("odd".into()));
    let label = signatures.find(&tcp(6667), Side::Client, b"NICK me\r\n").unwrap();
    assert_eq!(label.to_string(), "chat (signature chat)");
    assert_eq!((label.category, label.engine), (Category::Chat, Engine::Signature));
}

#[test]
fn only_the_first_bytes_count_and_the_first_signature_wins() {
    let list = [
        one("name = \"far\"\npattern = 'needle'\nwithin = 4096"),
        one("name = \"near\"\npattern = 'needle'\nwithin = 10"),
        one("name = \"also-near\"\npattern = 'nee'\nwithin = 10"),
    ];
    let signatures = Signatures::compile(&list[1..]).unwrap();
    let find = |bytes: &[u8]| named(signatures.find(&tcp(1), Side::Client, bytes));
    assert_eq!(find(b"hay needle"), Some("near".into()));
    assert_eq!(find(b"hay  needle"), Some("also-near".into()));
    assert_eq!(find(b"haystack with a needle"), None);
    let all = Signatures::compile(&list).unwrap();
    assert_eq!(named(all.find(&tcp(1), Side::Client, b"needle")), Some("far".into()));
}

#[test]
fn all_patterns_are_found_in_one_pass_as_one_by_one() {
    let list: Vec<_> =
        (0..200).map(|at| one(&format!("name = \"s{at}\"\npattern = 'k{at:03}(a|b)+z'"))).collect();
    let signatures = Signatures::compile(&list).unwrap();
    assert_eq!(signatures.groups.len(), 4);
    for at in 0..200 {
        let text = format!("... k{at:03}abbaz ...");
        assert_eq!(
            named(signatures.find(&tcp(1), Side::Server, text.as_bytes())),
            Some(format!("s{at}"))
        );
    }
}

#[test]
fn what_is_wrong_has_its_key() {
    let list = [
        one("name = \"Good\"\npattern = 'a'"),
        one("name = \"b\"\npattern = 'a(b'"),
        one("name = \"c\"\npattern = '(a{1000}){1000}'"),
        one("name = \"d\"\npattern = 'a*'"),
        one("name = \"e\"\npattern = 'a'\nwithin = 5000"),
        one("name = \"f\"\npattern = ''"),
    ];
    let found: Vec<_> = problems(&list).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "gate.signature[0].name: 1 to 64 letters in lower case, digits, `-`, `_`, `.`",
            "gate.signature[1].pattern: no regular expression: unclosed group",
            "gate.signature[2].pattern: this pattern needs more than 1048576 bytes of memory: \
             shorten repetitions",
            "gate.signature[3].pattern: it matches empty input too: every flow would match",
            "gate.signature[4].within: 5000 is not a number of bytes from 1 to 4096",
            "gate.signature[5].pattern: a pattern has 1 to 4096 bytes",
        ]
    );
    let many = vec![one("name = \"a\"\npattern = 'a'"); 1001];
    assert_eq!(problems(&many).len(), 1);
    assert!(toml::from_str::<SignatureConfig>("name = 'a'\npattern = 'a'\nwords = 3").is_err());
}
