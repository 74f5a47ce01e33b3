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

/// Reads a link speed ([`config::Rate`]) as bits a second.
///
/// # Errors
/// A sentence, when the text is something else or the speed is 0.
pub fn parse_speed(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(config::Rate(0)) => Err("a link has a speed above 0".to_owned()),
        Ok(config::Rate(bits)) => Ok(bits),
        Err(error) => Err(error.to_string()),
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
        assert_eq!(parse_speed("2500000bit"), Ok(2_500_000));
        assert_eq!(parse_speed("2.5Gbit"), Ok(2_500_000_000));
        for wrong in ["", "G", "0", "0G", "2500000", "1GB", "1.5", "-1", "99999999999T"] {
            assert!(parse_speed(wrong).is_err(), "{wrong}");
        }
    }
}
