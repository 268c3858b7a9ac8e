//! A timeline as columns of numbers, which a browser reads without parsing each span.
//!
//! Little-endian: the header's length in bytes (u32), the header (JSON, padded with spaces to a
//! multiple of 8), then one column after the other, those of 8 bytes a value first. The header has
//! what all spans share: rows, and the kinds of spans, as their names and texts recur. Spans are
//! sorted by row, then by beginning, and those that hold others come first. [`reading`] is the way back.

mod reading;

use std::sync::Arc;

use bytes::Bytes;
use gt_tools::timeline::{Colour, Move, Row, Span, Timeline};
use gt_tools::trace::Recorded;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

/// What a browser takes instead of the number of an instruction, if there is none.
const NO_ID: f64 = -1.0;

/// What many spans share.
#[derive(Clone, PartialEq, Eq, Hash)]
struct SpanKind {
    name: Arc<str>,
    colour: Colour,
    session: Option<u64>,
    session_name: Option<Arc<str>>,
    steps: Option<Arc<str>>,
    lines: Option<Arc<str>>,
    failed: bool,
}

/// A timeline in the form that browsers read.
pub struct Columns {
    bytes: Bytes,
    rows: Vec<Row>,
    /// For each row, its spans: from this place to that of the next row.
    starts: Vec<usize>,
    kinds: Vec<SpanKind>,
    /// The offset of the first column.
    offset: usize,
    moves: usize,
}

/// The columns of spans and of moves: a name, and the bytes of a value.
const SPANS: [(&str, usize); 6] =
    [("begin", 8), ("end", 8), ("bytes", 8), ("id", 8), ("kind", 4), ("count", 4)];
const MOVES: [(&str, usize); 5] =
    [("sent", 8), ("received", 8), ("size", 8), ("from", 4), ("to", 4)];

impl Columns {
    /// Packs a timeline, with what is said about its recording, and the session that is shown first.
    pub fn of(timeline: &Timeline, recorded: &Recorded, session: Option<u64>) -> Columns {
        let spans = sorted(&timeline.spans);
        let starts = (0..=timeline.rows.len())
            .map(|row| spans.partition_point(|span| span.row < row))
            .collect::<Vec<_>>();
        let (kinds, numbers) = number_kinds(&spans);
        let mut moves: Vec<&Move> = timeline.moves.iter().collect();
        moves.sort_by(|a, b| a.sent.total_cmp(&b.sent));
        let (begin, end) = timeline.extent();
        let header = json!({
            "title": recorded.title, "dropped": recorded.dropped, "ended": recorded.ended,
            "session": session, "begin": begin, "end": end,
            "spans": spans.len(), "moves": moves.len(),
            "rows": timeline.rows.iter().zip(&starts).map(row_header).collect::<Vec<_>>(),
            "colours": Colour::ALL.map(|of| json!({ "name": of.name(), "rgb": of.rgb() })),
            "kinds": kinds.iter().map(kind_header).collect::<Vec<_>>(),
        });
        let mut bytes = framed(&header);
        let offset = bytes.len();
        bytes.reserve_exact(spans.len() * width(&SPANS) + moves.len() * width(&MOVES));
        write_spans(&mut bytes, &spans, &numbers);
        write_moves(&mut bytes, &moves);
        let (rows, moves) = (timeline.rows.clone(), moves.len());
        Columns { bytes: bytes.into(), rows, starts, kinds, offset, moves }
    }

    /// The bytes that browsers get.
    pub fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    /// The number of spans.
    pub fn len(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }
}

/// Returns the bytes of one row of a table.
fn width(columns: &[(&str, usize)]) -> usize {
    columns.iter().map(|(_, width)| width).sum()
}

fn sorted(spans: &[Span]) -> Vec<&Span> {
    let mut sorted: Vec<&Span> = spans.iter().collect();
    sorted.sort_by(|a, b| {
        let by_begin = a.row.cmp(&b.row).then(a.begin.total_cmp(&b.begin));
        by_begin.then(b.end.total_cmp(&a.end))
    });
    sorted
}

/// Returns the different kinds of spans, and the place of that of each span among them.
fn number_kinds(spans: &[&Span]) -> (Vec<SpanKind>, Vec<u32>) {
    let mut places: FxHashMap<SpanKind, u32> = FxHashMap::default();
    let mut kinds = Vec::new();
    let numbers = spans.iter().map(|span| {
        let kind = SpanKind {
            name: span.name.clone(),
            colour: span.colour,
            session: span.session,
            session_name: span.session_name.clone(),
            steps: span.steps.clone(),
            lines: span.lines.clone(),
            failed: span.failed,
        };
        *places.entry(kind).or_insert_with_key(|kind| {
            kinds.push(kind.clone());
            kinds.len() as u32 - 1
        })
    });
    let numbers = numbers.collect();
    (kinds, numbers)
}

fn row_header((row, start): (&Row, &usize)) -> Value {
    json!({ "part": row.part.name(), "name": row.name, "start": start })
}

fn kind_header(kind: &SpanKind) -> Value {
    json!({
        "name": &*kind.name, "colour": kind.colour as usize, "session": kind.session,
        "session_name": kind.session_name.as_deref(), "steps": kind.steps.as_deref(),
        "lines": kind.lines.as_deref(), "failed": kind.failed,
    })
}

/// Returns the header with its length. Columns then begin at a multiple of 8, as views of them must.
fn framed(header: &Value) -> Vec<u8> {
    let mut text = header.to_string();
    while !(4 + text.len()).is_multiple_of(8) {
        text.push(' ');
    }
    let mut bytes = (text.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

fn write_spans(bytes: &mut Vec<u8>, spans: &[&Span], kinds: &[u32]) {
    let id = |of: &Span| of.id.map_or(NO_ID, |id| id as f64);
    let count = |of: &Span| u32::try_from(of.count).unwrap_or(u32::MAX);
    write(bytes, spans.iter().map(|of| of.begin.to_le_bytes()));
    write(bytes, spans.iter().map(|of| of.end.to_le_bytes()));
    write(bytes, spans.iter().map(|of| (of.bytes as f64).to_le_bytes()));
    write(bytes, spans.iter().map(|of| id(of).to_le_bytes()));
    write(bytes, kinds.iter().map(|kind| kind.to_le_bytes()));
    write(bytes, spans.iter().map(|of| count(of).to_le_bytes()));
}

fn write_moves(bytes: &mut Vec<u8>, moves: &[&Move]) {
    write(bytes, moves.iter().map(|of| of.sent.to_le_bytes()));
    write(bytes, moves.iter().map(|of| of.received.to_le_bytes()));
    write(bytes, moves.iter().map(|of| (of.bytes as f64).to_le_bytes()));
    write(bytes, moves.iter().map(|of| (of.from as u32).to_le_bytes()));
    write(bytes, moves.iter().map(|of| (of.to as u32).to_le_bytes()));
}

fn write<const WIDTH: usize>(bytes: &mut Vec<u8>, values: impl Iterator<Item = [u8; WIDTH]>) {
    values.for_each(|value| bytes.extend_from_slice(&value));
}

#[cfg(test)]
mod tests {
    use gt_tools::timeline::Party;

    use super::*;

    fn span(row: usize, (begin, end): (f64, f64), name: &str) -> Span {
        Span {
            row,
            begin,
            end,
            colour: Colour::Matmul,
            name: name.into(),
            id: (row > 0).then_some(1 << 40),
            count: 3,
            bytes: 5 << 32,
            session: Some(2),
            session_name: Some("<b> ada #2".into()),
            steps: None,
            lines: Some("a.py:3".into()),
            failed: row == 0,
        }
    }

    fn timeline() -> Timeline {
        let row = |part, name: &str| Row { part, name: name.into() };
        let rows = vec![row(Party::Client, "<b> ada #2"), row(Party::Worker, "w0")];
        let spans = vec![
            span(1, (1.0, 1.5), "inner"),
            span(0, (1.25, 2.0), "issue"),
            span(1, (1.0, 2.0), "outer"),
            span(1, (3.0, 3.0), "outer"),
        ];
        let moved = Move { from: 0, sent: 1.5, to: 1, received: 1.75, bytes: 9, transfer: 0 };
        Timeline { rows, spans, moves: vec![moved], cut_off: false }
    }

    fn packed() -> Columns {
        let recorded =
            Recorded { events: 4, dropped: 7, title: "server x".into(), ended: Some("y".into()) };
        Columns::of(&timeline(), &recorded, Some(2))
    }

    #[test]
    fn spans_are_sorted_by_row_and_those_that_hold_others_come_first() {
        let columns = packed();
        let length = u32::from_le_bytes(columns.bytes[..4].try_into().unwrap()) as usize;
        assert_eq!(columns.offset, 4 + length);
        assert_eq!(columns.offset % 8, 0);
        let header: Value = serde_json::from_slice(&columns.bytes[4..4 + length]).unwrap();
        assert_eq!((&header["spans"], &header["moves"]), (&json!(4), &json!(1)));
        assert_eq!((&header["begin"], &header["end"]), (&json!(1.0), &json!(3.0)));
        assert_eq!((&header["dropped"], &header["session"]), (&json!(7), &json!(2)));
        assert_eq!(header["rows"][1], json!({ "part": "worker", "name": "w0", "start": 1 }));
        assert_eq!(header["colours"][3]["name"], "matmul");
        let names: Vec<&str> = (0..4)
            .map(|at| {
                let place = columns.offset + 4 * 4 * 8 + 4 * at;
                let kind = u32::from_le_bytes(columns.bytes[place..place + 4].try_into().unwrap());
                header["kinds"][kind as usize]["name"].as_str().unwrap()
            })
            .collect();
        assert_eq!(names, ["issue", "outer", "inner", "outer"]);
        assert_eq!(header["kinds"].as_array().unwrap().len(), 3);
        assert_eq!(columns.bytes.len(), columns.offset + 4 * 40 + 32);
    }

    #[test]
    fn the_timeline_is_read_again() {
        let (mut read, mut given) = (packed().timeline(), timeline());
        for of in [&mut read, &mut given] {
            of.spans.sort_by(|a, b| (a.begin, &a.name).partial_cmp(&(b.begin, &b.name)).unwrap());
        }
        assert_eq!(read, given);
    }

    #[test]
    fn nothing_is_packed_as_nothing() {
        let recorded = Recorded { events: 0, dropped: 0, title: String::new(), ended: None };
        let columns = Columns::of(&Timeline::default(), &recorded, None);
        assert_eq!((columns.len(), columns.bytes.len()), (0, columns.offset));
        assert_eq!(columns.timeline(), Timeline::default());
    }
}
