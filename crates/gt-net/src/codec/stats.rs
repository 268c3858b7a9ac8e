//! A worker's statistics as bytes.

use std::time::Duration;

use gt_ir::message::{CompilationStats, Sequence, WorkerStats};

use super::Result;
use super::decode::Decoder;
use super::encode::Encoder;

impl Encoder {
    pub(super) fn stats(&mut self, stats: &WorkerStats) {
        self.head.text(&stats.name);
        self.head.text(&stats.engine);
        for number in [
            stats.operations_total,
            stats.operations_failed,
            stats.operations_compiled,
            stats.tensors,
            stats.bytes,
            stats.bytes_peak,
            stats.hot_instructions,
            stats.unique_sequences,
            stats.hot_sequences,
        ] {
            self.head.u64(number);
        }
        self.head.u32(stats.top_sequences.len() as u32);
        for sequence in &stats.top_sequences {
            self.head.text(&sequence.operations);
            self.head.u64(sequence.length);
            self.head.u64(sequence.repetitions);
            self.head.u64(sequence.time.as_nanos() as u64);
        }
        let compilation = &stats.compilation;
        for number in [
            compilation.cache_size,
            compilation.cache_hits,
            compilation.cache_misses,
            compilation.checked,
            compilation.failures,
            compilation.compile_time.as_nanos() as u64,
            compilation.time_saved.as_nanos() as u64,
        ] {
            self.head.u64(number);
        }
    }
}

impl Decoder<'_> {
    pub(super) fn stats(&mut self) -> Result<WorkerStats> {
        Ok(WorkerStats {
            name: self.head.text()?,
            engine: self.head.text()?,
            operations_total: self.head.u64()?,
            operations_failed: self.head.u64()?,
            operations_compiled: self.head.u64()?,
            tensors: self.head.u64()?,
            bytes: self.head.u64()?,
            bytes_peak: self.head.u64()?,
            hot_instructions: self.head.u64()?,
            unique_sequences: self.head.u64()?,
            hot_sequences: self.head.u64()?,
            top_sequences: {
                let count = self.head.u32()? as usize;
                let count = self.head.count(count, 28)?;
                (0..count).map(|_| self.sequence()).collect::<Result<_>>()?
            },
            compilation: CompilationStats {
                cache_size: self.head.u64()?,
                cache_hits: self.head.u64()?,
                cache_misses: self.head.u64()?,
                checked: self.head.u64()?,
                failures: self.head.u64()?,
                compile_time: self.nanoseconds()?,
                time_saved: self.nanoseconds()?,
            },
        })
    }

    fn sequence(&mut self) -> Result<Sequence> {
        Ok(Sequence {
            operations: self.head.text()?,
            length: self.head.u64()?,
            repetitions: self.head.u64()?,
            time: self.nanoseconds()?,
        })
    }

    fn nanoseconds(&mut self) -> Result<Duration> {
        Ok(Duration::from_nanos(self.head.u64()?))
    }
}
