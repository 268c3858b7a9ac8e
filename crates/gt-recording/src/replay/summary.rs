//! What a replay has found, as text.

use std::fmt::Write;

use super::bisect::{DifferingInstruction, FirstDifference};
use super::compare::Received;
use super::describe;
use super::report::{DifferingValue, LastInstruction, ReplayReport};
use crate::place::RecordedPlace;
use crate::reading::{Ending, Recording};

/// The most differing values that are shown.
const MOST: usize = 3;

/// Returns what a recording is of: program, version, place, and how it ends.
pub fn recording(recording: &Recording) -> String {
    let header = &recording.header;
    let program = match header.program.join(" ") {
        program if program.is_empty() => "a program".to_string(),
        program => format!("`{program}`"),
    };
    let mut text = format!(
        "{}: {} instructions of {program}, recorded by gt {} on {}",
        recording.path(),
        recording.instructions,
        header.version,
        place(&header.place)
    );
    if header.is_anonymous {
        text.push_str("\n  it has no data: values are drawn at random, and not compared");
    }
    match &recording.ending {
        Ending::Complete => {}
        Ending::Cut { at } => {
            let _ = write!(
                text,
                "\n  it is cut short at byte {at}: the program was killed, or has not ended yet; the stream up to there is replayed"
            );
        }
        Ending::Damaged { at, reason } => {
            let _ = write!(
                text,
                "\n  it is damaged at byte {at} ({reason}); what is before is replayed"
            );
        }
    }
    text
}

/// Returns the workers of a session: `2 native workers of the server at box:9000`.
fn place(place: &RecordedPlace) -> String {
    let RecordedPlace { description, engine, workers, is_remote } = place;
    let engine = if engine.is_empty() { String::new() } else { format!("{engine} ") };
    let count = match workers {
        0 => format!("{engine}workers"),
        1 => format!("one {engine}worker"),
        workers => format!("{workers} {engine}workers"),
    };
    match (is_remote, description.as_str()) {
        (false, _) => format!("{count} in its process"),
        (true, "") => format!("{count} of a server"),
        (true, description) => format!("{count} of {description}"),
    }
}

/// Returns the counts of a replay on `place`, and the first values that differ.
pub fn report(recording: &Recording, report: &ReplayReport, place: &str) -> String {
    let seconds = report.took.as_secs_f64();
    let mut text =
        format!("replayed {} instructions on {place} in {seconds:.3} s", report.instructions);
    if let Some(last) = &report.last {
        text.push_str(&last_instruction(recording, report.instructions, last));
    }
    let ReplayReport { equal, close, different, unrecorded, .. } = report;
    let _ = write!(text, "\n{equal} values are equal to the recorded ones");
    if *close > 0 {
        let _ = write!(text, ", {close} within tolerances");
    }
    if *unrecorded > 0 {
        let _ = write!(text, ", {unrecorded} are not recorded");
    }
    if *different > 0 {
        let _ = write!(text, ", {different} differ");
    }
    for found in report.differences.iter().take(MOST) {
        text.push_str(&differing_value(recording, found));
    }
    text
}

fn last_instruction(recording: &Recording, number: u64, last: &LastInstruction) -> String {
    let LastInstruction { instruction, operands, value } = last;
    let shown = describe::instruction(instruction, |tensor| operands.get(&tensor).copied());
    let line = at_line(describe::line(recording, instruction.source));
    format!("\n  instruction {number}: {shown}{line}\n  its result: {}", describe::received(value))
}

fn at_line(line: Option<String>) -> String {
    line.map(|line| format!("\n  issued at {line}")).unwrap_or_default()
}

fn differing_value(recording: &Recording, found: &DifferingValue) -> String {
    let DifferingValue { at, tensor, line, recorded, received } = found;
    let asked = describe::line(recording, *line);
    let asked = asked.map(|line| format!(", requested at {line}")).unwrap_or_default();
    format!(
        "\n  after instruction {at}, tensor {tensor}{asked}\n    recorded: {}\n    replayed: {}",
        describe::outcome(recorded),
        describe::received(received)
    )
}

/// Returns the first difference between two places, as text.
pub fn first_difference(
    recording: &Recording,
    found: &FirstDifference,
    reference: &str,
    asked: &str,
) -> String {
    match found {
        FirstDifference::None => format!(
            "no instruction differs between {reference} and {asked} here: the recorded values are of another engine or version of gt ({})",
            recording.header.version
        ),
        FirstDifference::Accumulated => format!(
            "each instruction has the same result on {asked} as on {reference}, within tolerances, if its operands are the same: small differences add up over the stream\n  hint: compare with a larger --rtol"
        ),
        FirstDifference::HotPath { first, last } => format!(
            "instructions {first} to {last} differ between {reference} and {asked} only when they run as a hot path\n  hint: compare with GT_AUTO_COMPILE=0, and report this with the file"
        ),
        FirstDifference::Instruction(found) => instruction(recording, found, reference, asked),
    }
}

fn instruction(
    recording: &Recording,
    found: &DifferingInstruction,
    reference: &str,
    asked: &str,
) -> String {
    let DifferingInstruction { number, instruction, operands, .. } = found;
    let shown = describe::instruction(instruction, |tensor| operands.get(&tensor).copied());
    let line = at_line(describe::line(recording, instruction.source));
    let mut text = format!("the first instruction that differs is number {number}: {shown}{line}");
    let width = reference.len().max(asked.len());
    for (place, received) in [(reference, &found.reference), (asked, &found.asked)] {
        let _ = write!(text, "\n  {place:<width$}  {}", describe::received(received));
    }
    if let (Received::Value(one), Received::Value(other)) = (&found.reference, &found.asked)
        && let Some((index, distance)) = describe::largest_difference(one, other)
    {
        let _ = write!(
            text,
            "\n  the largest difference is {distance:e}, at element {index}: {} and {}",
            one.element(index),
            other.element(index)
        );
    }
    text
}
