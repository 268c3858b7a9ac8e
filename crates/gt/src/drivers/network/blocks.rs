//! Tensor data by shared memory, where both ends are on one machine.

use gt_ir::{Content, TensorData};
use gt_net::shm::{self, OwnedBlock};
use rustc_hash::FxHashMap;

/// Data from this length on is worth a block.
const WORTH_IT: usize = 64 << 10;

/// The blocks that others have not mapped yet.
#[derive(Default)]
pub struct Blocks {
    owned: FxHashMap<u128, OwnedBlock>,
}

impl Blocks {
    /// Content to send: large data as a block. Where that fails, the link carries it.
    pub fn share(&mut self, content: Content) -> Content {
        let Content::Data(data) = &content else { return content };
        if data.bytes.len() < WORTH_IT {
            return content;
        }
        let Ok(block) = OwnedBlock::new(&data.bytes) else { return content };
        let described = block.describe();
        self.owned.insert(described.token, block);
        Content::Shared { meta: content.meta(), block: described }
    }

    /// The receiver has it.
    pub fn release(&mut self, token: u128) {
        self.owned.remove(&token);
    }
}

/// Received content with its data at hand, and the token to release if it came as a block.
pub fn receive(content: Content) -> Result<(Content, Option<u128>), String> {
    let Content::Shared { meta, block } = content else { return Ok((content, None)) };
    let bytes = shm::map(&block).map_err(|error| error.to_string())?;
    let data = TensorData::new(meta.dtype, meta.shape, bytes);
    let data =
        data.ok_or_else(|| "shared memory: the block does not fit the tensor".to_string())?;
    Ok((Content::Data(data), Some(block.token)))
}
