//! Values in place of data that an anonymous recording lacks.

use bytes::Bytes;
use gt_ir::philox::RandomStream;
use gt_ir::{DType, Meta, Scalar, TensorData, TensorId};

/// The seed of the values.
const SEED: u64 = 0x6774;

/// Returns values of this shape and dtype: real numbers from 0 to 1, and the integers 0 and 1, which
/// are indices of most axes. The same tensor has the same values in each replay.
pub fn fill(tensor: TensorId, meta: Meta) -> TensorData {
    let Meta { dtype, shape } = meta;
    let mut bytes = Vec::with_capacity(meta.bytes());
    let parts = if dtype.is_complex() { 2 } else { 1 };
    let random = RandomStream::new(SEED, tensor.0);
    for index in 0..(shape.numel() * parts) as u64 {
        let value = match dtype.to_real() {
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => {
                Scalar::Float(random.uniform_f64(index))
            }
            _ => Scalar::Int(random.integer(index, 0, 2)),
        };
        TensorData::encode(dtype.to_real(), value, &mut bytes);
    }
    TensorData { dtype, shape, bytes: Bytes::from(bytes) }
}

#[cfg(test)]
mod tests {
    use gt_ir::Shape;

    use super::*;

    #[test]
    fn values_fit_their_dtype() {
        for dtype in DType::ALL {
            let meta = Meta::new(dtype, Shape::new(&[3, 5]).unwrap());
            let data = fill(TensorId(7), meta);
            assert_eq!((data.bytes.len(), &data), (meta.bytes(), &fill(TensorId(7), meta)));
            let values: Vec<f64> = (0..15).map(|index| data.element(index).as_f64()).collect();
            assert!(values.iter().all(|value| (0.0..=1.0).contains(value)), "{dtype}: {values:?}");
            assert!(values.iter().any(|value| *value != values[0]), "{dtype}");
        }
    }
}
