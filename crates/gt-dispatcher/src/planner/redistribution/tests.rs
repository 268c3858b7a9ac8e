use std::sync::Arc;

use super::*;
use gt_ir::layout::Mesh;
use gt_ir::redistribute::Redistribution;
use gt_ir::{DType, Shape, SlotId};
use smallvec::{SmallVec, smallvec};

fn mesh(number: u32, slots: std::ops::Range<u32>) -> Arc<Mesh> {
    let dims = smallvec![slots.len()];
    Arc::new(Mesh { number, dims, slots: slots.map(SlotId).collect() })
}

fn sources(from: &Layout, to: &Layout, whole: Shape, rank: usize) -> Vec<(usize, Block)> {
    Redistribution { from, to, whole }.sources(rank, to.block(whole, rank))
}

fn layout(mesh: &Arc<Mesh>, placement: Placement) -> Layout {
    Layout { mesh: Arc::clone(mesh), placements: smallvec![placement] }
}

/// With T the size of the unsharded tensor: (n - 1) T for all-gather, reduce-scatter and
/// broadcast; twice that for all-reduce; (n - 1) / n T for all-to-all.
#[test]
fn bytes_are_the_known_optimum() {
    let meta = Meta::new(DType::F32, Shape::new(&[64, 128]).unwrap());
    let (n, whole) = (4, meta.bytes() as u64);
    let four = mesh(1, 0..4);
    let home = layout(&mesh(2, 0..1), Placement::Replicate);
    let copies = layout(&four, Placement::Replicate);
    let rows = layout(&four, Placement::balanced(0, 64, 4));
    let columns = layout(&four, Placement::balanced(1, 128, 4));
    let sums = layout(&four, Placement::Partial(Reduction::Sum));
    let check = |from: &Layout, to: &Layout, bytes| {
        assert_eq!(cost(from, to, meta), Some(bytes), "{from} to {to}");
    };
    check(&rows, &copies, (n - 1) * whole);
    check(&rows, &columns, (n - 1) * whole / n);
    check(&copies, &rows, 0);
    check(&copies, &sums, 0);
    check(&sums, &rows, (n - 1) * whole);
    check(&sums, &copies, 2 * (n - 1) * whole);
    check(&sums, &home, (n - 1) * whole);
    check(&home, &copies, (n - 1) * whole);
    check(&home, &rows, (n - 1) * whole / n);
    check(&rows, &home, (n - 1) * whole / n);
    let others = layout(&mesh(3, 4..6), Placement::balanced(0, 64, 2));
    check(&rows, &others, whole);
}

/// Summands of one rank's row make up its block, never those of another row.
#[test]
fn partial_values_are_combined_within_their_mesh_row() {
    let dims: SmallVec<[usize; 2]> = smallvec![2, 3];
    let grid = Arc::new(Mesh { number: 1, dims, slots: (0..6).map(SlotId).collect() });
    let shape = Shape::new(&[5, 7]).unwrap();
    for partial in 0..2 {
        let along = |other: Placement| {
            let mut placements: SmallVec<[Placement; 2]> = smallvec![other.clone(), other];
            placements[partial] = Placement::Partial(Reduction::Sum);
            Layout { mesh: Arc::clone(&grid), placements }
        };
        let length = grid.dims[1 - partial];
        let kinds = [
            Placement::Replicate,
            Placement::balanced(0, 5, length),
            Placement::balanced(1, 7, length),
        ];
        for (from, to) in kinds.iter().flat_map(|a| kinds.iter().map(move |b| (a, b))) {
            let (from, to) = (along(from.clone()), along(to.clone()));
            for rank in 0..6 {
                let found = sources(&from, &to, shape, rank);
                let total: usize = found.iter().map(|(_, block)| block.shape.numel()).sum();
                assert_eq!(total, to.block(shape, rank).shape.numel(), "{from} to {to}");
                for (source, _) in found {
                    let row = |rank| grid.coordinate(rank, partial);
                    assert_eq!(row(source), row(rank), "{from} to {to}");
                }
            }
        }
    }
}

#[test]
fn every_element_is_received_once() {
    let dims: SmallVec<[usize; 2]> = smallvec![2, 3];
    let grid = Arc::new(Mesh { number: 1, dims, slots: (0..6).map(SlotId).collect() });
    let shape = Shape::new(&[5, 7]).unwrap();
    let placements =
        [Placement::Replicate, Placement::balanced(0, 5, 2), Placement::balanced(1, 7, 2)];
    let other = [Placement::Replicate, Placement::balanced(0, 5, 3), Placement::balanced(1, 7, 3)];
    let layouts: Vec<Layout> = placements
        .iter()
        .flat_map(|a| other.iter().map(move |b| (a.clone(), b.clone())))
        .filter(|(a, b)| a.shard_axis().is_none() || a.shard_axis() != b.shard_axis())
        .map(|(a, b)| Layout { mesh: Arc::clone(&grid), placements: smallvec![a, b] })
        .collect();
    for from in &layouts {
        for to in &layouts {
            for rank in 0..6 {
                let need = to.block(shape, rank);
                let total: usize = sources(from, to, shape, rank)
                    .iter()
                    .map(|(source, block)| {
                        assert_eq!(from.block(shape, *source).intersect(block), Some(*block));
                        block.shape.numel()
                    })
                    .sum();
                assert_eq!(total, need.shape.numel(), "{from} to {to}");
            }
        }
    }
}
