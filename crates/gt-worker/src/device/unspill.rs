//! Unspills tensors when they are used.

use gt_ir::message::Failure;
use gt_ir::{Content, TensorData, TensorId};

use super::Device;
use crate::engine::Engine;
use crate::lane::Lane;
use crate::store::{Away, SpillPlace};
use crate::work::{FileJob, Out};

impl<E: Engine> Device<E> {
    /// Unspills a tensor; returns whether that takes time.
    pub fn bring_back(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        tensor: TensorId,
        out: &mut Vec<Out>,
    ) -> bool {
        let Some(away) = lane.store.take_away(&mut self.held, tensor) else { return false };
        lane.memory.use_grant(&mut self.held, away.elsewhere());
        match away.place {
            SpillPlace::Host(data) | SpillPlace::Writing { data, .. } => {
                self.put_back_data(lane, tensor, data, away.line);
                false
            }
            SpillPlace::Disk { number, file } => {
                let (id, meta, checksum) = (lane.id, away.meta, file.checksum);
                out.push(Out::Files(FileJob::Restore { lane: id, tensor, number, meta, checksum }));
                let (line, place) = (away.line, SpillPlace::Reading { number, file });
                lane.store.put_away(&mut self.held, tensor, Away { meta, line, place });
                true
            }
            SpillPlace::Reading { .. } => {
                lane.store.put_away(&mut self.held, tensor, away);
                true
            }
        }
    }

    /// Handles a tensor that was read from disk; returns whether it was a spilled one.
    pub fn take_restored(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        tensor: TensorId,
        result: &Result<Content, Failure>,
    ) -> bool {
        let is_read = |away: &Away| matches!(away.place, SpillPlace::Reading { .. });
        if !lane.store.away(tensor).is_some_and(is_read) {
            return false;
        }
        let Some(away) = lane.store.take_away(&mut self.held, tensor) else { return false };
        if let SpillPlace::Reading { number, .. } = away.place {
            self.held.discarded.push(number);
        }
        match result {
            Ok(Content::Data(data)) => {
                self.put_back_data(lane, tensor, data.clone(), away.line);
            }
            Ok(_) => {}
            Err(failure) => {
                let reason =
                    format!("its values were written to disk, and are lost: {}", failure.reason);
                let name = self.stats.name.as_str();
                let failure = Failure::new("fetch", reason, name, away.line);
                self.fail(lane, tensor, std::sync::Arc::new(failure));
            }
        }
        true
    }

    /// Creates a spilled tensor from its values.
    pub fn put_back_data(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        tensor: TensorId,
        data: TensorData,
        line: gt_ir::SourceId,
    ) {
        let meta = gt_ir::Meta::new(data.dtype, data.shape);
        match self.guarded(|engine| engine.create(data)) {
            Ok(value) => {
                lane.store.keep(&mut self.held, tensor, value, meta, line);
            }
            Err(error) => {
                let failure = self.plain_failure("fetch", error.to_string());
                self.fail(lane, tensor, std::sync::Arc::new(failure));
            }
        }
    }
}
