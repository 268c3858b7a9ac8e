//! Execution of a group, tile by tile.

use std::cell::RefCell;

use gt_ir::Operand;
use gt_worker::EngineError;

use super::access::{Access, GroupFrame, TensorAccess, Tile, fill_number, fill_run, natural_split};
use super::epilogue::{Folded, PartialFold};
use super::fold::Folding;
use super::group::{Epilogue, Granularity, GroupNode, GroupNodeKind, NodeSource, Output};
use super::tile_kernel::power;
use super::tiling::Tiling;
use super::verified::VerifiedGroup;
use crate::element::with_bits;
use crate::kernel::Kernel;
use crate::tensor::Tensor;
use crate::threads::{SharedPtr, Threads};
use crate::uninit::Uninit;

/// Groups with more work than this many additions run on several threads.
const PARALLEL: usize = 1 << 17;

/// A group bound to the memory of its inputs and results.
pub struct BoundGroup<'a> {
    group: &'a VerifiedGroup,
    frame: GroupFrame,
    tiling: Tiling,
    inputs: Vec<Access>,
    kernels: Vec<Option<Kernel>>,
    /// The memory of each node's result that is written to memory: in `results`.
    kept: Vec<Option<SharedPtr<u8>>>,
    /// The results, in the order of the group's outputs.
    results: Vec<Uninit>,
    /// Keeps the memory of the inputs alive, unless a result has taken it over.
    _tensors: Vec<Option<Tensor>>,
}

/// The results of a group.
pub struct TileResults {
    /// In the order of the group's outputs.
    pub results: Vec<Tensor>,
    /// In the order of its epilogues.
    pub totals: Vec<Vec<f64>>,
}

impl<'a> BoundGroup<'a> {
    /// Binds a group to its inputs. Results reuse the memory of inputs without other references,
    /// where the group allows it.
    ///
    /// # Panics
    /// The inputs do not match the group.
    pub fn new(
        group: &'a VerifiedGroup,
        given: Vec<Operand<Tensor>>,
    ) -> Result<BoundGroup<'a>, EngineError> {
        assert!(given.len() == group.inputs.len(), "an input for each of the group's");
        let full: Vec<&Tensor> = given
            .iter()
            .zip(&group.inputs)
            .filter(|(_, input)| input.granularity == Granularity::PerElement)
            .filter_map(|(given, _)| given.tensor())
            .collect();
        let split = group.split.unwrap_or_else(|| natural_split(&group.shape, &full));
        let (rows, columns) = group.extent(split);
        let frame = GroupFrame { shape: group.shape, split, rows, columns };
        let mut inputs = Vec::with_capacity(given.len());
        for (given, input) in given.iter().zip(&group.inputs) {
            inputs.push(match given {
                Operand::Tensor(tensor) => {
                    assert!(tensor.dtype() == input.dtype, "an input of the group's dtype");
                    Access::Tensor(TensorAccess::new(tensor, &frame, input.granularity))
                }
                Operand::Scalar(scalar) => Access::Number(*scalar, input.dtype),
            });
        }
        let kernels = group.nodes.iter().map(|node| kernel(node, &inputs)).collect();
        let tensor = |given| match given {
            Operand::Tensor(tensor) => Some(tensor),
            Operand::Scalar(_) => None,
        };
        let mut tensors: Vec<Option<Tensor>> = given.into_iter().map(tensor).collect();
        let mut kept = vec![None; group.nodes.len()];
        let mut results = Vec::with_capacity(group.outputs.len());
        for output in &group.outputs {
            let mut result = match take_over(&mut tensors, output) {
                Some(result) => result,
                None => Uninit::new(output.meta)?,
            };
            kept[output.node as usize] = Some(SharedPtr::new(result.write()));
            results.push(result);
        }
        let tiling = Tiling::new(group, &frame);
        Ok(BoundGroup { group, frame, tiling, inputs, kernels, kept, results, _tensors: tensors })
    }

    /// Computes the group.
    pub fn run(mut self, threads: &mut Threads) -> TileResults {
        let totals = self.tiles(threads);
        // SAFETY: every node with a result has been computed in every tile. The tiles together are
        // the frame, and a result has an element for each element of the frame, or for each of its
        // rows.
        let finish = |result: Uninit| unsafe { result.finish() };
        TileResults { results: self.results.into_iter().map(finish).collect(), totals }
    }

    /// Computes all tiles; returns the totals of the epilogues.
    fn tiles(&mut self, threads: &mut Threads) -> Vec<Vec<f64>> {
        let BoundGroup { group, tiling, frame, .. } = &*self;
        let whole = Tile { row: 0, rows: frame.rows, column: 0, columns: frame.columns };
        let mut made: Vec<Vec<Folded>> = Vec::new();
        made.resize_with(tiling.pieces(), Vec::new);
        let piece = |index: usize, made: &mut [Vec<Folded>]| {
            let piece = tiling.piece(index);
            let part = |epilogue: &Epilogue| epilogue.folding.part(epilogue.kind, &piece, &whole);
            let mut parts: Vec<Box<dyn PartialFold>> = group.epilogues.iter().map(part).collect();
            // SAFETY: no two pieces have a tile in common, and each is computed once.
            unsafe { self.piece(piece, &mut parts) };
            made[0] = parts.into_iter().map(PartialFold::finish).collect();
        };
        if whole.len() * group.cost.max(1) < PARALLEL {
            made.chunks_mut(1).enumerate().for_each(|(index, made)| piece(index, made));
        } else {
            threads.for_each_part(&mut made, 1, piece);
        }
        let totals = |(index, epilogue): (usize, &Epilogue)| {
            let parts: Vec<Folded> =
                made.iter_mut().map(|made| std::mem::take(&mut made[index])).collect();
            epilogue.folding.totals(epilogue.kind, &parts, &whole)
        };
        group.epilogues.iter().enumerate().map(totals).collect()
    }
}

/// Returns a node's kernel, if it has one; that of a power depends on the exponent.
fn kernel(node: &GroupNode, inputs: &[Access]) -> Option<Kernel> {
    match node.kind {
        GroupNodeKind::Map(tile_kernel) => Some(tile_kernel.kernel),
        GroupNodeKind::Power(exponent) => {
            let Access::Number(number, _) = inputs[exponent as usize] else {
                unreachable!("the exponent is a scalar")
            };
            let kernel = power(number.as_f64(), node.dtype);
            let is_of_two = kernel.arity() == 2 && kernel.inputs() == [node.dtype; 3];
            assert!(is_of_two && kernel.result() == node.dtype);
            Some(kernel)
        }
        GroupNodeKind::Fold(_) | GroupNodeKind::BroadcastRows => None,
    }
}

/// Takes over the memory of an input that an output may replace and that has no other reference.
fn take_over(tensors: &mut [Option<Tensor>], output: &Output) -> Option<Uninit> {
    output.replaces.iter().find_map(|&input| {
        let may = |tensor: &mut Tensor| {
            tensor.meta() == output.meta && tensor.is_contiguous() && tensor.is_writable()
        };
        tensors[input as usize].take_if(may).map(Uninit::over)
    })
}

thread_local! {
    /// Scratch memory for tiles, in cache lines.
    static SCRATCH: RefCell<Vec<[u64; 8]>> = const { RefCell::new(Vec::new()) };
}

impl BoundGroup<'_> {
    /// Computes the tiles of a piece.
    ///
    /// # Safety
    /// No other thread computes the same tiles.
    unsafe fn piece(&self, piece: Tile, parts: &mut [Box<dyn PartialFold>]) {
        let BoundGroup { group, frame, tiling, kernels, .. } = self;
        // One block for each input and node, of elements of up to 8 bytes.
        let largest = tiling.largest();
        let block = largest.len().div_ceil(8);
        let blocks = group.inputs.len() + group.nodes.len();
        SCRATCH.with_borrow_mut(|scratch| {
            if scratch.len() < blocks * block {
                scratch.resize(blocks * block, [0; 8]);
            }
            let memory = scratch.as_mut_ptr();
            // SAFETY: there are that many blocks. The scratch memory does not move while it is
            // borrowed.
            let at = |index: usize| unsafe { memory.add(index * block).cast::<u8>() };
            let mut inputs: Vec<*const u8> = vec![std::ptr::null(); group.inputs.len()];
            // Inputs that are the same in every tile are loaded once, for the largest tile.
            for (index, access) in self.inputs.iter().enumerate() {
                let fixed = match access {
                    Access::Number(number, dtype) => {
                        // SAFETY: a block has space for the largest tile at 8 bytes an element, and
                        // starts at a multiple of 8 bytes.
                        unsafe { fill_number(*number, *dtype, at(index), largest.len()) };
                        true
                    }
                    Access::Tensor(tensor)
                        if tensor.is_constant()
                            || tensor.repeats() && tiling.is_by_whole_rows() =>
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
            for tile in tiling.tiles(piece) {
                for (index, access) in self.inputs.iter().enumerate() {
                    let Access::Tensor(tensor) = access else { continue };
                    if fixed[index] {
                        continue;
                    }
                    inputs[index] = tensor.direct(&tile, frame.columns).unwrap_or_else(|| {
                        // SAFETY: a block has space for a tile.
                        unsafe { tensor.fill(&tile, at(index)) };
                        at(index).cast_const()
                    });
                }
                for (index, node) in group.nodes.iter().enumerate() {
                    let size = node.dtype.size();
                    let offset = match node.granularity {
                        Granularity::PerElement => tile.row * frame.columns + tile.column,
                        Granularity::PerRow => tile.row,
                    };
                    nodes[index] = match self.kept[index] {
                        Some(data) => data.get().wrapping_add(offset * size),
                        None => at(group.inputs.len() + index),
                    };
                    let find = |from: NodeSource| match from {
                        NodeSource::Input(input) => inputs[input as usize],
                        NodeSource::Node(node) => nodes[node as usize].cast_const(),
                    };
                    let n = if node.granularity == Granularity::PerElement {
                        tile.len()
                    } else {
                        tile.rows
                    };
                    let from = node.inputs.map(find);
                    // SAFETY: the group is verified. So a node reads an input's part of the tile,
                    // or what an earlier node wrote of it, in the right dtype: n elements, or the
                    // tile's elements for a fold, or one for each row for a broadcast. Its own
                    // block, or its part of a result, has space for what it writes; no other thread
                    // accesses this tile. A result in an input's memory is written where the input
                    // is read, or after it has been read; the input is contiguous and has the
                    // frame's elements, so that other tiles read other parts.
                    unsafe {
                        match node.kind {
                            GroupNodeKind::Map(_) | GroupNodeKind::Power(_) => {
                                let kernel = kernels[index].expect("a kernel exists for every map");
                                kernel.run(&from, nodes[index], n);
                            }
                            GroupNodeKind::Fold(folding) => {
                                fold_rows(&folding, &tile, from[0], nodes[index])
                            }
                            GroupNodeKind::BroadcastRows => {
                                broadcast_rows(&tile, from[0], nodes[index], size)
                            }
                        }
                    }
                }
                for (epilogue, part) in group.epilogues.iter().zip(parts.iter_mut()) {
                    let from = match epilogue.from {
                        NodeSource::Input(input) => inputs[input as usize],
                        NodeSource::Node(node) => nodes[node as usize].cast_const(),
                    };
                    // SAFETY: as above, an epilogue reads the tile's elements in the folding's
                    // dtype.
                    unsafe { part.push(&tile, from) };
                }
            }
        });
    }
}

/// # Safety
/// The tile's elements can be read at `from` in the folding's dtype, and one for each row can be
/// written at `to`.
unsafe fn fold_rows(folding: &Folding, tile: &Tile, from: *const u8, to: *mut u8) {
    let size = folding.dtype().size();
    for row in 0..tile.rows {
        // SAFETY: the caller's promise, for one row.
        unsafe {
            let total = folding.run(from.add(row * tile.columns * size), tile.columns);
            folding.finish(total, tile.columns, to.add(row * size));
        }
    }
}

/// # Safety
/// An element of `size` bytes for each row can be read at `from`, and the tile's elements can be
/// written at `to`.
unsafe fn broadcast_rows(tile: &Tile, from: *const u8, to: *mut u8, size: usize) {
    // SAFETY: the caller's promise.
    with_bits!(size, T => unsafe {
        for row in 0..tile.rows {
            let value = *from.cast::<T>().add(row);
            fill_run(to.cast::<T>().add(row * tile.columns), value, tile.columns);
        }
    });
}
