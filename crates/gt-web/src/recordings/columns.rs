//! A timeline as columns of numbers, which a browser reads without parsing each span.
//!
//! Little-endian: the header's length in bytes (u32), the header (JSON, padded with spaces to a
//! multiple of 8), then one column after the other, those of 8 bytes a value first. The header has
//! what all spans share: rows, and the kinds of spans, as their names and texts recur. Spans are
//! sorted by row, then by beginning, and those that hold others come first.

use bytes::Bytes;
use gt_tools::timeline::{Colour, Move, Party, Row, Span, Timeline};
use gt_tools::trace::Recorded;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use std::sync::Arc;

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

/// The numbers of one span.
#[derive(Clone, Copy)]
struct SpanNumbers {
    begin: f64,
    end: f64,
    bytes: u64,
    id: Option<u64>,
    kind: u32,
    count: u32,
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
        write_spans(&mut bytes, &numbers);
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

    /// Returns the timeline that was packed.
    pub fn timeline(&self) -> Timeline {
        let spans = ColumnReader::new(&self.bytes[self.offset..], SPANS, self.len());
        let each: usize = SPANS.iter().map(|(_, width)| width).sum();
        let moves =
            ColumnReader::new(&self.bytes[self.offset + self.len() * each..], MOVES, self.moves);
        let of_row = |row: usize| (self.starts[row]..self.starts[row + 1]).map(move |at| (row, at));
        let all = (0..self.rows.len()).flat_map(of_row);
        let mut all: Vec<Span> = all.map(|(row, at)| self.span(&spans, row, at)).collect();
        all.sort_by(|a, b| a.begin.total_cmp(&b.begin));
        let moved = |at| Move {
            sent: moves.float(0, at),
            received: moves.float(1, at),
            bytes: moves.float(2, at) as u64,
            from: moves.word(3, at) as usize,
            to: moves.word(4, at) as usize,
            transfer: at as u64,
        };
        let moves = (0..self.moves).map(moved).collect();
        Timeline { rows: self.rows.clone(), spans: all, moves, cut_off: false }
    }

    fn span(&self, spans: &ColumnReader<6>, row: usize, at: usize) -> Span {
        let kind = self.kinds[spans.word(4, at) as usize].clone();
        let id = spans.float(3, at);
        Span {
            row,
            begin: spans.float(0, at),
            end: spans.float(1, at),
            colour: kind.colour,
            name: kind.name,
            id: (id >= 0.0).then_some(id as u64),
            count: u64::from(spans.word(5, at)),
            bytes: spans.float(2, at) as u64,
            session: kind.session,
            session_name: kind.session_name,
            steps: kind.steps,
            lines: kind.lines,
            failed: kind.failed,
        }
    }
}

fn sorted(spans: &[Span]) -> Vec<&Span> {
    let mut sorted: Vec<&Span> = spans.iter().collect();
    sorted.sort_by(|a, b| {
        let by_begin = a.row.cmp(&b.row).then(a.begin.total_cmp(&b.begin));
        by_begin.then(b.end.total_cmp(&a.end))
    });
    sorted
}

/// Returns the different kinds of spans, and the numbers of each span.
fn number_kinds(spans: &[&Span]) -> (Vec<SpanKind>, Vec<SpanNumbers>) {
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
        let place = *places.entry(kind).or_insert_with_key(|kind| {
            kinds.push(kind.clone());
            kinds.len() as u32 - 1
        });
        SpanNumbers {
            begin: span.begin,
            end: span.end,
            bytes: span.bytes,
            id: span.id,
            kind: place,
            count: u32::try_from(span.count).unwrap_or(u32::MAX),
        }
    });
    let numbers = numbers.collect();
    (kinds, numbers)
}

fn row_header((row, start): (&Row, &usize)) -> Value {
    let part = match row.part {
        Party::Client => "client",
        Party::Dispatcher => "dispatcher",
        Party::Worker => "worker",
    };
    json!({ "part": part, "name": row.name, "start": start })
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
    while (4 + text.len()) % 8 != 0 {
        text.push(' ');
    }
    let mut bytes = (text.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

fn write_spans(bytes: &mut Vec<u8>, spans: &[SpanNumbers]) {
    write(bytes, spans.iter().map(|of| of.begin.to_le_bytes()));
    write(bytes, spans.iter().map(|of| of.end.to_le_bytes()));
    write(bytes, spans.iter().map(|of| (of.bytes as f64).to_le_bytes()));
    write(bytes, spans.iter().map(|of| of.id.map_or(NO_ID, |id| id as f64).to_le_bytes()));
    write(bytes, spans.iter().map(|of| of.kind.to_le_bytes()));
    write(bytes, spans.iter().map(|of| of.count.to_le_bytes()));
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

/// Reads columns, by their place among them.
struct ColumnReader<'a, const COLUMNS: usize> {
    columns: [&'a [u8]; COLUMNS],
}

impl<'a, const COLUMNS: usize> ColumnReader<'a, COLUMNS> {
    fn new(bytes: &'a [u8], widths: [(&str, usize); COLUMNS], count: usize) -> Self {
        let mut rest = bytes;
        let columns = widths.map(|(_, width)| {
            let (column, after) = rest.split_at(width * count);
            rest = after;
            column
        });
        ColumnReader { columns }
    }

    fn float(&self, column: usize, at: usize) -> f64 {
        let mut value = [0; 8];
        value.copy_from_slice(&self.columns[column][8 * at..8 * at + 8]);
        f64::from_le_bytes(value)
    }

    fn word(&self, column: usize, at: usize) -> u32 {
        let mut value = [0; 4];
        value.copy_from_slice(&self.columns[column][4 * at..4 * at + 4]);
        u32::from_le_bytes(value)
    }
}

#[cfg(test)]
mod tests {
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
