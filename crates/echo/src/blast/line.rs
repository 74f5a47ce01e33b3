//! How many frames a second fit on a line.

/// Bytes on the wire beside the frame: preamble 7, start delimiter 1, gap 12 (IEEE 802.3).
const OVERHEAD: u64 = 7 + 1 + 12;

/// Bytes of the frame check sequence.
pub const FCS: usize = 4;

/// Frames a second at a link speed in bits a second, for frames of `frame` bytes with their check
/// sequence: 1,488,095.24 for 64 bytes at 1 Gbit/s.
pub fn frames_per_second(link_speed: u64, frame: usize) -> f64 {
    link_speed as f64 / 8.0 / (frame as u64 + OVERHEAD) as f64
}

/// Reads a link speed: digits, then K, M, G or T for thousands, millions and so on of bits.
///
/// # Errors
/// A sentence, when the text is something else or the speed is 0.
pub fn parse_speed(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let factor = match &text[digits.len()..] {
        "" => 1,
        "k" | "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        _ => 0,
    };
    match digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)) {
        Some(speed) if speed > 0 => Ok(speed),
        _ => Err("write bits a second as 100M, 1G or 10G".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula_of_the_seed() {
        assert_eq!(format!("{:.2}", frames_per_second(1_000_000_000, 64)), "1488095.24");
        assert_eq!(format!("{:.2}", frames_per_second(1_000_000_000, 1518)), "81274.38");
        assert_eq!(format!("{:.2}", frames_per_second(10_000_000, 64)), "14880.95");
    }

    #[test]
    fn speeds_are_read_and_nonsense_is_refused() {
        assert_eq!(parse_speed("1G"), Ok(1_000_000_000));
        assert_eq!(parse_speed("100M"), Ok(100_000_000));
        assert_eq!(parse_speed("2500000"), Ok(2_500_000));
        for wrong in ["", "G", "0", "0G", "1Gbit", "1.5G", "-1", "99999999999T"] {
            assert!(parse_speed(wrong).is_err(), "{wrong}");
        }
    }
}
