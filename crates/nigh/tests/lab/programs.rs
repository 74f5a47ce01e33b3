//! Programs that everybody has, through the lab.

use super::{TWO_HOSTS, lab};

/// The round-trip times that ping shows, in milliseconds.
fn times(output: &str) -> Vec<f64> {
    let times = output.lines().filter_map(|line| line.split_once("time=")?.1.split(' ').next());
    times.filter_map(|time| time.parse().ok()).collect()
}

#[test]
fn ping_sees_the_delay_of_both_ways() {
    if !testbed::require_root() {
        return;
    }
    let lab = lab(TWO_HOSTS);
    for (to, ttl) in [("30.0.0.10", "ttl=62"), ("2001:db8:30::10", "ttl=62")] {
        for size in ["56", "1400", "8000"] {
            let words = ["ping", "-c", "3", "-i", "0.1", "-s", size, to];
            let output = lab.check("pc", &words).unwrap();
            let times = times(&output);
            assert_eq!(times.len(), 3, "{output}");
            assert!(times.iter().all(|time| *time >= 20.0), "{output}");
            assert!(output.contains(ttl), "{output}");
        }
    }
}

#[test]
fn hosts_know_each_other_by_name() {
    if !testbed::require_root() {
        return;
    }
    let lab = lab(TWO_HOSTS);
    lab.check("pc", &["ping", "-4", "-c", "1", "server"]).unwrap();
    lab.check("server", &["ping", "-6", "-c", "1", "pc"]).unwrap();
}
