//! Tensor data in shared memory, for links within one machine.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use gt_ir::{Content, TensorData};
use gt_net::NetError;
use gt_net::shm::{self, OwnedBlock};
use rustc_hash::FxHashMap;

/// The least bytes of data for which a block is used.
const WORTH_IT: usize = 64 << 10;

/// The most bytes of blocks kept for reuse.
const KEPT_BYTES: usize = 1 << 30;
/// The most blocks kept for reuse.
const KEPT: usize = 32;
/// How long blocks are kept after their last use.
const KEPT_FOR: Duration = Duration::from_secs(30);

/// How many recent lengths are remembered.
const LENGTHS: usize = 32;

/// The shared-memory blocks that this process has created.
///
/// Data goes in sealed blocks, which receivers use in place. A length that recurs gets a reusable
/// block: receivers then copy the values, but no new memory is allocated, which costs much more
/// (page faults).
#[derive(Default)]
pub struct SharedBlocks {
    /// Blocks that their receivers have not read yet, by token.
    owned: FxHashMap<u128, OwnedBlock>,
    /// Blocks that are free for reuse, oldest first.
    kept: VecDeque<OwnedBlock>,
    /// The lengths of recently sealed blocks; oldest first.
    lengths: VecDeque<usize>,
    /// When a block was used last.
    used: Option<Instant>,
}

impl SharedBlocks {
    /// Converts content for sending: large data becomes a block, unless that fails.
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

    /// Returns a block with these bytes, reusing one if it fits.
    fn block(&mut self, bytes: &[u8]) -> Result<OwnedBlock, NetError> {
        let length = bytes.len();
        self.used = Some(Instant::now());
        // At most twice as large as needed.
        let fits = |block: &OwnedBlock| {
            block.room().is_some_and(|room| room >= length && room / 2 <= length)
        };
        let found = self.kept.iter().position(fits);
        if let Some(mut block) = found.and_then(|index| self.kept.remove(index)) {
            return block.rewrite(bytes).map(|()| block);
        }
        if self.lengths.contains(&length) {
            return OwnedBlock::reusable(bytes);
        }
        if self.lengths.len() == LENGTHS {
            self.lengths.pop_front();
        }
        self.lengths.push_back(length);
        OwnedBlock::sealed(bytes)
    }

    /// Returns whether the receivers of all blocks have read them.
    pub fn are_read(&self) -> bool {
        self.owned.is_empty()
    }

    /// Frees blocks that have been unused for a while, including mappings of other processes'
    /// blocks.
    pub fn tidy(&mut self) {
        shm::tidy();
        if self.used.is_some_and(|used| used.elapsed() > KEPT_FOR) {
            self.kept.clear();
            self.lengths.clear();
            self.used = None;
        }
    }

    /// Frees a block that its receiver has read, for reuse if it is reusable.
    pub fn release(&mut self, token: u128) {
        let Some(block) = self.owned.remove(&token) else { return };
        if block.room().is_none() {
            return;
        }
        self.kept.push_back(block);
        let bytes = |kept: &VecDeque<OwnedBlock>| -> usize {
            kept.iter().filter_map(OwnedBlock::room).sum()
        };
        while self.kept.len() > KEPT || bytes(&self.kept) > KEPT_BYTES {
            self.kept.pop_front();
        }
    }
}

/// Returns received content with its data mapped, and the token to release if it arrived as a
/// block.
pub fn receive(content: Content) -> Result<(Content, Option<u128>), String> {
    let Content::Shared { meta, block } = content else { return Ok((content, None)) };
    let bytes = shm::map(&block).map_err(|error| error.to_string())?;
    let data = TensorData::new(meta.dtype, meta.shape, bytes);
    let data =
        data.ok_or_else(|| "shared memory: the block does not fit the tensor".to_string())?;
    Ok((Content::Data(data), Some(block.token)))
}

#[cfg(test)]
mod tests {
    use gt_ir::{DType, Shape};

    use super::*;

    fn data(value: u8, length: usize) -> Content {
        let shape = Shape::new(&[length]).unwrap();
        let bytes = vec![value; length].into();
        Content::Data(TensorData::new(DType::U8, shape, bytes).unwrap())
    }

    /// Checks that receivers get the content that was sent, and returns the token.
    fn received(shared: &Content, sent: &Content) -> u128 {
        let (got, token) = receive(shared.clone()).unwrap();
        assert!(got == *sent);
        token.expect("it came as a block")
    }

    #[test]
    fn what_comes_again_is_passed_in_blocks_that_are_used_again() {
        if !shm::ARE_REUSABLE {
            return;
        }
        let mut blocks = SharedBlocks::default();
        blocks.tidy();
        let mut first = None;
        for round in 0..6 {
            let sent = data(round, 100_000 - usize::from(round.saturating_sub(2)));
            let shared = blocks.share(sent.clone());
            let token = received(&shared, &sent);
            blocks.release(token);
            let kept = blocks.kept.iter().map(|block| block.describe().fd).collect::<Vec<_>>();
            match round {
                0 => assert!(kept.is_empty(), "one that is given away is not kept"),
                1 => first = Some(kept),
                _ => assert_eq!(first, Some(kept), "the same block is used"),
            }
        }
    }

    #[test]
    fn a_block_is_not_used_again_before_it_was_read() {
        let mut blocks = SharedBlocks::default();
        let all: Vec<Content> = (0..5).map(|value| data(value, 100_000)).collect();
        let shared: Vec<Content> = all.iter().map(|sent| blocks.share(sent.clone())).collect();
        for (shared, sent) in shared.iter().zip(&all).rev() {
            let token = received(shared, sent);
            blocks.release(token);
        }
        // A block with a length that was not sent before is not reused.
        let kept = if shm::ARE_REUSABLE { 4 } else { 0 };
        assert_eq!(blocks.kept.len(), kept);
    }

    #[test]
    fn small_data_stays_in_the_message() {
        let sent = data(1, WORTH_IT - 1);
        assert!(SharedBlocks::default().share(sent.clone()) == sent);
    }
}
