//! A replay from the opening of its session to the text about what it found.

use super::bisect::{OpenDriver, bisect};
use super::compare::Tolerances;
use super::run::{ReplayOptions, replay};
use super::summary;
use crate::error::RecordingError;
use crate::place::RecordedPlace;
use crate::reading::Recording;

/// What the user asks for.
#[derive(Clone, Debug, Default)]
pub struct ReplayRequest {
    /// The number of the last instruction; `None` for all of them.
    pub until: Option<u64>,
    /// Whether the first instruction that differs is searched for, if a value differs.
    pub searches: bool,
    /// Whether all bits must be equal; `None` for on the recorded engine alone.
    pub is_exact: Option<bool>,
    /// The relative and the absolute tolerance; `None` for those of the dtypes.
    pub relative: Option<f64>,
    pub absolute: Option<f64>,
}

/// A place that a stream can run on.
pub struct ReplayTarget<'a> {
    /// Its name for people.
    pub name: String,
    /// Its engine; `None` for that of a server's workers.
    pub engine: Option<String>,
    pub open: OpenDriver<'a>,
}

/// Replays a recording on `asked`. Returns a text about it, and the number of values that differ from
/// the recorded ones. The search compares with `reference`.
///
/// # Errors
/// As [`replay`]; a place cannot be opened.
pub fn investigate(
    recording: &Recording,
    request: &ReplayRequest,
    asked: ReplayTarget,
    reference: ReplayTarget,
    interrupt: &mut dyn FnMut() -> bool,
) -> Result<(String, u64), RecordingError> {
    let recorded = &recording.header.place;
    let driver = (asked.open)()?;
    let engine = asked.engine.unwrap_or_else(|| RecordedPlace::of_server(&*driver).engine);
    let ReplayRequest { until, searches, is_exact, relative, absolute } = *request;
    let is_loose = relative.is_some() || absolute.is_some();
    let is_same = !engine.is_empty() && engine == recorded.engine;
    let is_exact = is_exact.unwrap_or(is_same && !is_loose);
    let options = ReplayOptions {
        until,
        tolerances: Tolerances { is_exact, relative, absolute },
        // With the same slots, sums have the same order on any number of workers.
        slots: Some(recorded.workers).filter(|workers| *workers > 0),
        stops_at_difference: false,
    };
    let report = replay(recording, &*driver, &options, interrupt);
    driver.close();
    let report = report?;
    let mut text = summary::report(recording, &report, &asked.name);
    if searches && let Some(first) = report.differences.first() {
        let (open, other) = (reference.open, asked.open);
        let found = bisect(recording, open, other, first.at, &options, interrupt)?;
        let names = (reference.name.as_str(), asked.name.as_str());
        text.push('\n');
        text.push_str(&summary::first_difference(recording, &found, names.0, names.1));
    }
    Ok((text, report.different))
}
