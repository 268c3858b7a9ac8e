//! A group run tile by tile.

use std::cell::RefCell;

use super::access::{Access, Frame, Tile, fill_number, fill_run};
use super::fold::Folding;
use super::group::{EndKind, From, Group, Kind, Space};
use super::micro::power;
use crate::element::with_bits;
use crate::elementwise::Kernel;
use crate::threads::{Shared, Threads};

/// Elements in a tile, if rows allow it: the few tiles in use fit into the fastest cache.
const TILE: usize = 1024;
/// A group with more work than this many additions is split over threads,
const PARALLEL: usize = 1 << 17;
/// into pieces of about this many elements, whatever the number of threads.
const PIECE: usize = 1 << 16;

/// A group with all that it needs to be run.
pub struct Run<'a> {
    pub group: &'a Group,
    pub frame: Frame,
    pub inputs: Vec<Access>,
    /// Where each node's result is written, if it is kept.
    pub kept: Vec<Option<*mut u8>>,
}

/// How a frame is cut: into tiles, and these into pieces.
struct Cut {
    rows: usize,
    columns: usize,
    /// Tiles side by side in a row.
    across: usize,
    tiles: usize,
    /// Tiles in a piece.
    step: usize,
}

impl Cut {
    fn new(run: &Run) -> Cut {
        let Frame { rows, columns, .. } = run.frame;
        let folds_rows = run.group.nodes.iter().any(|node| matches!(node.kind, Kind::Fold(_)));
        let width = if folds_rows { columns } else { columns.min(TILE) };
        let height = if width < columns { 1 } else { (TILE / columns).clamp(1, rows) };
        let across = columns.div_ceil(width);
        let tiles = rows.div_ceil(height) * across;
        let step = (PIECE / (width * height)).max(1);
        Cut { rows: height, columns: width, across, tiles, step }
    }

    fn tile(&self, index: usize, frame: &Frame) -> Tile {
        let (row, column) = (index / self.across * self.rows, index % self.across * self.columns);
        Tile {
            row,
            rows: self.rows.min(frame.rows - row),
            column,
            columns: self.columns.min(frame.columns - column),
        }
    }
}

/// Runs a group; gives the totals of its ends.
pub fn run(threads: &mut Threads, run: &Run) -> Vec<Vec<f64>> {
    let cut = Cut::new(run);
    let kernels: Vec<Option<Kernel>> = run
        .group
        .nodes
        .iter()
        .map(|node| match node.kind {
            Kind::Map(micro) => Some(micro.kernel),
            Kind::Power(exponent) => match run.inputs[exponent as usize] {
                Access::Number(number, _) => Some(power(number.as_f64(), node.dtype)),
                Access::Tensor(_) => unreachable!("the exponent is a number"),
            },
            Kind::Fold(_) | Kind::Spread => None,
        })
        .collect();
    let lengths: Vec<usize> = run
        .group
        .ends
        .iter()
        .map(|end| if end.kind == EndKind::Total { 1 } else { run.frame.columns })
        .collect();
    let start = || -> Vec<Vec<f64>> {
        let ends = run.group.ends.iter().zip(&lengths);
        ends.map(|(end, &length)| vec![end.folding.start; length]).collect()
    };
    let work = run.frame.rows * run.frame.columns * run.group.cost.max(1);
    let mut totals = start();
    if work < PARALLEL || cut.tiles <= cut.step {
        piece(run, &cut, &kernels, 0..cut.tiles, &mut totals);
        return totals;
    }
    let pieces = cut.tiles.div_ceil(cut.step);
    let mut parts: Vec<Vec<Vec<f64>>> = vec![Vec::new(); pieces];
    let slots = Shared(parts.as_mut_ptr());
    let shared = Shared(run);
    threads.for_each(pieces, |index| {
        let tiles = index * cut.step..cut.tiles.min((index + 1) * cut.step);
        let mut totals = start();
        piece(shared.get(), &cut, &kernels, tiles, &mut totals);
        // SAFETY: each piece has its own place.
        unsafe { *slots.get().add(index) = totals };
    });
    for part in parts {
        for ((totals, part), end) in totals.iter_mut().zip(part).zip(&run.group.ends) {
            for (total, part) in totals.iter_mut().zip(part) {
                *total = (end.folding.merge)(*total, part);
            }
        }
    }
    totals
}

thread_local! {
    /// Memory for tiles, in cache lines.
    static SCRATCH: RefCell<Vec<[u64; 8]>> = const { RefCell::new(Vec::new()) };
}

/// Runs some tiles.
fn piece(
    run: &Run,
    cut: &Cut,
    kernels: &[Option<Kernel>],
    tiles: std::ops::Range<usize>,
    totals: &mut [Vec<f64>],
) {
    let group = run.group;
    // A block for each input and node, of elements of up to 8 bytes.
    let block = (cut.rows * cut.columns).div_ceil(8);
    let blocks = group.inputs.len() + group.nodes.len();
    SCRATCH.with_borrow_mut(|scratch| {
        if scratch.len() < blocks * block {
            scratch.resize(blocks * block, [0; 8]);
        }
        let memory = scratch.as_mut_ptr();
        // SAFETY: there are that many blocks.
        let at = |index: usize| unsafe { memory.add(index * block).cast::<u8>() };
        let mut inputs: Vec<*const u8> = vec![std::ptr::null(); group.inputs.len()];
        // What is the same in every tile is brought in once, for the largest.
        let largest = Tile { row: 0, rows: cut.rows, column: 0, columns: cut.columns };
        for (index, access) in run.inputs.iter().enumerate() {
            let fixed = match access {
                Access::Number(number, dtype) => {
                    // SAFETY: a block has room for the largest tile.
                    unsafe { fill_number(*number, *dtype, at(index), largest.len()) };
                    true
                }
                Access::Tensor(tensor)
                    if tensor.is_constant() || tensor.repeats() && cut.across == 1 =>
                {
                    // SAFETY: as above; rows are whole, and all the same.
                    unsafe { tensor.fill(&largest, at(index)) };
                    true
                }
                Access::Tensor(_) => false,
            };
            if fixed {
                inputs[index] = at(index);
            }
        }
        let fixed: Vec<bool> = inputs.iter().map(|input| !input.is_null()).collect();
        let mut nodes: Vec<*mut u8> = vec![std::ptr::null_mut(); group.nodes.len()];
        for index in tiles {
            let tile = cut.tile(index, &run.frame);
            for (index, access) in run.inputs.iter().enumerate() {
                let Access::Tensor(tensor) = access else { continue };
                if fixed[index] {
                    continue;
                }
                inputs[index] = tensor.direct(&tile, run.frame.columns).unwrap_or_else(|| {
                    // SAFETY: a block has room for a tile.
                    unsafe { tensor.fill(&tile, at(index)) };
                    at(index).cast_const()
                });
            }
            for (index, node) in group.nodes.iter().enumerate() {
                let size = node.dtype.size();
                let offset = match node.space {
                    Space::Full => tile.row * run.frame.columns + tile.column,
                    Space::Rows => tile.row,
                };
                nodes[index] = match run.kept[index] {
                    Some(data) => data.wrapping_add(offset * size),
                    None => at(group.inputs.len() + index),
                };
                let find = |from: From| match from {
                    From::Input(input) => inputs[input as usize],
                    From::Node(node) => nodes[node as usize].cast_const(),
                };
                let n = if node.space == Space::Full { tile.len() } else { tile.rows };
                let from = node.inputs.map(find);
                // SAFETY: every block and every kept result has room for its part of the tile, and
                // holds what earlier nodes wrote.
                unsafe {
                    match node.kind {
                        Kind::Map(_) | Kind::Power(_) => {
                            let kernel = kernels[index].expect("maps have kernels");
                            kernel(&from, nodes[index], n);
                        }
                        Kind::Fold(folding) => fold_rows(&folding, &tile, from[0], nodes[index]),
                        Kind::Spread => spread(&tile, from[0], nodes[index], size),
                    }
                }
            }
            for (end, totals) in group.ends.iter().zip(totals.iter_mut()) {
                let from = match end.from {
                    From::Input(input) => inputs[input as usize],
                    From::Node(node) => nodes[node as usize].cast_const(),
                };
                let folding = &end.folding;
                // SAFETY: as above.
                unsafe {
                    match end.kind {
                        EndKind::Total => {
                            let part = (folding.run)(from, tile.len());
                            totals[0] = (folding.merge)(totals[0], part);
                        }
                        EndKind::Columns => {
                            let totals = &mut totals[tile.column..][..tile.columns];
                            (folding.columns)(from, tile.rows, tile.columns, totals);
                        }
                    }
                }
            }
        }
    });
}

/// # Safety
/// `from` holds the tile's elements, and `to` has room for one a row.
unsafe fn fold_rows(folding: &Folding, tile: &Tile, from: *const u8, to: *mut u8) {
    let size = folding.dtype.size();
    for row in 0..tile.rows {
        // SAFETY: the caller's promise.
        unsafe {
            let total = (folding.run)(from.add(row * tile.columns * size), tile.columns);
            (folding.finish)(total, tile.columns, to.add(row * size));
        }
    }
}

/// # Safety
/// `from` holds an element for each row, and `to` has room for the tile.
unsafe fn spread(tile: &Tile, from: *const u8, to: *mut u8, size: usize) {
    // SAFETY: the caller's promise.
    with_bits!(size, T => unsafe {
        for row in 0..tile.rows {
            let value = *from.cast::<T>().add(row);
            fill_run(to.cast::<T>().add(row * tile.columns), value, tile.columns);
        }
    });
}
