//! A block of a tensor, from the parts that slots published.

use bytes::Bytes;
use gt_ir::runs::common_runs;
use gt_ir::sharding::Block;
use gt_ir::{Meta, TensorData};

/// Returns a block of a tensor, from parts that together cover it.
pub(crate) fn assemble(meta: Meta, need: &Block, parts: &[(Block, TensorData)]) -> TensorData {
    if let [(block, data)] = parts
        && block == need
    {
        return data.clone();
    }
    let mut values = vec![0; meta.bytes()];
    for (block, data) in parts {
        let Some(runs) = common_runs(block, need, meta.dtype.size()) else { continue };
        for (from, to) in runs.places {
            values[to..to + runs.bytes].copy_from_slice(&data.bytes[from..from + runs.bytes]);
        }
    }
    TensorData { dtype: meta.dtype, shape: meta.shape, bytes: Bytes::from(values) }
}

#[cfg(test)]
mod tests {
    use gt_ir::{DType, Shape};

    use super::*;

    /// Returns the values of a block of a tensor whose elements are their own numbers.
    fn block_of(whole: Shape, block: &Block) -> TensorData {
        let mut values = Vec::new();
        for number in 0..block.shape.numel() {
            let (mut rest, mut at, mut stride) = (number, 0, 1);
            for axis in (0..whole.rank()).rev() {
                at += (block.starts[axis] + rest % block.shape[axis]) * stride;
                rest /= block.shape[axis];
                stride *= whole[axis];
            }
            values.extend((at as i64).to_le_bytes());
        }
        TensorData { dtype: DType::I64, shape: block.shape, bytes: values.into() }
    }

    fn block(starts: &[usize], shape: &[usize]) -> Block {
        let mut block = Block::whole(Shape::new(shape).unwrap());
        block.starts[..starts.len()].copy_from_slice(starts);
        block
    }

    #[test]
    fn any_block_is_assembled_from_any_parts() {
        let whole = Shape::new(&[4, 6, 5]).unwrap();
        let halves = |axis: usize, at: usize| {
            let (mut first, mut second) = (Block::whole(whole), Block::whole(whole));
            first.shape = whole.with(axis, at);
            second.starts[axis] = at;
            second.shape = whole.with(axis, whole[axis] - at);
            [first, second]
        };
        let needs = [
            Block::whole(whole),
            block(&[1, 0, 0], &[2, 6, 5]),
            block(&[0, 2, 0], &[4, 3, 5]),
            block(&[3, 1, 2], &[1, 4, 3]),
            block(&[0, 0, 4], &[4, 6, 1]),
        ];
        for (axis, at) in [(0, 1), (0, 3), (1, 2), (1, 5), (2, 1), (2, 4)] {
            let parts = halves(axis, at).map(|part| (part, block_of(whole, &part)));
            for need in needs {
                let meta = Meta::new(DType::I64, need.shape);
                let made = assemble(meta, &need, &parts);
                assert_eq!(made, block_of(whole, &need), "{need:?} of parts of axis {axis}");
            }
        }
        let (scalar, none) = (Shape::new(&[]).unwrap(), Shape::new(&[0, 3]).unwrap());
        for shape in [scalar, none] {
            let (all, meta) = (Block::whole(shape), Meta::new(DType::I64, shape));
            let data = block_of(shape, &all);
            let twice = [(all, data.clone()), (all, data.clone())];
            assert_eq!(assemble(meta, &all, &twice), data);
        }
    }
}
