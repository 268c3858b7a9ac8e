//! Streams of hostile clients, by seeds: see [`gt_sim::hostile`], which `fuzz/` calls, too.

use gt_ir::philox::RandomStream;
use gt_sim::hostile::attack;

/// The bytes of a seed.
fn bytes(seed: u64) -> Vec<u8> {
    let stream = RandomStream::new(seed, 0);
    (0..96).map(|index| stream.integer(index, 0, 256) as u8).collect()
}

#[test]
fn no_client_disturbs_another() {
    let seeds = match std::env::var("GT_HOSTILE_SEED") {
        Ok(seed) => seed.parse().map(|seed: u64| seed..seed + 1).expect("a number"),
        Err(_) => 0..250,
    };
    for seed in seeds {
        let result = std::panic::catch_unwind(|| attack(&bytes(seed)));
        assert!(result.is_ok(), "GT_HOSTILE_SEED={seed} replays it");
    }
}

/// Without any bytes the stream is honest but for its first commands.
#[test]
fn few_bytes_are_an_attack_as_well() {
    for byte in 0..=u8::MAX {
        attack(&[byte; 3]);
    }
}
