//! Splits a frame into pieces, each of which is one thread's work, and pieces into tiles.

use super::access::{GroupFrame, Tile};
use super::group::{EpilogueKind, Granularity, Group};
use crate::fold::{PIECE, piece_rows};

/// Elements in a tile, if rows allow it: the few tiles in use fit into the L1 cache.
const TILE: usize = 1024;

/// The sizes of tiles and pieces. They depend on the group and the frame only, not on the number of
/// threads.
pub struct Tiling {
    /// The whole frame.
    whole: Tile,
    /// Rows and columns of a tile.
    tile: [usize; 2],
    /// Rows and columns of a piece.
    piece: [usize; 2],
}

impl Tiling {
    /// Chooses the sizes for a group.
    pub fn new(group: &Group, frame: &GroupFrame) -> Tiling {
        let GroupFrame { rows, columns, .. } = *frame;
        // Values for each row are computed in one tile, and may need the whole row.
        let by_rows = group.nodes.iter().any(|node| node.granularity == Granularity::PerRow);
        let width = if by_rows { columns } else { columns.min(TILE) };
        let height = if width < columns { 1 } else { (TILE / columns).clamp(1, rows) };
        let has = |kind| group.epilogues.iter().any(|epilogue| epilogue.kind == kind);
        let piece = if has(EpilogueKind::Columns) {
            // Pieces are those in which columns are folded. Folds of all elements need whole rows,
            // in order.
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

    /// Returns the largest tile.
    pub fn largest(&self) -> Tile {
        let [rows, columns] = self.tile;
        Tile { row: 0, rows, column: 0, columns }
    }

    /// Returns whether tiles have all columns.
    pub fn is_by_whole_rows(&self) -> bool {
        self.tile[1] == self.whole.columns
    }

    /// Returns the number of pieces.
    pub fn pieces(&self) -> usize {
        count(&self.whole, self.piece)
    }

    /// Returns the rows and columns of a piece.
    pub fn piece(&self, index: usize) -> Tile {
        part(&self.whole, self.piece, index)
    }

    /// Iterates over the tiles of a piece, in the order of their elements.
    pub fn tiles(&self, piece: Tile) -> impl Iterator<Item = Tile> {
        let tile = self.tile;
        (0..count(&piece, tile)).map(move |index| part(&piece, tile, index))
    }
}

/// Returns the number of parts of this size.
fn count(whole: &Tile, [rows, columns]: [usize; 2]) -> usize {
    whole.rows.div_ceil(rows) * whole.columns.div_ceil(columns)
}

/// Returns one of these parts: they are numbered row by row, and the last ones may be smaller.
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
