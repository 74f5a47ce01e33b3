//! A number with at most one point and a unit, read exactly.

/// More decimal places than any unit has.
const MAX_DIGITS: usize = 25;

/// Splits `1.5 Gbit` into its number and its unit; nothing if it does not begin with a digit.
pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    number.starts_with(|c: char| c.is_ascii_digit()).then(|| (number, unit.trim_start()))
}

/// `digits / 10^places`.
pub(crate) struct Decimal {
    /// All digits, without the point.
    pub(crate) digits: u128,
    /// How many of them are behind the point.
    pub(crate) places: u32,
}

impl Decimal {
    /// Reads digits with at most one point between two of them: no sign, no exponent.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (whole, part) = match text.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (text, ""),
        };
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(part) || text.len() > MAX_DIGITS {
            return None;
        }
        let places = u32::try_from(part.len()).ok()?;
        Some(Self { digits: format!("{whole}{part}").parse().ok()?, places })
    }
}

/// The number times `unit`, if that is whole.
pub(crate) fn times(number: &str, unit: u64) -> Option<u64> {
    let Decimal { digits, places } = Decimal::parse(number)?;
    let divisor = 10_u128.pow(places);
    let product = digits.checked_mul(unit.into())?;
    (product.is_multiple_of(divisor)).then(|| u64::try_from(product / divisor).ok())?
}

/// A value in the largest of the units (from large to small) of which it is a whole number.
pub(crate) fn whole(value: u64, units: &[(&str, u64)]) -> String {
    let unit = units.iter().find(|(_, factor)| value != 0 && value.is_multiple_of(*factor));
    let (name, factor) = unit.or(units.last()).copied().unwrap_or(("", 1));
    format!("{}{name}", value / factor)
}
