//! Reads a log file as a timeline.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::line::Line;
use super::{Timeline, TimelineBuilder};
use crate::error::ToolError;

/// The longest line, in bytes: a file with longer ones is not a log.
const LONGEST: u64 = 1 << 20;

/// Reads a log file.
///
/// # Errors
/// It cannot be read, a line is invalid (only the last one may be incomplete), or it has nothing to
/// draw.
pub fn read(path: &Path) -> Result<Timeline, ToolError> {
    let file = File::open(path).map_err(ToolError::file("reading", path))?;
    let mut reader = BufReader::new(file);
    let mut building = TimelineBuilder::default();
    let (mut number, mut buffer) = (0, Vec::new());
    let bad = |line, reason| ToolError::BadLog { path: path.display().to_string(), line, reason };
    loop {
        buffer.clear();
        let mut part = reader.by_ref().take(LONGEST);
        let length =
            part.read_until(b'\n', &mut buffer).map_err(ToolError::file("reading", path))?;
        if length == 0 {
            break;
        }
        number += 1;
        // Its writer was killed, or is still writing: the line may be incomplete.
        if buffer.last() != Some(&b'\n') && number > 1 && (length as u64) < LONGEST {
            building.timeline.cut_off = true;
            break;
        }
        let text = String::from_utf8_lossy(&buffer);
        let text = text.trim_end();
        if text.is_empty() {
            continue;
        }
        if let Err(reason) = Line::parse(text).and_then(|line| building.add(&line)) {
            let hint = "this draws logs of GT_INSTRUCTION_LOG and `gt trace`";
            return Err(bad(number, format!("{reason}\n  hint: {hint}")));
        }
    }
    let timeline = building.finish();
    if timeline.spans.is_empty() {
        let hint = "trace while a program is at work, for longer with -s SECONDS";
        return Err(ToolError::EmptyLog { path: path.display().to_string(), hint });
    }
    Ok(timeline)
}
