//! Responses that cannot be read, or that clients read differently.

use super::*;

/// What is said of a response: whether its flow is refused, and how much was scanned and was not.
fn answer(rules: &str, response: &str) -> (bool, u64, u64) {
    let mut bench = Bench::new(rules);
    bench.send(Side::Client, "GET /f HTTP/1.1\r\n\r\n");
    bench.send(Side::Server, response);
    bench.packet(Side::Server, Tcp::FIN, b"");
    bench.report(0, 10, None, ScanResult::Clean);
    let refused = bench.outcome().1;
    assert_eq!(bench.waits(), 0, "{response}");
    let Counts { scanned, unscanned, .. } = bench.managers.counts;
    (refused, scanned, unscanned)
}

#[test]
fn what_cannot_be_read_passes_as_unscanned_or_is_refused() {
    let chunked = "Transfer-Encoding: chunked\r\n\r\n";
    let body = "a\r\n0123456789\r\n0\r\n\r\n";
    for response in [
        // No HTTP: at all, in a chunk's size, behind a chunk.
        "ICY 200 OK\r\nContent-Length: 10\r\n\r\n0123456789".to_owned(),
        format!("HTTP/1.1 200 OK\r\n{chunked}0x{body}"),
        // Clients differ.
        format!("HTTP/1.0 200 OK\r\n{chunked}{body}"),
        format!("HTTP/1.1\t200 OK\r\n{chunked}{body}"),
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nContent-Length: 9\r\n\r\n0123456789".to_owned(),
        // Some take a body where there is none.
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX\r\n\r\n".to_owned(),
        "HTTP/1.1 101 Switching Protocols\r\n\r\n0123456789".to_owned(),
    ] {
        let (refused, scanned, unscanned) = answer(SCAN, &response);
        // A beginning that was scanned is counted by itself.
        assert!(!refused && scanned == 0 && unscanned > 0, "{response}: {unscanned}");
        let refuse = format!("{SCAN}on_failure = \"refuse\"\n");
        assert_eq!(answer(&refuse, &response), (true, 0, 1), "{response}");
        // Nobody asks for files of this flow.
        let other = refuse.replace("action", "application = [\"ftp\"]\naction");
        assert_eq!(answer(&other, &response), (false, 0, 0), "{response}");
    }
    for response in [
        format!("HTTP/1.1  200 OK\r\n{chunked}000000000000000{body}"),
        "0123456789012345678901234567890123456789".to_owned(),
    ] {
        let refuse = format!("{SCAN}on_failure = \"refuse\"\n");
        assert_eq!(answer(&refuse, &response), (false, 1, 0), "{response}");
    }
}

/// The type of content that clients read differently may be another one.
#[test]
fn what_only_looks_like_a_type_that_is_allowed_is_not_let_through() {
    let rules = "[[file]]\nname = \"no\"\ntypes = [\"exe\"]\naction = \"deny\"\n[scan]\n\
                 clamd = \"/nowhere\"\non_failure = \"refuse\"\n";
    let response = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                    2\r\nMZ\r\n8\r\n01234567\r\n0\r\n\r\n";
    assert!(answer(rules, response).0);
    let text = response.replace("MZ", "ab");
    assert_eq!(answer(rules, &text), (true, 0, 1));
    assert_eq!(answer(rules, &text.replace("1.0", "1.1")), (false, 0, 0));
}

/// A flow that is read from the middle of a body on was begun to be read too late, not given up.
#[test]
fn what_was_under_way_is_not_taken_for_something_unreadable() {
    let mut bench = Bench::new(&format!("{SCAN}on_failure = \"refuse\"\n"));
    bench.send(Side::Server, "in the\0 middle\n\nof a body");
    assert!(!bench.outcome().1);
    bench.send(Side::Client, "GET /f HTTP/1.1\r\n\r\n");
    bench.send(Side::Server, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789");
    bench.report(0, 10, None, ScanResult::Clean);
    assert_eq!((bench.managers.counts.scanned, bench.managers.counts.unscanned), (1, 0));
}
