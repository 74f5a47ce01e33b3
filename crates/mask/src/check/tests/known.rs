//! What known packets reveal to an attacker.

use super::{segments::*, *};

#[test]
fn what_becomes_of_addresses_is_seen() {
    let of = |action: &str| {
        let lines = ["source", "destination"].map(|it| format!("\"ipv4.{it}\" = {action}"));
        let report = after(&among_many(), &lines.each_ref().map(|line| &line[..]));
        let injection = report.injection;
        assert_eq!((injection.pairs, injection.families.len()), (120, 1));
        let family = injection.families.into_iter().next().expect("IPv4");
        assert_eq!((family.family, family.addresses), (Family::Ipv4, 40));
        family
    };
    for (action, mapping, unchanged, known) in [
        (r#""prefix""#, Mapping::KeepsPrefixes, 0, 2),
        (r#""encrypt""#, Mapping::OneToOne, 0, 0),
        ("{ permute = 16 }", Mapping::OneToOne, 16, 0),
        ("{ truncate = 24 }", Mapping::ManyToOne, 24, 0),
        (r#""random""#, Mapping::Changing, 0, 0),
        (r#""keep""#, Mapping::Kept, 0, 0),
        (r#""remove""#, Mapping::Removed, 0, 0),
    ] {
        let found = of(action);
        assert_eq!(found.mapping, mapping, "{action}");
        assert!(found.unchanged_bits >= unchanged, "{action}: {found}");
        assert!(unchanged > 0 || found.unchanged_bits == 0, "{action}: {found}");
        assert_eq!(found.known.len(), known, "{action}");
        assert!(found.known.is_sorted_by(|a, b| a.bits < b.bits && b.bits <= 32.0), "{found}");
    }
}

#[test]
fn of_few_addresses_nothing_is_said_for_sure() {
    let lines = ["source", "destination"].map(|it| format!("\"ipv4.{it}\" = \"prefix\""));
    let report = after(&hosts(1), &lines.each_ref().map(|line| &line[..]));
    // Of two addresses that share five bits.
    let families: Vec<_> = report.injection.families.iter().map(|it| it.mapping).collect();
    assert_eq!(families, [Mapping::TooFew], "{report}");
    assert!(report.to_string().contains("cannot be seen from so few"), "{report}");
}

#[test]
fn what_becomes_of_times_is_seen() {
    for (line, kept, single) in [
        (r#"time = "keep""#, TimesKept::All, 120),
        (r#"time = "relative""#, TimesKept::Intervals, 120),
        (r#"time = "remove""#, TimesKept::No, 0),
    ] {
        let injection = after(&among_many(), &[line]).injection;
        let times = injection.times.expect("times");
        assert_eq!(
            (times.kept, times.single, injection.single_sizes),
            (kept, single, 120),
            "{line}"
        );
    }
}

#[test]
fn packets_in_another_order_are_not_paired() {
    let original = capture_at(&among_many());
    let mut packets = among_many();
    packets.reverse();
    let fewer = packets.split_off(60);
    for other in [packets, fewer] {
        let report = check(&original[..], &capture_at(&other)[..]).expect("a report");
        assert!(report.injection.times.is_none() && report.injection.families.is_empty());
        assert!(report.to_string().contains("was not computed"), "{report}");
    }
}
