//! Messages as parts: each part is one ZeroMQ message, delivered to the receiver as it arrives.
//!
//! A message of one frame that fits a part is that part. Any other is announced by the lengths of
//! its frames, and its frames follow, each cut into parts of [`PART`] bytes. (ZeroMQ's own
//! multipart messages are delivered only when the last part has arrived.)

use std::collections::VecDeque;

use bytes::Bytes;
use memmap2::MmapMut;

use crate::codec::MAX_FRAMES;
use crate::error::NetError;

/// The most bytes of a part.
pub const PART: usize = 512 << 10;
/// The longest message that sockets accept: a part, encrypted.
pub const LONGEST: i64 = PART as i64 + 4096;

/// The limit on messages in flight in one direction of a link; each counts once more for each 64
/// KiB.
pub const UNDER_WAY: i32 = 1000;
/// The limit on messages in flight from a peer before its handshake: one part, or a few short
/// messages.
pub const BEFORE_HELLO: i32 = 8;

/// The first bytes of an announcement; no message begins with them.
const ANNOUNCEMENT: [u8; 2] = *b"GP";

/// Cuts a message into its parts, in order.
///
/// # Errors
/// Those of `put`; no more parts are put after one.
pub fn cut<E>(frames: &[Bytes], mut put: impl FnMut(Bytes) -> Result<(), E>) -> Result<(), E> {
    if let [only] = frames
        && only.len() <= PART
    {
        return put(only.clone());
    }
    put(announcement(frames))?;
    for frame in frames {
        for start in (0..frame.len()).step_by(PART) {
            put(frame.slice(start..frame.len().min(start + PART)))?;
        }
    }
    Ok(())
}

fn announcement(frames: &[Bytes]) -> Bytes {
    let mut text = ANNOUNCEMENT.to_vec();
    frames.iter().for_each(|frame| text.extend_from_slice(&(frame.len() as u64).to_le_bytes()));
    text.into()
}

/// The lengths of an announcement's frames.
fn lengths_of(part: &[u8]) -> Result<VecDeque<usize>, NetError> {
    let bad = || NetError::Parts("an announcement has no lengths of frames".into());
    let (lengths, []) = part[ANNOUNCEMENT.len()..].as_chunks::<8>() else { return Err(bad()) };
    if lengths.is_empty() || lengths.len() > MAX_FRAMES {
        return Err(bad());
    }
    let length = |bytes: &[u8; 8]| usize::try_from(u64::from_le_bytes(*bytes)).ok();
    let all: Option<VecDeque<usize>> = lengths.iter().map(length).collect();
    let all = all.ok_or_else(bad)?;
    let total = all.iter().try_fold(0, |sum: usize, length| sum.checked_add(*length));
    match total {
        Some(_) if all.iter().all(|length| *length > 0) => Ok(all),
        _ => Err(bad()),
    }
}

/// Returns whether a part is a complete message, if no message is open.
pub fn is_whole(part: &[u8]) -> bool {
    !part.starts_with(&ANNOUNCEMENT)
}

/// A message whose parts are arriving.
#[derive(Default)]
pub struct Assembly {
    /// The lengths of the frames that are not complete.
    lengths: VecDeque<usize>,
    frames: Vec<Bytes>,
    /// A frame of several parts: memory that is allocated as it fills, and the bytes filled.
    filling: Option<(MmapMut, usize)>,
    /// The bytes that have arrived.
    bytes: usize,
}

impl Assembly {
    /// Returns whether more parts of a message are expected.
    pub fn is_open(&self) -> bool {
        !self.lengths.is_empty()
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a part. Returns the message that it completes, if any.
    ///
    /// # Errors
    /// The part is not what was announced, or memory cannot be allocated for it.
    pub fn take(&mut self, part: Bytes) -> Result<Option<Vec<Bytes>>, NetError> {
        let Some(&length) = self.lengths.front() else {
            if is_whole(&part) {
                return Ok(Some(vec![part]));
            }
            self.lengths = lengths_of(&part)?;
            return Ok(None);
        };
        let filled = self.filling.as_ref().map_or(0, |(_, filled)| *filled);
        let wanted = PART.min(length - filled);
        if part.len() != wanted {
            let got = part.len();
            return Err(NetError::Parts(format!("a part has {got} bytes, expected {wanted}")));
        }
        self.bytes += part.len();
        if length <= PART {
            self.frames.push(part);
            self.lengths.pop_front();
        } else {
            self.fill(&part, length)?;
        }
        if self.is_open() {
            return Ok(None);
        }
        self.bytes = 0;
        Ok(Some(std::mem::take(&mut self.frames)))
    }

    fn fill(&mut self, part: &[u8], length: usize) -> Result<(), NetError> {
        let (mut memory, filled) = match self.filling.take() {
            Some(filling) => filling,
            None => {
                let no_memory = |error| NetError::Parts(format!("{length} bytes: {error}"));
                (MmapMut::map_anon(length).map_err(no_memory)?, 0)
            }
        };
        let end = filled + part.len();
        memory[filled..end].copy_from_slice(part);
        if end == length {
            self.frames.push(Bytes::from_owner(memory));
            self.lengths.pop_front();
        } else {
            self.filling = Some((memory, end));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(lengths: &[usize]) -> Vec<Bytes> {
        let frame = |length: &usize| (0..*length).map(|at| (at % 251) as u8).collect::<Vec<_>>();
        lengths.iter().map(|length| frame(length).into()).collect()
    }

    fn parts(frames: &[Bytes]) -> Vec<Bytes> {
        let mut all = Vec::new();
        cut::<()>(frames, |part| {
            all.push(part);
            Ok(())
        })
        .unwrap();
        all
    }

    #[test]
    fn messages_are_put_together_again() {
        let cases: &[(&[usize], usize)] = &[
            (&[1], 1),
            (&[PART], 1),
            (&[PART + 1], 3),
            (&[10, 20], 3),
            (&[10, 3 * PART, 5, PART, 2 * PART + 7], 10),
        ];
        let mut assembly = Assembly::default();
        for (lengths, count) in cases {
            let message = frames(lengths);
            let parts = parts(&message);
            assert_eq!(parts.len(), *count, "{lengths:?}");
            assert!(parts.iter().all(|part| part.len() as i64 <= LONGEST));
            let (last, before) = parts.split_last().unwrap();
            for part in before {
                assert!(assembly.take(part.clone()).unwrap().is_none());
                assert!(assembly.is_open());
            }
            assert!(assembly.take(last.clone()).unwrap() == Some(message), "{lengths:?}");
            assert!(!assembly.is_open() && assembly.bytes() == 0);
        }
    }

    #[test]
    fn what_was_not_announced_is_refused() {
        let of = |lengths: &[u64]| {
            let bytes = lengths.iter().flat_map(|length| length.to_le_bytes());
            Bytes::from([&ANNOUNCEMENT[..], &bytes.collect::<Vec<_>>()].concat())
        };
        let take = |part| Assembly::default().take(part);
        for lengths in [&[][..], &[0], &[5, 0], &[u64::MAX, 1], &vec![1; MAX_FRAMES + 1]] {
            assert!(take(of(lengths)).is_err(), "{}", lengths.len());
        }
        assert!(take(Bytes::from_static(b"GP123")).is_err());
        for (first, next) in [(10, 11), (10, 9), (PART as u64 * 2, PART - 1)] {
            let mut assembly = Assembly::default();
            assert!(assembly.take(of(&[first])).unwrap().is_none());
            assert!(assembly.take(Bytes::from(vec![0; next])).is_err(), "{first} {next}");
        }
    }
}
