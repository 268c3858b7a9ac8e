//! Keys, which decide which peers may connect, and in which role.
//!
//! A server has one cluster key, 32 random bytes. The CURVE key pairs of the server and of each
//! role are derived from it, so the cluster key grants every role. A role's key holds only that
//! role's pair and the server's public key. A user's key holds the pair of all users, which is good
//! for clients, and for watchers of the status, and a badge, which proves who the user is: a hash
//! of the user's name and team, keyed with the cluster key. A link with the users' pair must show a
//! badge, so that no part of a user's key makes a key without a name.

use gt_ir::message::{Badge, Role};

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
    User { badge: Badge, secret: [u8; 32], server: [u8; 32] },
}

/// The CURVE keys that a peer needs to connect.
pub struct LinkKey {
    pub own: KeyPair,
    pub server: [u8; 32],
}

const PREFIX: &str = "gt1-";

impl Key {
    /// Generates a cluster key.
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
            Key::User { .. } => Err(NetError::WrongRole { given: "user", wanted: "server" }),
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
            // An operator may watch as well.
            Key::Role { role: Role::Operator, secret, server } if role == Role::Watcher => {
                Ok(LinkKey { own: pair(*secret), server: *server })
            }
            // Its user may watch, and operate on sessions of their own: the badge says which user
            // that is.
            Key::User { secret, server, .. } if role != Role::Worker => {
                Ok(LinkKey { own: pair(*secret), server: *server })
            }
            Key::Role { role: own, .. } => {
                Err(NetError::WrongRole { given: own.name(), wanted: role.name() })
            }
            Key::User { .. } => Err(NetError::WrongRole { given: "user", wanted: role.name() }),
        }
    }

    /// Returns the key of a user, for clients.
    ///
    /// # Errors
    /// This is not a cluster key, or a name has invalid characters.
    pub fn of_user(&self, user: &str, team: &str) -> Result<Key, NetError> {
        for (what, name) in [("user", user), ("team", team)] {
            let is_empty_team = what == "team" && name.is_empty();
            if !is_empty_team && !is_name(name) {
                return Err(NetError::BadName { what, given: name.into() });
            }
        }
        let Key::Cluster(cluster) = self else {
            return Err(NetError::WrongRole { given: self.kind(), wanted: "cluster" });
        };
        let (user, team) = (user.to_string(), team.to_string());
        let proof = prove(cluster, &user, &team);
        let badge = Badge { user, team, proof };
        let server = derive(cluster, "server").public;
        Ok(Key::User { badge, secret: users_pair(cluster).secret, server })
    }

    /// Returns the public key of all users' links, which follows from the cluster key.
    ///
    /// # Errors
    /// This is not a cluster key.
    pub fn users_public(&self) -> Result<[u8; 32], NetError> {
        match self {
            Key::Cluster(cluster) => Ok(users_pair(cluster).public),
            _ => Err(NetError::WrongRole { given: self.kind(), wanted: "cluster" }),
        }
    }

    /// The badge of a user's key.
    pub fn badge(&self) -> Option<&Badge> {
        match self {
            Key::User { badge, .. } => Some(badge),
            _ => None,
        }
    }

    /// Returns whether a badge was made with this cluster key.
    pub fn proves(&self, badge: &Badge) -> bool {
        let Key::Cluster(cluster) = self else { return false };
        let proof = prove(cluster, &badge.user, &badge.team);
        // SAFETY: both pointers are valid for the 32 bytes that this function reads.
        let differs = unsafe {
            libsodium_sys::sodium_memcmp(
                proof.as_ptr().cast(),
                badge.proof.as_ptr().cast(),
                proof.len(),
            )
        };
        differs == 0
    }

    /// Its purpose, for errors.
    fn kind(&self) -> &'static str {
        match self {
            Key::Cluster(_) => "cluster",
            Key::Role { role, .. } => role.name(),
            Key::User { .. } => "user",
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
        for role in Role::ALL {
            if let Some(hex) = rest.strip_prefix(role.name()).and_then(|hex| hex.strip_prefix('-'))
            {
                let bytes = from_hex(hex).filter(|bytes| bytes.len() == 64).ok_or_else(bad)?;
                let half = |from: usize| bytes[from..from + 32].try_into().expect("32 of 64");
                return Ok(Key::Role { role, secret: half(0), server: half(32) });
            }
        }
        if let Some(rest) = rest.strip_prefix("user-") {
            let mut parts = rest.splitn(3, ':');
            let (user, team) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
            let bytes = parts.next().and_then(from_hex).filter(|bytes| bytes.len() == 96);
            let bytes = bytes.filter(|_| is_name(user) && (team.is_empty() || is_name(team)));
            let bytes = bytes.ok_or_else(bad)?;
            let part = |from: usize| bytes[from..from + 32].try_into().expect("32 of 96");
            let badge = Badge { user: user.into(), team: team.into(), proof: part(64) };
            return Ok(Key::User { badge, secret: part(0), server: part(32) });
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
            Key::User { badge: Badge { user, team, proof }, secret, server } => {
                let bytes = [secret, server, proof].map(|part| to_hex(part)).concat();
                format!("{PREFIX}user-{user}:{team}:{bytes}")
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
            Key::User { .. } => "Key(user)",
        })
    }
}

/// The longest name of a user or team.
const NAME: usize = 64;

/// Returns whether this is a valid name of a user or team.
fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-@+".contains(c);
    !name.is_empty() && name.len() <= NAME && name.chars().all(fits)
}

/// Returns the proof that a user belongs to a team. Names have no slashes, so each pair has a
/// distinct text.
fn prove(cluster: &[u8; 32], user: &str, team: &str) -> [u8; 32] {
    keyed_hash(cluster, &format!("gt badge 1: {user}/{team}"))
}

/// The pair of all users' links.
fn users_pair(cluster: &[u8; 32]) -> KeyPair {
    derive(cluster, "user")
}

/// Derives a pair from a cluster key.
fn derive(cluster: &[u8; 32], purpose: &str) -> KeyPair {
    pair(keyed_hash(cluster, &format!("gt link key 1: {purpose}")))
}

/// BLAKE2b of a text, keyed with the cluster key.
fn keyed_hash(cluster: &[u8; 32], text: &str) -> [u8; 32] {
    let mut hash = [0u8; 32];
    // SAFETY: all pointers are valid for the lengths given, and libsodium keeps none of them.
    let status = unsafe {
        libsodium_sys::crypto_generichash(
            hash.as_mut_ptr(),
            hash.len(),
            text.as_ptr(),
            text.len() as u64,
            cluster.as_ptr(),
            cluster.len(),
        )
    };
    assert_eq!(status, 0, "lengths within BLAKE2b's limits cannot fail");
    hash
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
    fn an_operators_key_is_good_for_watchers_and_no_other_role() {
        let operator = Key::generate().limited(Role::Operator).unwrap();
        assert_eq!(Key::parse(&operator.to_text()).unwrap(), operator);
        let own = operator.link(Role::Operator).unwrap().own;
        assert!(operator.link(Role::Watcher).unwrap().own == own);
        assert!(operator.link(Role::Client).is_err() && operator.link(Role::Worker).is_err());
        let error = Key::generate().limited(Role::Client).unwrap().link(Role::Operator);
        let text = error.err().unwrap().to_string();
        assert!(text.contains("for a client") && text.contains("gt key --role operator"), "{text}");
    }

    #[test]
    fn a_badge_proves_its_user_alone() {
        let key = Key::generate();
        let ada = key.of_user("ada", "vision").unwrap();
        assert_eq!(Key::parse(&ada.to_text()).unwrap(), ada);
        let own = ada.link(Role::Client).unwrap().own;
        assert!(own.public == key.users_public().unwrap());
        for role in Role::ALL {
            assert!(own.public != key.link(role).unwrap().own.public, "{role:?}");
        }
        assert!(ada.link(Role::Worker).is_err() && ada.link(Role::Operator).is_ok());
        assert!(ada.of_user("bob", "").is_err());
        let badge = ada.badge().unwrap();
        assert!(key.proves(badge) && !Key::generate().proves(badge));
        let other = |user: &str, team: &str| Badge {
            user: user.into(),
            team: team.into(),
            proof: badge.proof,
        };
        assert!(!key.proves(&other("bob", "vision")) && !key.proves(&other("ada", "")));
        assert!(!key.proves(&other("ada/vision", "")));
        for bad in ["", "a b", "a:b", "a/b", "\u{e9}", &"x".repeat(65)] {
            assert!(key.of_user(bad, "").is_err(), "{bad}");
        }
        assert!(Key::parse(&ada.to_text().replace("ada", "a da")).is_err());
    }

    #[test]
    fn roles_have_different_pairs() {
        let key = Key::generate();
        let mut publics: Vec<_> =
            Role::ALL.iter().map(|&role| key.link(role).unwrap().own.public).collect();
        publics.sort_unstable();
        publics.dedup();
        assert_eq!(publics.len(), Role::ALL.len());
    }
}
