//! The layout of a drawing.
//!
//! A span that is wide enough is a box. Narrower ones are merged: for each column of pixels they
//! are one bar, whose height is the busy fraction of the row there, in the colour of most of it.

use std::collections::HashSet;

use crate::timeline::{Colour, Party, Span, Timeline};
use crate::visualize::Size;
use crate::words::{bytes, duration, grouped};

/// Narrower spans are merged; in points.
const NARROW: f64 = 2.0;
/// The width of the columns of merged spans.
const COLUMN: f64 = 1.0;
/// The most arrows, and the least distance between the starts of arrows from one row to another, in
/// points. The largest transfers have priority.
const ARROWS: usize = 400;
const APART: f64 = 8.0;
/// Space for the names of rows, and around everything.
const NAMES: f64 = 150.0;
const MARGIN: f64 = 16.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 64.0;
/// The greatest height of a row.
const TALLEST: f64 = 150.0;

/// Points an inch: SVG's own.
pub const POINTS: f64 = 96.0;

/// A drawing, in points.
#[derive(Debug, PartialEq)]
pub struct Drawing {
    pub width: f64,
    pub height: f64,
    pub rows: Vec<DrawnRow>,
    pub boxes: Vec<Box>,
    pub bars: Vec<Bar>,
    pub arrows: Vec<Arrow>,
    /// Places and texts of the axis.
    pub ticks: Vec<(f64, String)>,
    /// The legend: each colour with its seconds and number of instructions.
    pub legend: Vec<(Colour, f64, u64)>,
    pub summary: String,
    pub plot: (f64, f64),
}

/// A row.
#[derive(Debug, PartialEq)]
pub struct DrawnRow {
    pub name: String,
    pub detail: String,
    pub part: Party,
    pub y: f64,
    pub height: f64,
}

/// A box for one span.
#[derive(Debug, PartialEq)]
pub struct Box {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
    pub colour: Colour,
    pub failed: bool,
    /// The text in it, if there is room, and the title that a pointer shows.
    pub label: Option<String>,
    pub title: String,
}

/// A bar of merged spans.
#[derive(Debug, PartialEq)]
pub struct Bar {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
    pub colour: Colour,
}

/// The transfer of a block.
#[derive(Debug, PartialEq)]
pub struct Arrow {
    pub from: (f64, f64),
    pub to: (f64, f64),
    pub title: String,
}

/// Lays out a timeline in a picture of this size.
pub fn lay_out(timeline: &Timeline, size: Size) -> Drawing {
    let (width, height) = (size.width * POINTS, size.height * POINTS);
    let (left, right) = (NAMES + MARGIN, (width - MARGIN).max(NAMES + MARGIN + 10.0));
    let (begin, end) = timeline.extent();
    let seconds = (end - begin).max(1e-6);
    let scale = (right - left) / seconds;
    let x = |time: f64| left + (time - begin) * scale;
    let rows = rows(timeline, height);
    let mut boxes = Vec::new();
    let mut columns: Vec<PixelColumns> =
        rows.iter().map(|_| PixelColumns::new(right - left)).collect();
    for span in &timeline.spans {
        let row = &rows[span.row];
        let span_width = (span.end - span.begin) * scale;
        if span_width < NARROW {
            columns[span.row].add(span, (x(span.begin) - left, span_width));
            continue;
        }
        // Waiting is drawn thinner, so that concurrent work is visible.
        let is_thin = span.colour == Colour::Queue;
        let high = if is_thin { row.height * 0.3 } else { row.height };
        boxes.push(Box {
            x: x(span.begin),
            y: row.y + row.height - high,
            width: span_width,
            height: high,
            colour: span.colour,
            failed: span.failed,
            label: label(span, span_width, high),
            title: title(span),
        });
    }
    let bars = rows.iter().zip(&columns).flat_map(|(row, columns)| columns.bars(left, row));
    let arrows = arrows(timeline, &rows, x);
    let summary = summary(timeline, seconds, arrows.len());
    Drawing {
        width,
        height,
        bars: bars.collect(),
        boxes,
        arrows,
        ticks: ticks(begin, end, x),
        legend: legend(timeline),
        summary,
        plot: (left, right),
        rows,
    }
}

fn rows(timeline: &Timeline, height: f64) -> Vec<DrawnRow> {
    let room = (height - TOP - BOTTOM).max(10.0);
    let each = (room / timeline.rows.len().max(1) as f64).min(TALLEST);
    let (begin, end) = timeline.extent();
    let mut busy = vec![0.0; timeline.rows.len()];
    for span in timeline.spans.iter().filter(|span| span.colour != Colour::Queue) {
        busy[span.row] += span.end - span.begin;
    }
    let row = |(place, row): (usize, &crate::timeline::Row)| DrawnRow {
        name: row.name.clone(),
        detail: format!(
            "{}, {:.0} % busy",
            row.part.name(),
            100.0 * busy[place] / (end - begin).max(1e-9)
        ),
        part: row.part,
        y: TOP + each * place as f64 + each * 0.1,
        height: each * 0.8,
    };
    timeline.rows.iter().enumerate().map(row).collect()
}

/// The narrow spans of a row, by columns of pixels.
struct PixelColumns {
    /// For each column the share of each colour.
    shares: Vec<[f32; Colour::ALL.len()]>,
}

impl PixelColumns {
    fn new(width: f64) -> PixelColumns {
        let count = (width / COLUMN).ceil().max(1.0) as usize;
        PixelColumns { shares: vec![[0.0; Colour::ALL.len()]; count] }
    }

    fn add(&mut self, span: &Span, (x, width): (f64, f64)) {
        let last = self.shares.len() - 1;
        // A moment has a least width.
        let width = width.max(0.05);
        let mut at = x.max(0.0);
        let end = x + width;
        while at < end {
            let column = ((at / COLUMN) as usize).min(last);
            let until = if column == last { end } else { end.min((column + 1) as f64 * COLUMN) };
            self.shares[column][span.colour as usize] += ((until - at) / COLUMN) as f32;
            if until <= at {
                break;
            }
            at = until;
        }
    }

    /// Returns a bar for each run of equal columns.
    fn bars(&self, left: f64, row: &DrawnRow) -> Vec<Bar> {
        let mut bars: Vec<Bar> = Vec::new();
        for (column, shares) in self.shares.iter().enumerate() {
            let busy: f32 = shares.iter().sum();
            if busy <= 0.0 {
                continue;
            }
            let most = Colour::ALL
                .into_iter()
                .max_by(|a, b| shares[*a as usize].total_cmp(&shares[*b as usize]));
            let colour = most.unwrap_or(Colour::Link);
            // The height has eight steps, and a least value.
            let share = (f64::from(busy.min(1.0)) * 8.0).ceil() / 8.0;
            let high = row.height * share.max(0.25);
            let x = left + column as f64 * COLUMN;
            match bars.last_mut() {
                Some(last)
                    if last.colour == colour
                        && (last.x + last.width - x).abs() < 1e-6
                        && (last.height - high).abs() < 1e-6 =>
                {
                    last.width += COLUMN;
                }
                _ => {
                    let y = row.y + row.height - high;
                    bars.push(Bar { x, y, width: COLUMN, height: high, colour });
                }
            }
        }
        bars
    }
}

fn label(span: &Span, width: f64, height: f64) -> Option<String> {
    if height < 11.0 {
        return None;
    }
    let size = if span.bytes > 0 { bytes(span.bytes) } else { String::new() };
    let full = match (span.id, span.count) {
        (Some(id), 1) => format!("{} #{id} {size}", span.name),
        (Some(id), count) => format!("{} #{id} x{count} {size}", span.name),
        (None, 1) => span.name.to_string(),
        (None, count) => format!("{} x{count}", span.name),
    };
    // A letter takes some 5.5 points.
    let room = (width / 5.5) as usize;
    let fits = |text: &str| text.chars().count() <= room;
    [full.trim_end(), &*span.name].into_iter().find(|text| fits(text)).map(str::to_string)
}

fn title(span: &Span) -> String {
    let mut text = format!("{}: {}", span.name, duration(span.end - span.begin));
    if let Some(id) = span.id {
        text += &format!(", #{id}");
    }
    if span.count != 1 {
        text += &format!(", {} instructions", span.count);
    }
    if span.bytes > 0 {
        text += &format!(", {}", bytes(span.bytes));
    }
    match (&span.session_name, span.session) {
        (Some(name), _) => text += &format!(", {name}"),
        (None, Some(session)) => text += &format!(", session #{session}"),
        (None, None) => {}
    }
    if let Some(lines) = &span.lines {
        text += &format!(", at {lines}");
    }
    if span.failed {
        text += ", failed";
    }
    text
}

fn arrows(timeline: &Timeline, rows: &[DrawnRow], x: impl Fn(f64) -> f64) -> Vec<Arrow> {
    let mut moves: Vec<_> = timeline.moves.iter().collect();
    moves.sort_by_key(|moved| (std::cmp::Reverse(moved.bytes), moved.transfer));
    let mut taken = HashSet::new();
    moves.retain(|moved| {
        let place = (x(moved.sent) / APART) as i64;
        taken.insert((moved.from, moved.to, place))
    });
    moves.truncate(ARROWS);
    let middle = |row: usize| rows[row].y + rows[row].height / 2.0;
    let arrow = |moved: &crate::timeline::Move| Arrow {
        from: (x(moved.sent), middle(moved.from)),
        to: (x(moved.received), middle(moved.to)),
        title: format!(
            "{} to {}: {}, {}",
            rows[moved.from].name,
            rows[moved.to].name,
            bytes(moved.bytes),
            duration(moved.received - moved.sent)
        ),
    };
    moves.into_iter().map(arrow).collect()
}

/// Returns about ten ticks at round times.
fn ticks(begin: f64, end: f64, x: impl Fn(f64) -> f64) -> Vec<(f64, String)> {
    let rough = ((end - begin) / 10.0).max(1e-9);
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let step = step.into_iter().find(|step| *step >= rough).unwrap_or(rough);
    // As many digits as distinguish two ticks.
    let digits = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    let first = (begin / step).ceil() as i64;
    let times = (first..).map(|number| number as f64 * step).take_while(|time| *time <= end);
    times.take(30).map(|time| (x(time), format!("{time:.digits$} s"))).collect()
}

fn legend(timeline: &Timeline) -> Vec<(Colour, f64, u64)> {
    let mut sums = [(0.0, 0u64, false); Colour::ALL.len()];
    for span in &timeline.spans {
        let (seconds, count, is_there) = &mut sums[span.colour as usize];
        *seconds += span.end - span.begin;
        *count = count.saturating_add(span.count);
        *is_there = true;
    }
    let found = Colour::ALL.into_iter().zip(sums);
    found.filter(|(_, (.., there))| *there).map(|(c, (s, n, _))| (c, s, n)).collect()
}

fn summary(timeline: &Timeline, seconds: f64, arrows: usize) -> String {
    let moved = timeline.moves.iter().map(|moved| moved.bytes).fold(0, u64::saturating_add);
    let mut text = format!(
        "{}, {} events, {} instructions on workers",
        duration(seconds),
        grouped(timeline.spans.len() as u64),
        grouped(timeline.instructions())
    );
    if !timeline.moves.is_empty() {
        let moves = timeline.moves.len();
        text += &format!(", {} moves of {}", grouped(moves as u64), bytes(moved));
        if moves > arrows {
            text += &format!(" (arrows: {arrows} of them, the largest)");
        }
    }
    if timeline.cut_off {
        text += ", the log's end is cut off";
    }
    text
}
