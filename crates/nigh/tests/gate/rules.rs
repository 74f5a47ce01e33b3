//! Rules: one application is denied and the others pass, by the file, by what is given beside it, and by a
//! reload.

use super::{
    site::{OUTSIDE, Site, count, exact},
    talk::Talk,
    web::Web,
};

const NO_WEB: &str = "hold = true\nrefuse_for = \"0s\"\n[[gate.rule]]\nname = \"no-web\"\n\
                      application = [\"http\"]\naction = \"deny\"\n";

#[test]
fn one_application_is_denied_and_the_others_pass() {
    if !testbed::require_root() {
        return;
    }
    let site = Site::start(NO_WEB);
    let web = Web::start(&site);
    web.offer("page", b"a page");
    let page = || web.fetch(&site, "length", "page").is_some();
    assert!(!page(), "{}", site.says());
    Talk::open(&site.inside, &site.outside, OUTSIDE).say(b"no web at all");
    let status = site.wait("a refusal", |status| count(&status["refused"], "http") >= 1);
    assert_eq!(count(&status["rules"][0], "count"), 1, "{status:#}");
    let flows = site.flows("http");
    assert!(flows.iter().all(|row| row["verdict"] == "reset" && row["rule"] == "no-web"));
    let [client, server] = ["client", "server"].map(|end| &flows[0]["flow"][end]);
    let why = site.ask(&["why", "tcp", client.as_str().unwrap(), server.as_str().unwrap()]);
    assert!(why.stdout.contains("no-web") && why.stdout.contains("http"), "{}", why.stdout);

    // What is given comes before the file; all is switched off at one stroke.
    site.ask(&["allow", "http"]);
    assert!(page(), "{}", site.says());
    site.ask(&["forget", "--all"]);
    assert!(!page(), "{}", site.says());
    site.ask(&["bypass", "on"]);
    assert!(page(), "{}", site.says());
    site.ask(&["bypass", "off"]);
    assert!(!page(), "{}", site.says());

    // A reload judges by the new file, and once more by the old one.
    site.reload("");
    assert!(page(), "{}", site.says());
    site.reload(NO_WEB);
    assert!(!page(), "{}", site.says());
    site.wait("exact counters", exact);
}
