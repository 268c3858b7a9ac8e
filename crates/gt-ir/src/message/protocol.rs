//! The protocol that a peer speaks: the first fields of its hello, whose encoding never changes.
//!
//! Every version of GT reads this part of every other version's hello, and every version's goodbye,
//! so that peers of different versions part with an error that names the side to upgrade:
//!
//! | bytes | field |
//! | --- | --- |
//! | 2 | `GT` |
//! | 1 | the version of the layout of what follows the protocol |
//! | 1 | the kind of the message: 1 for a hello, 4 for a goodbye |
//! | 4 | hello: [`PROTOCOL_VERSION`], little-endian |
//! | 8 | hello: the hash of the instruction set, little-endian |
//! | 1 + n | hello: the release of GT: its length in bytes, and ASCII |
//! | 1 | hello: the role: 0 client, 1 worker, 2 watcher, 3 operator |
//! | 1 to 5, n | goodbye: the reason: its length in bytes as a varint, and UTF-8 |

use super::Role;
use crate::wire::{DecodeError, Decoded, Record, Sink, Source};

/// The protocol version. Both ends of a link must have the same; releases of one 0.x version do.
pub const PROTOCOL_VERSION: u32 = 20;

/// What both ends must agree on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Protocol {
    pub version: u32,
    /// A hash of the instruction set, so that ids mean the same at both ends.
    pub schema: u64,
    /// The release of GT, for errors: "0.1.0".
    pub release: String,
}

impl Record for Protocol {
    fn write<S: Sink>(&self, to: &mut S) {
        let release = self.release.as_bytes();
        let length = u8::try_from(release.len()).expect("a release is short");
        to.bytes(&self.version.to_le_bytes());
        to.bytes(&self.schema.to_le_bytes());
        to.byte(length);
        to.bytes(release);
    }

    fn read(from: &mut Source) -> Decoded<Protocol> {
        let version = u32::from_le_bytes(from.array()?);
        let schema = u64::from_le_bytes(from.array()?);
        let length = from.byte()?;
        let release = from.take(usize::from(length))?;
        let is_plain = |byte: &u8| byte.is_ascii_graphic();
        if !release.iter().all(is_plain) {
            return Err(DecodeError::BadText);
        }
        let release = release.iter().map(|byte| char::from(*byte)).collect();
        Ok(Protocol { version, schema, release })
    }
}

impl Protocol {
    /// Returns the protocol of this build.
    pub fn current() -> Protocol {
        let release = env!("CARGO_PKG_VERSION").to_string();
        Protocol { version: PROTOCOL_VERSION, schema: schema(), release }
    }

    /// Returns whether peers of the two protocols understand each other.
    pub fn matches(&self, other: &Protocol) -> bool {
        (self.version, self.schema) == (other.version, other.schema)
    }
}

/// A peer that speaks another protocol than this build.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stranger {
    pub protocol: Protocol,
    /// What it calls itself, if this build knows the role.
    pub role: Option<Role>,
}

impl Stranger {
    /// Returns why `own`, the side of this build ("server"), refuses it, and which side to upgrade.
    pub fn refusal(&self, own: &str) -> String {
        let theirs = self.role.map_or("other side", Role::name);
        let here = Protocol::current();
        let Protocol { version, schema, release } = &self.protocol;
        if here.version == *version || here.release == *release {
            return format!(
                "the {own} and the {theirs} are different builds of gt ({} with protocol {} and instruction set {:016x}, {release} with {version} and {schema:016x})\n  hint: install the same build of gt on both sides",
                here.release, here.version, here.schema
            );
        }
        let (older, newest) = match here.version < *version {
            true => (own, release),
            false => (theirs, &here.release),
        };
        format!(
            "the {own} has gt {} (protocol {}), the {theirs} gt {release} (protocol {version})\n  hint: the {older} is older: install gt {newest} there",
            here.release, here.version
        )
    }
}

/// Returns a hash of the instruction set: names, ids, arities and attributes.
fn schema() -> u64 {
    // FNV-1a, stable across builds and machines.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut eat = |bytes: &[u8]| {
        for &byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for operation in crate::ops::ALL {
        eat(&operation.id.to_le_bytes());
        eat(operation.name.as_bytes());
        for parameter in operation.parameters {
            eat(parameter.name.as_bytes());
            eat(format!("{:?}", parameter.kind).as_bytes());
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stranger(version: u32, release: &str, role: Option<Role>) -> Stranger {
        let protocol = Protocol { version, release: release.into(), schema: 0xab };
        Stranger { protocol, role }
    }

    #[test]
    fn the_encoding_is_frozen() {
        let protocol =
            Protocol { version: 18, schema: 0x0102_0304_0506_0708, release: "9.0".into() };
        let frames = crate::wire::encode(&protocol);
        assert_eq!(frames[0][..], *b"\x12\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01\x039.0");
        assert_eq!(crate::wire::decode::<Protocol>(&frames), Ok(protocol));
    }

    #[test]
    fn a_refusal_names_the_side_to_upgrade() {
        let newer = stranger(PROTOCOL_VERSION + 1, "9.0.0", Some(Role::Worker)).refusal("server");
        assert!(newer.contains("hint: the server is older: install gt 9.0.0 there"), "{newer}");
        let older = stranger(1, "0.0.1", Some(Role::Client)).refusal("server");
        let release = env!("CARGO_PKG_VERSION");
        assert!(
            older.contains(&format!("hint: the client is older: install gt {release} there")),
            "{older}"
        );
        let build = stranger(PROTOCOL_VERSION, release, None).refusal("server");
        assert!(build.contains("the server and the other side are different builds"), "{build}");
    }
}
