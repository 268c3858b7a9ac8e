//! A zip archive of members that are stored as they are (PKWARE's APPNOTE.TXT, section 4.3), below
//! 4 GiB.

/// An archive under construction.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    members: u16,
}

impl Archive {
    /// Adds a member whose contents are these parts, concatenated.
    pub fn add(&mut self, name: &str, parts: &[&[u8]]) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let start = self.bytes.len() as u32;
        // What the local header and the directory have in common: version 2.0, no flags, stored,
        // the first day that a zip archive knows, checksum, both lengths, the name's length.
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
        common.extend(checksum(parts).to_le_bytes());
        common.extend((length as u32).to_le_bytes());
        common.extend((length as u32).to_le_bytes());
        common.extend((name.len() as u16).to_le_bytes());
        self.bytes.extend(b"PK\x03\x04");
        self.bytes.extend(&common);
        self.bytes.extend([0, 0]);
        self.bytes.extend(name.as_bytes());
        parts.iter().for_each(|part| self.bytes.extend(*part));
        self.directory.extend(b"PK\x01\x02\x14\x00");
        self.directory.extend(&common);
        // No extra field, comment, disk or attributes.
        self.directory.extend([0; 12]);
        self.directory.extend(start.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.members += 1;
    }

    /// Returns the archive's bytes.
    pub fn finish(mut self) -> Vec<u8> {
        let start = self.bytes.len() as u32;
        self.bytes.extend(&self.directory);
        self.bytes.extend(b"PK\x05\x06\x00\x00\x00\x00");
        self.bytes.extend(self.members.to_le_bytes());
        self.bytes.extend(self.members.to_le_bytes());
        self.bytes.extend((self.directory.len() as u32).to_le_bytes());
        self.bytes.extend(start.to_le_bytes());
        self.bytes.extend([0, 0]);
        self.bytes
    }
}

/// The CRC-32 of these parts one after another (ISO 3309).
fn checksum(parts: &[&[u8]]) -> u32 {
    let table: [u32; 256] = std::array::from_fn(|byte| {
        (0..8).fold(byte as u32, |rest, _| (rest >> 1) ^ if rest & 1 > 0 { 0xedb8_8320 } else { 0 })
    });
    let bytes = parts.iter().flat_map(|part| part.iter());
    !bytes.fold(!0u32, |rest, byte| (rest >> 8) ^ table[usize::from(rest as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(checksum(&[b"1234", b"56789"]), 0xcbf4_3926);
    }
}
