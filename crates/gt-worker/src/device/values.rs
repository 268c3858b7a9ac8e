//! Creates tensors from values, and reads their values.

use std::sync::Arc;

use gt_ir::message::Failure;
use gt_ir::stored::{SavePart, SavedBlock};
use gt_ir::{Content, Create, SourceId, TensorId};

use super::Device;
use crate::engine::{Engine, EngineError};
use crate::lane::Lane;
use crate::store::{SpillPlace, Stored};
use crate::work::{FileJob, Out, ToSave};

impl<E: Engine> Device<E> {
    /// Creates a tensor from data; from values in files once the driver has read them.
    pub fn create(&mut self, lane: &mut Lane<E::Tensor>, create: &Create, out: &mut Vec<Out>) {
        let tensor = create.output;
        let bytes = create.content.meta().bytes() as u64;
        if lane.memory.failure_if_short.is_some() && !lane.has_room(bytes, 1) {
            let failure = self.no_room_for(lane, "create".into(), bytes, create.source);
            return self.fail(lane, tensor, failure);
        }
        match create.content.clone() {
            Content::Stored(values) => {
                lane.store.wait_for(&mut self.held, tensor, bytes);
                out.push(Out::Files(FileJob::Read { lane: lane.id, tensor, values }));
            }
            content => self.make(lane, tensor, content, create.source),
        }
    }

    /// The driver has read a tensor's values from files. It may have been freed meanwhile.
    pub fn load(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        tensor: TensorId,
        result: Result<Content, Failure>,
    ) {
        if self.take_restored(lane, tensor, &result) || !lane.store.is_pending(tensor) {
            return;
        }
        match result {
            Ok(content) => self.make(lane, tensor, content, SourceId::default()),
            Err(failure) => {
                let failure = Failure { worker: self.stats.name.clone(), ..failure };
                self.fail(lane, tensor, Arc::new(failure));
            }
        }
    }

    /// Creates a tensor from data in memory.
    pub fn make(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        id: TensorId,
        content: Content,
        line: SourceId,
    ) {
        let meta = content.meta();
        let result = match content {
            Content::Data(data) => self.guarded(|engine| engine.create(data)),
            Content::Shared { .. } | Content::Stored(_) | Content::Published(_) => {
                Err(EngineError::Other("the values were not read by the driver".into()))
            }
        };
        match result {
            Ok(tensor) => self.keep(lane, (id, tensor, meta, line), std::iter::empty()),
            Err(error) => {
                let largest = self.largest_if_full(lane, &error);
                let failure = self.plain_failure("create", error.to_string());
                self.fail(lane, id, Arc::new(Failure { line, largest, ..failure }));
            }
        }
    }

    /// Returns the values of blocks to be written.
    ///
    /// # Errors
    /// The failure of one of them.
    pub fn values_to_save(
        &mut self,
        lane: &Lane<E::Tensor>,
        part: &SavePart,
    ) -> Result<Vec<ToSave>, Failure> {
        let value = |block: &SavedBlock| {
            if let Some(away) = lane.store.away(block.tensor)
                && let SpillPlace::Disk { number, file } = &away.place
            {
                let (number, checksum) = (*number, file.checksum);
                return Ok(ToSave::Spilled { number, meta: away.meta, checksum });
            }
            match self.fetch(lane, block.tensor)? {
                Content::Data(data) => Ok(ToSave::Data(data)),
                _ => Err(self.plain_failure("save", "an engine gave no values".into())),
            }
        };
        part.blocks.iter().map(value).collect()
    }

    /// Returns a tensor's values, if they are in the device's memory and can be read.
    pub fn read(&mut self, lane: &Lane<E::Tensor>, id: TensorId) -> Option<gt_ir::TensorData> {
        match lane.store.get(id) {
            Some(Stored::Ready { tensor, .. }) => self.guarded(|engine| engine.read(tensor)).ok(),
            _ => None,
        }
    }

    /// Reads a tensor's values.
    pub fn fetch(&mut self, lane: &Lane<E::Tensor>, id: TensorId) -> Result<Content, Failure> {
        match lane.store.get(id) {
            Some(Stored::Ready { tensor, .. }) => {
                let result = self.guarded(|engine| engine.read(tensor));
                let failed = |error: EngineError| self.plain_failure("fetch", error.to_string());
                result.map(Content::Data).map_err(failed)
            }
            Some(Stored::Failed(failure)) => Err((**failure).clone()),
            Some(Stored::Away(away)) => {
                if let SpillPlace::Host(data) | SpillPlace::Writing { data, .. } = &away.place {
                    return Ok(Content::Data(data.clone()));
                }
                let failure = self.no_room_for(lane, "fetch".into(), away.elsewhere(), away.line);
                Err((*failure).clone())
            }
            Some(Stored::Pending(_)) => unreachable!("it has waited for the tensor"),
            None => {
                let reason = format!("tensor {id} does not exist on this worker");
                Err(self.plain_failure("fetch", reason))
            }
        }
    }
}
