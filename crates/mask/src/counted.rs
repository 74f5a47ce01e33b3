//! Numbers of things, as people write them.

/// `1 packet`, `2 packets`.
pub(crate) fn counted(count: impl TryInto<u64>, one: &str, more: &str) -> String {
    // No count of ours has more bits.
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {}", if count == 1 { one } else { more })
}

#[cfg(test)]
#[test]
fn one_is_singular() {
    let names = |count: usize| counted(count, "name of a host", "names of hosts");
    assert_eq!(names(0), "0 names of hosts");
    assert_eq!(names(1), "1 name of a host");
    assert_eq!(names(2), "2 names of hosts");
}
