//! Keys, which decide which peers may connect, and in which role.
//!
//! A server has one cluster key, 32 random bytes. The CURVE key pairs of the server and of each
//! role are derived from it, so the cluster key grants every role. A role's key holds only that
//! role's pair and the server's public key.

use gt_ir::message::Role;

use crate::error::NetError;

/// A CURVE key pair.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyPair {
    pub public: [u8; 32],
    pub secret: [u8; 32],
}

/// A key as users exchange it.
#[derive(Clone, PartialEq, Eq)]
pub enum Key {
    Cluster([u8; 32]),
    Role { role: Role, secret: [u8; 32], server: [u8; 32] },
}

/// The CURVE keys that a peer needs to connect.
pub struct LinkKey {
    pub own: KeyPair,
    pub server: [u8; 32],
}

const PREFIX: &str = "gt1-";
const ROLES: [Role; 3] = [Role::Client, Role::Worker, Role::Watcher];

impl Key {
    /// A new cluster key.
    pub fn generate() -> Key {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).expect("the system gives random bytes");
        Key::Cluster(bytes)
    }

    /// The server's pair, which only a cluster key contains.
    pub fn server_pair(&self) -> Result<KeyPair, NetError> {
        match self {
            Key::Cluster(secret) => Ok(derive(secret, "server")),
            Key::Role { role, .. } => {
                Err(NetError::WrongRole { given: role.name(), wanted: "server" })
            }
        }
    }

    /// The keys of a peer with this role.
    pub fn link(&self, role: Role) -> Result<LinkKey, NetError> {
        match self {
            Key::Cluster(secret) => Ok(LinkKey {
                own: derive(secret, role.name()),
                server: derive(secret, "server").public,
            }),
            Key::Role { role: own, secret, server } if *own == role => {
                Ok(LinkKey { own: pair(*secret), server: *server })
            }
            Key::Role { role: own, .. } => {
                Err(NetError::WrongRole { given: own.name(), wanted: role.name() })
            }
        }
    }

    /// A key that grants one role only.
    pub fn limited(&self, role: Role) -> Result<Key, NetError> {
        let link = self.link(role)?;
        Ok(Key::Role { role, secret: link.own.secret, server: link.server })
    }

    /// Parses a key's text.
    pub fn parse(text: &str) -> Result<Key, NetError> {
        let text = text.trim();
        let bad = || {
            let shown: String = text.chars().take(12).collect();
            NetError::BadKey { given: format!("{shown}...") }
        };
        let rest = text.strip_prefix(PREFIX).ok_or_else(bad)?;
        for role in ROLES {
            if let Some(hex) = rest.strip_prefix(role.name()).and_then(|hex| hex.strip_prefix('-'))
            {
                let bytes = from_hex(hex).filter(|bytes| bytes.len() == 64).ok_or_else(bad)?;
                let half = |from: usize| bytes[from..from + 32].try_into().expect("32 of 64");
                return Ok(Key::Role { role, secret: half(0), server: half(32) });
            }
        }
        let bytes = from_hex(rest).ok_or_else(bad)?;
        Ok(Key::Cluster(bytes.try_into().map_err(|_| bad())?))
    }

    /// The key's text, which is secret.
    pub fn to_text(&self) -> String {
        match self {
            Key::Cluster(bytes) => format!("{PREFIX}{}", to_hex(bytes)),
            Key::Role { role, secret, server } => {
                format!("{PREFIX}{}-{}{}", role.name(), to_hex(secret), to_hex(server))
            }
        }
    }
}

/// Never shows the key itself.
impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Key::Cluster(_) => "Key(cluster)",
            Key::Role { role, .. } => role.name(),
        })
    }
}

/// Derives a pair from a cluster key: BLAKE2b of the purpose, keyed with the cluster key.
fn derive(cluster: &[u8; 32], purpose: &str) -> KeyPair {
    let mut secret = [0u8; 32];
    let text = format!("gt link key 1: {purpose}");
    // SAFETY: all pointers are valid for the lengths given, and libsodium keeps none of them.
    let status = unsafe {
        libsodium_sys::crypto_generichash(
            secret.as_mut_ptr(),
            secret.len(),
            text.as_ptr(),
            text.len() as u64,
            cluster.as_ptr(),
            cluster.len(),
        )
    };
    assert_eq!(status, 0, "lengths within BLAKE2b's limits cannot fail");
    pair(secret)
}

fn pair(secret: [u8; 32]) -> KeyPair {
    let mut public = [0u8; 32];
    // SAFETY: both pointers are valid for the 32 bytes that this function reads and writes.
    let status = unsafe {
        libsodium_sys::crypto_scalarmult_curve25519_base(public.as_mut_ptr(), secret.as_ptr())
    };
    assert_eq!(status, 0, "the base point times any number is a point");
    KeyPair { public, secret }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_parse_back() {
        let key = Key::generate();
        assert_eq!(Key::parse(&key.to_text()).unwrap(), key);
        let client = key.limited(Role::Client).unwrap();
        assert_eq!(Key::parse(&client.to_text()).unwrap(), client);
        for bad in ["", "gt1-", "gt1-zz", "gt2-00", "gt1-client-00", "gt1-\u{e9}\u{e9}"] {
            assert!(Key::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_role_key_is_good_for_its_role_alone() {
        let key = Key::generate();
        let client = key.limited(Role::Client).unwrap();
        assert!(client.link(Role::Worker).is_err());
        assert!(client.server_pair().is_err());
        let (whole, limited) =
            (key.link(Role::Client).unwrap(), client.link(Role::Client).unwrap());
        assert!(whole.own == limited.own && whole.server == limited.server);
    }

    #[test]
    fn roles_have_different_pairs() {
        let key = Key::generate();
        let publics: Vec<_> =
            ROLES.iter().map(|&role| key.link(role).unwrap().own.public).collect();
        assert!(publics[0] != publics[1] && publics[1] != publics[2] && publics[0] != publics[2]);
    }
}
