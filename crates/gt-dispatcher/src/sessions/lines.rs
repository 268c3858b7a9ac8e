//! The lines of a client's program, for people who watch: instructions carry numbers of lines, whose
//! texts only the client has.

use gt_ir::SourceId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::peer::word;

/// The most lines of a session that the client is asked for, in all and at once.
const MOST: usize = 1 << 12;
const AT_ONCE: usize = 64;

/// The lines that the client was asked for.
#[derive(Default)]
pub(crate) struct SourceLines {
    asked: FxHashSet<SourceId>,
    known: FxHashMap<SourceId, String>,
    /// The number of definitions of templates whose lines were asked for.
    pub definitions: u64,
}

impl SourceLines {
    /// Returns those of the lines that the client has to be asked for.
    pub fn missing(&mut self, lines: impl Iterator<Item = SourceId>) -> Vec<SourceId> {
        let mut missing = Vec::new();
        for line in lines.filter(|line| line.0 != 0) {
            if missing.len() == AT_ONCE || self.asked.len() == MOST {
                break;
            }
            if self.asked.insert(line) {
                missing.push(line);
            }
        }
        missing
    }

    /// Records the client's answer; lines that it was not asked for are ignored.
    pub fn answer(&mut self, lines: Vec<(SourceId, String)>) {
        for (line, text) in lines {
            if self.asked.contains(&line) && !text.is_empty() {
                self.known.insert(line, word(&text));
            }
        }
    }

    /// Returns a line as `file:line`; empty if it is not known.
    pub fn shown(&self, line: SourceId) -> String {
        self.text(line).unwrap_or_default().to_string()
    }

    /// Returns a line as `file:line`, if it is known.
    pub fn text(&self, line: SourceId) -> Option<&str> {
        self.known.get(&line).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_asked_for_once_and_other_answers_are_ignored() {
        let mut lines = SourceLines::default();
        let ids =
            |numbers: &[u32]| numbers.iter().map(|number| SourceId(*number)).collect::<Vec<_>>();
        assert_eq!(lines.missing(ids(&[0, 2, 4, 2]).into_iter()), ids(&[2, 4]));
        assert_eq!(lines.missing(ids(&[4, 6]).into_iter()), ids(&[6]));
        let text = |line: &str| line.to_string();
        lines.answer(vec![(SourceId(2), text("a.py:3\n")), (SourceId(9), text("b.py:1"))]);
        assert_eq!(lines.text(SourceId(2)), Some("a.py:3_"));
        assert_eq!((lines.text(SourceId(9)), lines.text(SourceId(4))), (None, None));
        let many = lines.missing((10..10_000).map(SourceId));
        assert_eq!(many.len(), AT_ONCE);
        while !lines.missing((10..10_000).map(SourceId)).is_empty() {}
        assert_eq!(lines.asked.len(), MOST);
    }
}
