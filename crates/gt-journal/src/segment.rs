//! The format of a segment: a header, then records.
//!
//! All numbers are little-endian. The header is a magic text, the format's version, the schema of the
//! records (a number that the user of this crate chooses) and a checksum. A record is the length of its body, a
//! checksum of length and body, and the body: the number of frames, their lengths, the frames.

use std::io::{self, Write};

use bytes::Bytes;
use crc32fast::Hasher;

/// The first bytes of a segment.
pub const MAGIC: [u8; 8] = *b"GTJOURNL";
/// The version of the format.
const VERSION: u32 = 1;
/// The lengths of the header, and of what precedes a record's body.
pub const HEADER: usize = 24;
const PREFIX: usize = 12;

/// Writes the header of a segment whose records have this `schema`.
pub fn write_header(schema: u64, to: &mut impl Write) -> io::Result<()> {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..20].copy_from_slice(&schema.to_le_bytes());
    let sum = crc32fast::hash(&header[..20]);
    header[20..].copy_from_slice(&sum.to_le_bytes());
    to.write_all(&header)
}

/// Writes a record; returns its length in the segment.
pub fn write_record(frames: &[Bytes], to: &mut impl Write) -> io::Result<u64> {
    let mut lengths = Vec::with_capacity(4 + 8 * frames.len());
    lengths.extend_from_slice(&(frames.len() as u32).to_le_bytes());
    frames.iter().for_each(|frame| lengths.extend_from_slice(&(frame.len() as u64).to_le_bytes()));
    let length = (lengths.len() + frames.iter().map(Bytes::len).sum::<usize>()) as u64;
    let mut hasher = Hasher::new();
    hasher.update(&length.to_le_bytes());
    hasher.update(&lengths);
    frames.iter().for_each(|frame| hasher.update(frame));
    to.write_all(&length.to_le_bytes())?;
    to.write_all(&hasher.finalize().to_le_bytes())?;
    to.write_all(&lengths)?;
    for frame in frames {
        to.write_all(frame)?;
    }
    Ok(PREFIX as u64 + length)
}

/// The reason of a damage where the segment ends within a record.
pub const CUT: &str = "a record is cut";

/// Why a segment cannot be read at all.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unreadable {
    #[error("it does not begin like one")]
    Foreign,
    #[error(
        "its format has version {0}, and this gt reads version {VERSION}\n  hint: start the version of gt that wrote it, or give another folder"
    )]
    Version(u32),
    #[error(
        "it was written by a version of gt with other operations\n  hint: start the version of gt that wrote it, or give another folder"
    )]
    Schema,
}

/// Where reading ended before the end of a segment, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    pub at: usize,
    /// The bytes from there to the end.
    pub lost: usize,
    pub reason: &'static str,
}

/// The records of a segment, and its damage.
#[derive(Default, Debug)]
pub struct Records {
    pub records: Vec<Vec<Bytes>>,
    pub damage: Option<Damage>,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// Reads a segment, up to its first damage.
///
/// # Errors
/// It is not a segment, or its records have another schema.
pub fn read(segment: &Bytes, schema: u64) -> Result<Records, Unreadable> {
    let header = segment.get(..HEADER).ok_or(Unreadable::Foreign)?;
    if header[..8] != MAGIC {
        return Err(Unreadable::Foreign);
    }
    let version = u32::from_le_bytes(number(header, 8).ok_or(Unreadable::Foreign)?);
    if version != VERSION {
        return Err(Unreadable::Version(version));
    }
    if number(header, 20).map(u32::from_le_bytes) != Some(crc32fast::hash(&header[..20])) {
        return Err(Unreadable::Foreign);
    }
    if number(header, 12).map(u64::from_le_bytes) != Some(schema) {
        return Err(Unreadable::Schema);
    }
    let (mut at, mut records) = (HEADER, Vec::new());
    while at < segment.len() {
        match record_at(segment, at) {
            Ok((record, next)) => {
                records.push(record);
                at = next;
            }
            Err(reason) => {
                let damage = Some(Damage { at, lost: segment.len() - at, reason });
                return Ok(Records { records, damage });
            }
        }
    }
    Ok(Records { records, damage: None })
}

/// The record at an offset, and the offset of the next.
fn record_at(segment: &Bytes, at: usize) -> Result<(Vec<Bytes>, usize), &'static str> {
    let length = u64::from_le_bytes(number(segment, at).ok_or(CUT)?);
    let sum = u32::from_le_bytes(number(segment, at + 8).ok_or(CUT)?);
    let start = at + PREFIX;
    let end = usize::try_from(length).ok().and_then(|length| start.checked_add(length));
    let body = end.and_then(|end| segment.get(start..end)).ok_or(CUT)?;
    let mut hasher = Hasher::new();
    hasher.update(&length.to_le_bytes());
    hasher.update(body);
    if hasher.finalize() != sum {
        return Err("a record's checksum is wrong");
    }
    let frames = divide(&segment.slice(start..start + body.len()));
    Ok((frames.ok_or("a record's frames do not fit it")?, start + body.len()))
}

/// The frames of a record's body.
fn divide(body: &Bytes) -> Option<Vec<Bytes>> {
    let count = u32::from_le_bytes(number(body, 0)?) as usize;
    let mut at = count.checked_mul(8)?.checked_add(4)?;
    if at > body.len() {
        return None;
    }
    let mut frames = Vec::with_capacity(count);
    for index in 0..count {
        let length = usize::try_from(u64::from_le_bytes(number(body, 4 + 8 * index)?)).ok()?;
        let end = at.checked_add(length).filter(|end| *end <= body.len())?;
        frames.push(body.slice(at..end));
        at = end;
    }
    (at == body.len()).then_some(frames)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SCHEMA: u64 = 42;

    fn segment(records: &[Vec<Bytes>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_header(SCHEMA, &mut bytes).unwrap();
        for record in records {
            write_record(record, &mut bytes).unwrap();
        }
        bytes
    }

    fn some_records() -> impl Strategy<Value = Vec<Vec<Bytes>>> {
        let frame = prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from);
        prop::collection::vec(prop::collection::vec(frame, 0..4), 0..12)
    }

    proptest! {
        #[test]
        fn a_segment_that_is_cut_gives_what_was_whole(
            records in some_records(),
            cut in any::<prop::sample::Index>(),
        ) {
            let whole = segment(&records);
            let at = HEADER + cut.index(whole.len() - HEADER + 1);
            let read = read(&Bytes::from(whole[..at].to_vec()), SCHEMA).unwrap();
            let count = read.records.len();
            prop_assert_eq!(&read.records, &records[..count]);
            let kept = segment(&records[..count]).len();
            prop_assert_eq!(read.damage.map(|damage| damage.at), (kept < at).then_some(kept));
        }

        #[test]
        fn a_flipped_bit_costs_what_comes_after_it(
            records in some_records(),
            place in any::<prop::sample::Index>(),
            bit in 0..8,
        ) {
            let mut bytes = segment(&records);
            if bytes.len() > HEADER {
                let at = HEADER + place.index(bytes.len() - HEADER);
                bytes[at] ^= 1u8 << bit;
                let read = read(&Bytes::from(bytes), SCHEMA).unwrap();
                let count = read.records.len();
                prop_assert!(count < records.len() && read.damage.is_some());
                prop_assert_eq!(&read.records, &records[..count]);
                prop_assert!(segment(&records[..count]).len() <= at);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut all = segment(&[]);
            all.extend(bytes);
            let _ = read(&Bytes::from(all), SCHEMA).unwrap();
        }
    }

    #[test]
    fn what_is_no_journal_or_of_another_version_is_refused() {
        let whole = segment(&[vec![Bytes::from_static(b"x")]]);
        let of = |bytes: Vec<u8>| read(&Bytes::from(bytes), SCHEMA).err();
        assert_eq!(of(b"GT".to_vec()), Some(Unreadable::Foreign));
        assert_eq!(of(vec![7; 100]), Some(Unreadable::Foreign));
        let mut later = whole.clone();
        later[8] = 9;
        assert_eq!(of(later), Some(Unreadable::Version(9)));
        assert_eq!(read(&Bytes::from(whole), 43).err(), Some(Unreadable::Schema));
    }
}
