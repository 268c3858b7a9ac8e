//! Numbers as people read them.

/// `1.5 MB`
pub fn bytes(count: u64) -> String {
    let units = ["B", "KB", "MB", "GB", "TB", "PB"];
    let (mut value, mut unit) = (count as f64, 0);
    // What would be written as 1000.0 is 1.0 of the next.
    while value >= 999.95 && unit + 1 < units.len() {
        (value, unit) = (value / 1000.0, unit + 1);
    }
    if unit == 0 { format!("{count} B") } else { format!("{value:.1} {}", units[unit]) }
}

/// `12.3k`
pub fn number(value: f64) -> String {
    let units = ["", "k", "M", "G", "T"];
    let (mut value, mut unit) = (value, 0);
    while value >= 999.5 && unit + 1 < units.len() {
        (value, unit) = (value / 1000.0, unit + 1);
    }
    if unit == 0 { format!("{value:.0}") } else { format!("{value:.1}{}", units[unit]) }
}

/// `1,234,567`
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `12.30 ms`
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.1} us", s * 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let cases = [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (1_500_000, "1.5 MB")];
        cases.iter().for_each(|(count, text)| assert_eq!(bytes(*count), *text));
        assert_eq!(bytes(999_960), "1.0 MB");
        assert_eq!([0.0, 999.4, 1234.0, 2e6].map(number), ["0", "999", "1.2k", "2.0M"]);
        assert_eq!([1, 999, 1000, 1_234_567].map(grouped), ["1", "999", "1,000", "1,234,567"]);
        assert_eq!([2.5, 0.0123, 1.5e-6].map(duration), ["2.50 s", "12.30 ms", "1.5 us"]);
    }
}
