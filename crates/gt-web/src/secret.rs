//! Secrets: tokens, and the cookies that replace them in browsers.

use std::fmt::Write;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;

use axum::http::{HeaderMap, header};
use gt::net::private;

use crate::error::WebError;

/// What a browser keeps a cookie for.
const COOKIE_SECONDS: u32 = 30 * 86_400;

/// A secret text, which is compared in constant time and never shown by `Debug`.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Makes one of 128 random bits.
    pub fn random() -> Secret {
        let mut bytes = [0u8; 16];
        getrandom::fill(&mut bytes).expect("the system gives random bytes");
        let hex = bytes.iter().fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        });
        Secret(hex)
    }

    /// Reads one from a file, which holds nothing else.
    ///
    /// # Errors
    /// The file cannot be read, or has another content.
    pub fn read(path: &Path) -> Result<Secret, WebError> {
        let shown = path.display().to_string();
        let unreadable = |error| WebError::TokenFile { path: shown.clone(), error };
        if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(WebError::BadToken { path: shown });
        }
        private::named_file(path)?;
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let mut text = String::new();
        file.take(1024).read_to_string(&mut text).map_err(unreadable)?;
        let text = text.trim();
        let is_valid = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        match (16..=256).contains(&text.len()) && text.chars().all(is_valid) {
            true => Ok(Secret(text.to_string())),
            false => Err(WebError::BadToken { path: shown }),
        }
    }

    /// Makes one of a text, for tests.
    #[cfg(test)]
    pub fn of(text: &str) -> Secret {
        Secret(text.into())
    }

    /// The text, which only its owner may see.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Returns whether a text is this one.
    pub fn is(&self, given: &str) -> bool {
        let (own, given) = (self.0.as_bytes(), given.as_bytes());
        let differs = own
            .iter()
            .zip(given)
            .fold(own.len() ^ given.len(), |sum, (a, b)| black_box(sum | usize::from(a ^ b)));
        differs == 0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The token in `Authorization: Bearer TOKEN`.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Returns the values of the cookies with a name.
pub fn cookies_named<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let each = all.flat_map(|value| value.split(';')).filter_map(|of| of.trim().split_once('='));
    each.filter(move |(of, _)| *of == name).map(|(_, value)| value)
}

/// Returns the header that sets a cookie.
pub fn new_cookie(name: &str, value: &Secret) -> String {
    let value = value.text();
    format!("{name}={value}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Strict")
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_file_holds_one_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let missing = Secret::read(&path).unwrap_err().to_string();
        assert!(missing.contains("token file"), "{missing}");
        for (text, is_valid) in [
            ("0123456789abcdef\n", true),
            ("short", false),
            ("0123456789 abcdef", false),
            ("", false),
        ] {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            assert_eq!(Secret::read(&path).is_ok(), is_valid, "{text:?}");
        }
        let random = Secret::random();
        assert!(random.text().len() == 32 && !random.is(Secret::random().text()));
        assert_eq!(format!("{random:?}"), "Secret(..)");
    }
}
