//! Files that are offered in IRC and sent past its server are recognized by the offer: they have its name, and are
//! scanned.

use super::sharing::Share;
use super::{
    audited::line,
    scanned::{Scanned, pair},
    site::{EXTERNAL, LIMIT, Site, count},
};
use std::{
    io::Write,
    net::{Ipv4Addr, TcpStream},
};
use testbed::{
    Namespace,
    clients::{Ngircd, Peer, Script, noise},
    wait_until,
};

/// EICAR alone, a packet or two, more than a stream may wait with.
const SIZES: [usize; 3] = [68, 5_000, 2_500_000];

#[test]
fn a_file_offered_over_irc_is_denied_by_its_name() {
    let log = tempfile::tempdir().unwrap();
    let site = Site::start(&format!(
        "[gate.audit]\nfolder = \"{}\"\n[[gate.file]]\nname = \"no-image\"\n\
         application = [\"irc\"]\nnames = [\"*.iso\"]\naction = \"deny\"\n",
        log.path().display()
    ));
    let _server = Ngircd::start(&site.external, EXTERNAL).unwrap();
    let taken = tempfile::tempdir().unwrap();
    let folder = taken.path().to_str().unwrap();
    let mut ann =
        Script::start(&site.internal, "irc_dcc.py", &[EXTERNAL, "ann", "take", folder]).unwrap();
    let offered = tempfile::tempdir().unwrap();
    let content = noise(23, 300_000);
    for (nick, name, passes) in [("bob", "image.iso", false), ("cid", "song.mp3", true)] {
        let path = offered.path().join(name);
        std::fs::write(&path, &content).unwrap();
        let words = [EXTERNAL, nick, "send", "ann", path.to_str().unwrap()];
        let _sender = Script::start(&site.external, "irc_dcc.py", &words).unwrap();
        let (got, lost) = (format!("got {name}\n"), format!("lost {name}\n"));
        let mut printed = String::new();
        let over = wait_until("the file's end", LIMIT, || {
            printed = ann.process().stdout();
            printed.contains(&got) || printed.contains(&lost)
        });
        assert!(over.is_ok(), "{printed} {}", site.state());
        assert_eq!(printed.contains(&got), passes, "{:#?} {}", site.flows("irc"), site.state());
        let arrived = std::fs::read(taken.path().join(name)).ok();
        assert!(arrived == passes.then(|| content.clone()), "{name}");
    }
    site.wait("one denied file", |status| count(&status["files"], "denied") == 1);
    let row = line(&site, log.path(), "the file that passed", |line| {
        line["event_type"] == "fileinfo" && line["fileinfo"]["filename"] == "song.mp3"
    });
    assert_eq!((&row["src_ip"], &row["fileinfo"]["size"]), (&EXTERNAL.into(), &300_000.into()));
}

#[test]
fn dcc_brings_clean_files_and_no_eicar() {
    let Scanned { site, .. } = &Scanned::start("\"irc\"");
    let _server = Ngircd::start(&site.external, EXTERNAL).unwrap();
    let (offered, taken) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = taken.path().to_str().unwrap();
    let mut senders = 0;
    for (taker, from, to) in
        [("ann", &site.external, &site.internal), ("eve", &site.internal, &site.external)]
    {
        let words = [EXTERNAL, taker, "take", folder];
        let mut takes = Script::start(to, "irc_dcc.py", &words).unwrap();
        for (form, size) in
            ["active", "passive"].into_iter().flat_map(|form| SIZES.map(|size| (form, size)))
        {
            for (content, passes) in pair(size).into_iter().zip([true, false]) {
                senders += 1;
                let (nick, name) = (format!("bob{senders}"), format!("{senders}.bin"));
                let path = offered.path().join(&name);
                std::fs::write(&path, &content).unwrap();
                let mut words = vec![EXTERNAL, &nick, "send", taker, path.to_str().unwrap()];
                words.extend((form == "passive").then_some(form));
                let _sender = Script::start(from, "irc_dcc.py", &words).unwrap();
                let (got, lost) = (format!("got {name}\n"), format!("lost {name}\n"));
                let mut printed = String::new();
                let over = wait_until("the file's end", LIMIT, || {
                    printed = takes.process().stdout();
                    printed.contains(&got) || printed.contains(&lost)
                });
                assert!(over.is_ok(), "{taker} {form} {size}: {printed} {}", site.state());
                let arrived = std::fs::read(taken.path().join(&name)).ok();
                let expected = passes.then_some(content);
                assert!(arrived == expected, "{taker} {form} {size}: {}", site.state());
            }
        }
    }
    let status = site.wait("all finds", |status| count(&status["files"], "found") >= senders / 2);
    assert_eq!(count(&status["files"], "found"), senders / 2, "{status:#}");
    assert_eq!(count(&status["files"], "unscanned"), 0, "{status:#}");
}

/// Somebody at the server, who says nothing by themselves.
fn enter(host: &Namespace, nick: &str) -> TcpStream {
    let mut stream = host.enter(|| TcpStream::connect((EXTERNAL, 6667))).unwrap();
    write!(stream, "NICK {nick}\r\nUSER {nick} 0 * :{nick}\r\n").unwrap();
    stream
}

#[test]
fn a_forged_offer_hides_no_bittorrent() {
    const PORT: u16 = 21_002;
    let log = tempfile::tempdir().unwrap();
    let site = Site::start(&format!(
        "refuse_for = \"0s\"\n[gate.audit]\nfolder = \"{}\"\nrecord = [\"chat\", \"files\"]\n\
         [[gate.rule]]\nname = \"no-sharing\"\napplication = [\"bittorrent\"]\naction = \"deny\"\n",
        log.path().display()
    ));
    let _server = Ngircd::start(&site.external, EXTERNAL).unwrap();
    let share = Share::start(&site, 300_000, &Peer::new(PORT));
    let _ann = enter(&site.internal, "ann");
    let mut bob = enter(&site.external, "bob");
    let address = u32::from(EXTERNAL.parse::<Ipv4Addr>().unwrap());
    let offer = format!("\u{1}DCC SEND song.mp3 {address} {PORT} 300000\u{1}");
    // Who is not there yet gets nothing.
    let offered = wait_until("the forged offer", LIMIT, || {
        write!(bob, "PRIVMSG ann :{offer}\r\n").unwrap();
        count(&site.status()["files"], "messages") > 0
    });
    assert!(offered.is_ok(), "{}", site.state());
    let leech = share.fetch(&site, &Peer::new(21_001));
    site.wait("a refused flow", |status| count(&status["refused"], "bittorrent") >= 1);
    assert!(!leech.complete());
    let status = site.status();
    assert_eq!(count(&status["classified"], "dcc"), 0, "{status:#}");
}
