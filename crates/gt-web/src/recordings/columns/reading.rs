//! A timeline from its columns: Perfetto's form is made of it.

use gt_tools::timeline::{Move, Span, Timeline};

use super::{Columns, MOVES, SPANS, width};

impl Columns {
    /// Returns the timeline that was packed.
    pub fn timeline(&self) -> Timeline {
        let spans = ColumnReader::new(&self.bytes[self.offset..], SPANS, self.len());
        let moves = ColumnReader::new(
            &self.bytes[self.offset + self.len() * width(&SPANS)..],
            MOVES,
            self.moves,
        );
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
