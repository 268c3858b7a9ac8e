use super::*;
use gt_ir::stored::OnDisk;
use gt_ir::{DType, Shape, TensorData};

const LINE: SourceId = SourceId(3);

fn meta() -> Meta {
    Meta::new(DType::F32, Shape::new(&[10]).unwrap())
}

#[test]
fn what_is_held_is_counted() {
    let meta = meta();
    let (mut store, mut held) = (Store::default(), HeldTotals::default());
    store.keep(&mut held, TensorId(1), "a", meta, LINE);
    store.keep(&mut held, TensorId(1), "b", meta, LINE);
    store.keep(&mut held, TensorId(2), "c", meta, LINE);
    assert_eq!((held.tensors, held.bytes, held.bytes_peak), (2, 80, 80));
    assert_eq!(store.take(TensorId(2)), Some(("c", meta)));
    assert_eq!(held.bytes, 80);
    store.release(&mut held, TensorId(2), &meta);
    store.wait_for(&mut held, TensorId(3), 8);
    assert!(store.is_pending(TensorId(3)) && store.take(TensorId(3)).is_none());
    assert_eq!(held.bytes, 48, "room is kept for what is pending");
    store.free(&mut held, TensorId(3));
    assert!(!store.has_absent());
    store.clear(&mut held);
    assert_eq!((held.tensors, held.bytes, store.bytes()), (0, 0, 0));
}

#[test]
fn what_is_away_counts_where_it_is() {
    let meta = meta();
    let (mut store, mut held) = (Store::default(), HeldTotals::default());
    store.keep(&mut held, TensorId(1), "a", meta, LINE);
    let data = TensorData::new(meta.dtype, meta.shape, vec![0; 40].into()).unwrap();
    let away = |place| Away { meta, line: LINE, place };
    store.put_away(&mut held, TensorId(1), away(SpillPlace::Writing { number: 1, data }));
    assert_eq!((held.bytes, held.spilled_bytes, store.spilled()), (40, 0, 0));
    let file = OnDisk { checksum: 5, mapped: None };
    store.put_away(&mut held, TensorId(1), away(SpillPlace::Disk { number: 1, file }));
    assert_eq!((held.bytes, held.spilled_bytes, store.bytes()), (0, 40, 0));
    assert_eq!((held.tensors, store.spilled()), (1, 40));
    assert!(store.has_absent() && store.away(TensorId(1)).is_some());
    store.free(&mut held, TensorId(1));
    assert_eq!((held.tensors, held.spilled_bytes, store.spilled()), (0, 0, 0));
    assert_eq!(held.discarded, [1]);
}
