//! Values that workers read from files and write to them, and those that they share.

use crate::data::Content;
use crate::ids::{SessionId, SlotId};
use crate::instruction::{RequestId, SourceId, TensorId};
use crate::operation::Meta;
use crate::record;
use crate::sharding::Block;

/// A part of a tensor, and the position of its values in a file.
#[derive(Clone, PartialEq, Debug)]
pub struct StoredPart {
    /// The file's path, as the client names it.
    pub file: String,
    /// The offset of the part's first value in the file, in bytes.
    pub offset: u64,
    /// The block of the tensor that the values are.
    pub block: Block,
}

record!(struct StoredPart { file, offset, block });

/// A tensor's values, in files that workers can read.
#[derive(Clone, PartialEq, Debug)]
pub struct StoredValues {
    /// Shape and dtype of the needed block.
    pub meta: Meta,
    /// The block of the tensor that is needed.
    pub need: Block,
    /// Parts that together cover the needed block.
    pub parts: Vec<StoredPart>,
}

record!(struct StoredValues { meta, need, parts });

/// A tensor that a worker has spilled into a file.
#[derive(Clone, PartialEq, Debug)]
pub struct OnDisk {
    pub checksum: u32,
    /// The values as they lie in the file, which is mapped into memory; none if it cannot be.
    pub mapped: Option<Content>,
}

record!(struct OnDisk { checksum, mapped });

/// A client's request to write tensors into files of a folder.
#[derive(Clone, PartialEq, Debug)]
pub struct Save {
    pub request: RequestId,
    pub folder: String,
    pub tensors: Vec<TensorId>,
    pub line: SourceId,
}

record!(struct Save { request, folder, tensors, line });

/// The blocks that a slot writes into one file.
#[derive(Clone, PartialEq, Debug)]
pub struct SavePart {
    pub request: RequestId,
    pub folder: String,
    /// The file's name in the folder.
    pub file: String,
    pub blocks: Vec<SavedBlock>,
    pub line: SourceId,
}

record!(struct SavePart { request, folder, file, blocks, line });

/// A block that a slot writes.
#[derive(Clone, PartialEq, Debug)]
pub struct SavedBlock {
    /// The slot's tensor.
    pub tensor: TensorId,
    /// The index of its tensor in the request.
    pub index: u32,
    pub block: Block,
}

record!(struct SavedBlock { tensor, index, block });

/// A block that was written.
#[derive(Clone, PartialEq, Debug)]
pub struct Written {
    /// The index of its tensor in the request.
    pub index: u32,
    pub file: String,
    pub offset: u64,
    pub block: Block,
    pub bytes: u64,
    /// The CRC-32 of its bytes.
    pub checksum: u32,
}

record!(struct Written { index, file, offset, block, bytes, checksum });

/// The values of a block of a published tensor.
#[derive(Clone, PartialEq, Debug)]
pub struct PublishedValues {
    pub publication: SessionId,
    /// The tensor's number in the publication.
    pub index: TensorId,
    /// Shape and dtype of the block.
    pub meta: Meta,
    /// The block of the tensor.
    pub need: Block,
    /// The published parts that together cover the block. The dispatcher fills them in.
    pub parts: Vec<PublishedPart>,
}

record!(struct PublishedValues { publication, index, meta, need, parts });

/// The part of a published tensor that a slot of the publication has.
#[derive(Clone, PartialEq, Debug)]
pub struct PublishedPart {
    pub slot: SlotId,
    pub block: Block,
}

record!(struct PublishedPart { slot, block });
