//! One line of a log.
//!
//! `1.608s | #0011 | RECV         | CLIENT 006b8b4568           | BinaryOp        |       117B | result=2 op=add left=0 right=1`

/// A parsed line, which borrows from the text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line<'a> {
    /// Seconds since the dispatcher started.
    pub elapsed: f64,
    pub sequence: u64,
    pub event: &'a str,
    pub is_worker: bool,
    /// The client or worker.
    pub party: &'a str,
    pub command: &'a str,
    pub bytes: u64,
    pub details: &'a str,
}

impl<'a> Line<'a> {
    /// Parses a line.
    ///
    /// # Errors
    /// The part of the line that is invalid.
    pub fn parse(text: &'a str) -> Result<Line<'a>, String> {
        let mut fields = text.splitn(7, '|').map(str::trim);
        let mut field = |name: &str| {
            fields.next().ok_or_else(|| format!("the {name} is missing; fields are separated by |"))
        };
        let elapsed = field("time")?;
        let seconds = elapsed.strip_suffix('s').and_then(|number| number.parse::<f64>().ok());
        let seconds = seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
        let elapsed = seconds.ok_or_else(|| {
            format!("'{}' is no time, expected one like 1.608s", shorten(elapsed))
        })?;
        let sequence = field("number")?;
        let number = sequence.strip_prefix('#').and_then(|number| number.parse().ok());
        let sequence = number.ok_or_else(|| {
            format!("'{}' is no number, expected one like #0011", shorten(sequence))
        })?;
        let event = field("event")?;
        let source = field("client or worker")?;
        let (kind, party) = source.split_once(' ').unwrap_or((source, ""));
        let is_worker = match kind {
            "CLIENT" => false,
            "WORKER" => true,
            _ => return Err(format!("'{}' is neither a CLIENT nor a WORKER", shorten(source))),
        };
        let command = field("command")?;
        let size = field("size")?;
        let bytes = size.strip_suffix('B').and_then(|number| number.parse().ok());
        let bytes = bytes
            .ok_or_else(|| format!("'{}' is no size, expected one like 117B", shorten(size)))?;
        // Details may be missing where there are none.
        let details = field("details").unwrap_or_default();
        Ok(Line {
            elapsed,
            sequence,
            event,
            is_worker,
            party: party.trim(),
            command,
            bytes,
            details,
        })
    }

    /// Returns the value of a key in the details.
    pub fn detail(&self, key: &str) -> Option<&'a str> {
        self.details.split(' ').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
    }

    /// Returns the value of a key as a number.
    pub fn number<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.detail(key)?.parse().ok()
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(40).map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "1.608s | #0011 | RECV         | CLIENT 006b8b4568           | BinaryOp        |       117B | result=2 op=add left=0 right=1";

    #[test]
    fn a_line_has_its_fields() {
        let line = Line::parse(TEXT).unwrap();
        assert_eq!((line.elapsed, line.sequence, line.event), (1.608, 11, "RECV"));
        assert_eq!((line.is_worker, line.party), (false, "006b8b4568"));
        assert_eq!((line.command, line.bytes), ("BinaryOp", 117));
        assert_eq!((line.detail("op"), line.number::<u64>("result")), (Some("add"), Some(2)));
        assert_eq!(line.detail("o"), None);
    }

    #[test]
    fn what_is_wrong_with_a_line_is_said() {
        for (text, reason) in [
            ("hello", "'hello' is no time"),
            ("1.0s", "the number is missing"),
            ("1.0s | 11 | RECV", "'11' is no number"),
            ("1.0s | #1 | RECV | SERVER x | A | 1B | ", "'SERVER x' is neither"),
            ("1.0s | #1 | RECV | CLIENT x | A | 1 | ", "'1' is no size"),
            ("-1.0s | #1 | RECV | CLIENT x | A | 1B | ", "'-1.0s' is no time"),
            ("nans | #1 | RECV | CLIENT x | A | 1B | ", "'nans' is no time"),
        ] {
            let error = Line::parse(text).unwrap_err();
            assert!(error.starts_with(reason), "{text}: {error}");
        }
    }
}
