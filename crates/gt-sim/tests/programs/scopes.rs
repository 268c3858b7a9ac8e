//! The signals' scopes that steps run in.

use gt_client::config::{SignalConfig, registry};
use gt_ir::signal::{MeshAxis, Shard};

use crate::programs::chance::Chance;

/// The number of scopes, with that of none.
pub const SCOPES: usize = 9;

/// In every third program all scopes share one mesh of two axes, and there are few lengths, so that
/// tensors that are sharded over one axis and partial over the other meet more often.
pub fn is_regular(seed: u64) -> bool {
    seed.is_multiple_of(3)
}

/// Returns the placements of a program's scopes on `workers` workers.
pub fn register_scopes(seed: u64, workers: usize) {
    let mut chance = Chance::new(seed ^ 0x5c09e);
    let shared = workers >= 4 && is_regular(seed);
    for number in 1..SCOPES {
        let count = 1 + chance.below(workers);
        let mut all: Vec<u32> = (0..workers as u32).collect();
        let chosen: Vec<u32> = (0..count).map(|_| all.remove(chance.below(all.len()))).collect();
        let axis = |chance: &mut Chance| (chance.below(4) > 0).then(|| chance.below(4) as i64 - 1);
        let shard = if shared {
            let second = (workers / 2) as u32;
            let mesh = vec![
                MeshAxis { name: "a".into(), length: 2, axis: axis(&mut chance) },
                MeshAxis { name: "b".into(), length: second, axis: axis(&mut chance) },
            ];
            Shard { workers: Some((0..2 * second).collect()), mesh }
        } else if count >= 4 && chance.flag() {
            let (first, second) = (axis(&mut chance), axis(&mut chance));
            let mesh = vec![
                MeshAxis { name: "a".into(), length: 2, axis: first },
                MeshAxis { name: "b".into(), length: (count / 2) as u32, axis: second },
            ];
            Shard { workers: Some(chosen), mesh }
        } else {
            Shard::row((chance.below(3) > 0).then_some(chosen), axis(&mut chance))
        };
        let backward = chance.flag().then(|| scope_name(seed, 1 + chance.below(SCOPES - 1)));
        let config = SignalConfig { shard: Some(shard), backward, compile: false };
        registry::register(&scope_name(seed, number), config);
    }
}

pub fn scope_name(seed: u64, number: usize) -> String {
    format!("program {seed} scope {number}")
}
