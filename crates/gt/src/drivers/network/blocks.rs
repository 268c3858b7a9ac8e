//! Tensor data by shared memory, where both ends are on one machine.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use gt_ir::{Content, TensorData};
use gt_net::NetError;
use gt_net::shm::{self, OwnedBlock};
use rustc_hash::FxHashMap;

/// Data from this length on is worth a block.
const WORTH_IT: usize = 64 << 10;

/// How many bytes of blocks are kept to be used again, how many blocks, and how long after the
/// last use.
const KEPT_BYTES: usize = 1 << 30;
const KEPT: usize = 32;
const KEPT_FOR: Duration = Duration::from_secs(30);

/// The blocks that this process made.
#[derive(Default)]
pub struct Blocks {
    /// Others have not mapped these yet.
    owned: FxHashMap<u128, OwnedBlock>,
    /// Others have mapped these, and may be done with them; oldest first.
    kept: VecDeque<OwnedBlock>,
    /// When one was used last.
    used: Option<Instant>,
}

impl Blocks {
    /// Content to send: large data as a block. Where that fails, the link carries it.
    pub fn share(&mut self, content: Content) -> Content {
        let Content::Data(data) = &content else { return content };
        if data.bytes.len() < WORTH_IT {
            return content;
        }
        let Ok(block) = self.block(&data.bytes) else { return content };
        let described = block.describe();
        self.owned.insert(described.token, block);
        Content::Shared { meta: content.meta(), block: described }
    }

    /// A block with these bytes: one that nobody needs any more, or a new one.
    fn block(&mut self, bytes: &[u8]) -> Result<OwnedBlock, NetError> {
        let fits = |block: &OwnedBlock| block.length() == bytes.len() && block.is_idle();
        self.used = Some(Instant::now());
        let found = self.kept.iter().position(fits);
        match found.and_then(|index| self.kept.remove(index)) {
            Some(mut block) => block.rewrite(bytes).map(|()| block),
            None => OwnedBlock::new(bytes),
        }
    }

    /// Lets go of blocks that have not been used for a while.
    pub fn tidy(&mut self) {
        if self.used.is_some_and(|used| used.elapsed() > KEPT_FOR) {
            self.kept.clear();
            self.used = None;
        }
    }

    /// The receiver has it.
    pub fn release(&mut self, token: u128) {
        let Some(block) = self.owned.remove(&token) else { return };
        self.kept.push_back(block);
        let bytes =
            |kept: &VecDeque<OwnedBlock>| kept.iter().map(OwnedBlock::length).sum::<usize>();
        while self.kept.len() > KEPT || bytes(&self.kept) > KEPT_BYTES {
            self.kept.pop_front();
        }
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
