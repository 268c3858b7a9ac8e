//! How a frame is cut into pieces, of which each is one thread's work, and these into tiles.

use super::access::{GroupFrame, Tile};
use super::group::{EpilogueKind, Granularity, Group};
use crate::fold::{PIECE, piece_rows};

/// Elements in a tile, if rows allow it: the few tiles in use fit into the fastest cache.
const TILE: usize = 1024;

/// The lengths of tiles and pieces. They follow from the group and the frame, whatever the number of
/// threads.
pub struct Tiling {
    /// The frame as a whole.
    whole: Tile,
    /// Rows and columns of a tile.
    tile: [usize; 2],
    /// Rows and columns of a piece.
    piece: [usize; 2],
}

impl Tiling {
    pub fn new(group: &Group, frame: &GroupFrame) -> Tiling {
        let GroupFrame { rows, columns, .. } = *frame;
        // What there is one of for each row is made in one tile, and may need all of the row.
        let by_rows = group.nodes.iter().any(|node| node.granularity == Granularity::PerRow);
        let width = if by_rows { columns } else { columns.min(TILE) };
        let height = if width < columns { 1 } else { (TILE / columns).clamp(1, rows) };
        let has = |kind| group.epilogues.iter().any(|epilogue| epilogue.kind == kind);
        let piece = if has(EpilogueKind::Columns) {
            // As the sums of columns are cut. Those of everything take whole rows in their order.
            let rows = piece_rows(columns);
            let is_whole = width == columns || has(EpilogueKind::Total);
            [rows, if is_whole { columns } else { (PIECE / rows).max(width) }]
        } else if width < columns && columns > PIECE {
            [1, PIECE]
        } else {
            [(PIECE / columns / height).max(1) * height, columns]
        };
        let whole = Tile { row: 0, rows, column: 0, columns };
        Tiling { whole, tile: [height, width], piece }
    }

    /// The largest tile.
    pub fn largest(&self) -> Tile {
        let [rows, columns] = self.tile;
        Tile { row: 0, rows, column: 0, columns }
    }

    /// Whether a tile has all columns.
    pub fn is_by_whole_rows(&self) -> bool {
        self.tile[1] == self.whole.columns
    }

    /// The number of pieces.
    pub fn pieces(&self) -> usize {
        count(&self.whole, self.piece)
    }

    pub fn piece(&self, index: usize) -> Tile {
        part(&self.whole, self.piece, index)
    }

    /// The tiles of a piece, in the order of their elements.
    pub fn tiles(&self, piece: Tile) -> impl Iterator<Item = Tile> {
        let tile = self.tile;
        (0..count(&piece, tile)).map(move |index| part(&piece, tile, index))
    }
}

/// How many parts of these lengths there are.
fn count(whole: &Tile, [rows, columns]: [usize; 2]) -> usize {
    whole.rows.div_ceil(rows) * whole.columns.div_ceil(columns)
}

/// One of them: row by row, the last ones shorter.
fn part(whole: &Tile, [rows, columns]: [usize; 2], index: usize) -> Tile {
    let across = whole.columns.div_ceil(columns);
    let (down, right) = (index / across * rows, index % across * columns);
    Tile {
        row: whole.row + down,
        rows: rows.min(whole.rows - down),
        column: whole.column + right,
        columns: columns.min(whole.columns - right),
    }
}
