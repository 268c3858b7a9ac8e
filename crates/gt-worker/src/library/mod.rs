//! The library: published tensors on this worker, which lanes read without copies.
//!
//! Their values are in the snapshot store. The library has the engine's tensors of them, each made
//! once, and the lanes that wait for values from other workers.
//!
//! - [`mod@assemble`]: a block of a tensor from the parts that slots published.

mod assemble;

use gt_ir::sharding::Block;
use gt_ir::snapshot::Owner;
use gt_ir::stored::PublishedValues;
use gt_ir::{LaneId, SessionId, SourceId, TensorId};
use rustc_hash::{FxHashMap, FxHashSet};

pub(crate) use assemble::assemble;

/// The engine's tensors of publications, and who waits for others.
pub(crate) struct PublishedTensors<T> {
    tensors: FxHashMap<(SessionId, TensorId), Vec<LibraryBlock<T>>>,
    waiting: Vec<WaitingReader>,
    /// The values that were requested from other workers.
    requested: FxHashSet<Owner>,
}

/// A block of a published tensor.
struct LibraryBlock<T> {
    block: Block,
    tensor: T,
    charge: PublishedCharge,
}

/// How the memory of a published tensor is counted, besides that of the snapshot store.
#[derive(Clone, Copy)]
pub(crate) enum PublishedCharge {
    /// As these bytes.
    Bytes(u64),
    /// As memory of this number, which it shares with the lane that published it.
    Shared(u64),
}

/// A tensor of a lane that waits for published values.
pub(crate) struct WaitingReader {
    pub lane: LaneId,
    pub tensor: TensorId,
    pub values: Box<PublishedValues>,
    pub line: SourceId,
}

impl WaitingReader {
    /// Returns whether a slot of a publication has a part of the values.
    fn needs(&self, owner: Owner) -> bool {
        let PublishedValues { publication, parts, .. } = &*self.values;
        *publication == owner.session && parts.iter().any(|part| part.slot == owner.slot)
    }
}

impl<T> Default for PublishedTensors<T> {
    fn default() -> PublishedTensors<T> {
        PublishedTensors {
            tensors: FxHashMap::default(),
            waiting: Vec::new(),
            requested: FxHashSet::default(),
        }
    }
}

impl<T> PublishedTensors<T> {
    /// Returns whether no tensor is here, and nothing waits.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty() && self.waiting.is_empty()
    }

    /// Returns the tensor of a block.
    pub fn get(&self, values: &PublishedValues) -> Option<&T> {
        let blocks = self.tensors.get(&(values.publication, values.index))?;
        blocks.iter().find(|of| of.block == values.need).map(|of| &of.tensor)
    }

    /// Returns whether the tensor of a block is here.
    pub fn has_block(&self, name: (SessionId, TensorId), block: &Block) -> bool {
        self.tensors.get(&name).is_some_and(|blocks| blocks.iter().any(|of| of.block == *block))
    }

    /// Adds the tensor of a block that is not here.
    pub fn add(
        &mut self,
        name: (SessionId, TensorId),
        block: Block,
        tensor: T,
        charge: PublishedCharge,
    ) {
        self.tensors.entry(name).or_default().push(LibraryBlock { block, tensor, charge });
    }

    /// Returns whether the engine has tensors of a publication.
    pub fn has(&self, publication: SessionId) -> bool {
        self.tensors.keys().any(|(of, _)| *of == publication)
    }

    /// Notes that values are requested. Returns whether they were not requested before.
    pub fn request(&mut self, owner: Owner) -> bool {
        self.requested.insert(owner)
    }

    /// Has a reader wait.
    pub fn wait(&mut self, reader: WaitingReader) {
        self.waiting.push(reader);
    }

    /// Takes the readers that wait for the values of a slot, whose request is answered.
    pub fn take_waiting(&mut self, owner: Owner) -> Vec<WaitingReader> {
        self.requested.remove(&owner);
        self.waiting.extract_if(.., |reader| reader.needs(owner)).collect()
    }

    /// Takes the readers that wait for a publication, which has ended.
    pub fn end_waiting(&mut self, publication: SessionId) -> Vec<WaitingReader> {
        self.requested.retain(|owner| owner.session != publication);
        self.waiting.extract_if(.., |reader| reader.values.publication == publication).collect()
    }

    /// Forgets those that wait: their lanes are gone.
    pub fn forget_waiting(&mut self) {
        self.waiting.clear();
        self.requested.clear();
    }

    /// Drops the tensors of a publication; returns how they were counted.
    pub fn end(&mut self, publication: SessionId) -> Vec<PublishedCharge> {
        let mut charges = Vec::new();
        self.tensors.retain(|(of, _), blocks| {
            let is_ended = *of == publication;
            if is_ended {
                charges.extend(blocks.iter().map(|of| of.charge));
            }
            !is_ended
        });
        charges
    }

    /// Returns the publications of its tensors.
    pub fn publications(&self) -> Vec<SessionId> {
        let mut all: Vec<SessionId> = self.tensors.keys().map(|(of, _)| *of).collect();
        all.extend(self.waiting.iter().map(|reader| reader.values.publication));
        all.sort_unstable();
        all.dedup();
        all
    }
}
