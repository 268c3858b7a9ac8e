//! Who may see the page: its token, the cookie that replaces it, and requests of other sites.

use std::fmt::Write;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use gt::net::private;
use tokio::sync::{Mutex, Semaphore};

use crate::error::WebError;
use crate::listen::ServedHosts;

/// The time for which a wrong token is answered, one after the other.
const PAUSE: Duration = Duration::from_millis(250);
/// The number of wrong tokens that wait for their answer; others are refused at once.
const WAITING: usize = 16;
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

    /// The text, which only its owner may see.
    pub fn text(&self) -> &str {
        &self.0
    }

    fn is(&self, given: &str) -> bool {
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

/// What the rules say about a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It has the token or the cookie.
    Granted,
    /// It has neither.
    Unknown,
    /// It has another token or cookie.
    Wrong,
    /// Whoever sent it may not have an answer.
    Refused(StatusCode),
}

/// The rules of a page.
#[derive(Debug)]
pub struct AccessRules {
    token: Secret,
    /// Not the token: other programs on this machine at which a browser looks receive it, too.
    cookie: Secret,
    cookie_name: String,
    hosts: ServedHosts,
    waiting: Semaphore,
    gate: Mutex<()>,
}

impl AccessRules {
    /// The rules of a page at a port.
    pub fn new(token: Secret, hosts: ServedHosts, port: u16) -> AccessRules {
        AccessRules {
            token,
            cookie: Secret::random(),
            // Cookies are shared by all ports of a host.
            cookie_name: format!("gt_web_{port}"),
            hosts,
            waiting: Semaphore::new(WAITING),
            gate: Mutex::new(()),
        }
    }

    /// Returns what the rules say about a request.
    pub fn check(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Admission {
        if !self.is_for_us(uri, headers) {
            return Admission::Refused(StatusCode::FORBIDDEN);
        }
        if !matches!(*method, Method::GET | Method::HEAD) {
            return Admission::Refused(StatusCode::METHOD_NOT_ALLOWED);
        }
        let (cookies, bearer) = (self.cookies(headers), bearer(headers));
        let has_right_cookie = cookies.iter().any(|given| self.cookie.is(given));
        match (has_right_cookie || self.is_token(bearer), cookies.is_empty() && bearer.is_none()) {
            (true, _) => Admission::Granted,
            (false, true) => Admission::Unknown,
            (false, false) => Admission::Wrong,
        }
    }

    /// Returns the cookie to set, if a request has the token itself.
    pub fn cookie_for(&self, headers: &HeaderMap) -> Option<String> {
        let AccessRules { cookie, cookie_name, .. } = self;
        self.is_token(bearer(headers)).then(|| {
            let value = cookie.text();
            format!(
                "{cookie_name}={value}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Strict"
            )
        })
    }

    /// Waits as long as the answer to a wrong token takes, and returns the answer. Right tokens
    /// never wait.
    pub async fn delay(&self) -> StatusCode {
        let Ok(_place) = self.waiting.try_acquire() else {
            return StatusCode::TOO_MANY_REQUESTS;
        };
        let _turn = self.gate.lock().await;
        tokio::time::sleep(PAUSE).await;
        StatusCode::UNAUTHORIZED
    }

    fn is_token(&self, bearer: Option<&str>) -> bool {
        bearer.is_some_and(|given| self.token.is(given))
    }

    /// Returns whether a browser sent a request for the page, not for another site that leads here
    /// or that embeds the page.
    fn is_for_us(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        let is_ours = host.is_some_and(|host| self.hosts.contains(host));
        // A request to a proxy names the host twice.
        let authority = uri.authority().map(|of| self.hosts.contains(of.as_str()));
        let is_origin = |origin: &header::HeaderValue| {
            let origin = origin.to_str().ok();
            origin.zip(host).is_some_and(|(origin, host)| is_origin_of(origin, host))
        };
        is_ours
            && hosts.next().is_none()
            && authority != Some(false)
            && headers.get_all(header::ORIGIN).iter().all(is_origin)
            && !is_embedded(headers)
    }

    /// The values of our cookie.
    fn cookies<'a>(&self, headers: &'a HeaderMap) -> Vec<&'a str> {
        let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let each =
            all.flat_map(|value| value.split(';')).filter_map(|of| of.trim().split_once('='));
        each.filter(|(name, _)| *name == self.cookie_name).map(|(_, value)| value).collect()
    }
}

/// Returns whether an origin, as `http://127.0.0.1:8265`, is the host of a request.
fn is_origin_of(origin: &str, host: &str) -> bool {
    let own = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    own.is_some_and(|own| own.eq_ignore_ascii_case(host))
}

/// The token in `Authorization: Bearer TOKEN`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Returns whether a page of another origin, as at another port of this machine, has made the
/// browser ask: its cookie is then sent, as ports do not make a site.
fn is_embedded(headers: &HeaderMap) -> bool {
    let get = |name: &str| headers.get(name).map_or(&b""[..], |value| value.as_bytes());
    let (site, mode) = (get("sec-fetch-site"), get("sec-fetch-mode"));
    matches!(site, b"cross-site" | b"same-site") && mode != b"navigate"
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use axum::http::HeaderValue;

    use super::*;

    fn access() -> AccessRules {
        let hosts = ServedHosts::new("127.0.0.1:8265".parse().unwrap(), &[]).unwrap();
        AccessRules::new(Secret("0123456789abcdef".into()), hosts, 8265)
    }

    fn check(access: &AccessRules, method: &str, headers: &[(&'static str, &str)]) -> Admission {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        access.check(&method.parse().unwrap(), &"/".parse().unwrap(), &map)
    }

    const HOST: (&str, &str) = ("host", "127.0.0.1:8265");

    #[test]
    fn the_token_and_the_cookie_are_compared_as_a_whole() {
        let access = access();
        let bearer = |token: &str| {
            check(&access, "GET", &[HOST, ("authorization", &format!("Bearer {token}"))])
        };
        assert_eq!(bearer("0123456789abcdef"), Admission::Granted);
        for wrong in ["", "0", "0123456789abcde", "0123456789abcdeg", "0123456789abcdef0"] {
            assert_eq!(bearer(wrong), Admission::Wrong, "{wrong}");
        }
        let cookie = |text: &str| check(&access, "GET", &[HOST, ("cookie", text)]);
        let right = format!("gt_web_8265={}", access.cookie.text());
        assert_eq!(cookie(&right), Admission::Granted);
        assert_eq!(cookie(&format!("a=b; {right}; c")), Admission::Granted);
        assert_eq!(cookie("gt_web_8265=0123456789abcdef"), Admission::Wrong);
        assert_eq!(cookie("gt_web_1=2; other"), Admission::Unknown);
        assert_eq!(check(&access, "HEAD", &[HOST]), Admission::Unknown);
    }

    #[test]
    fn requests_of_other_sites_and_other_methods_are_refused() {
        let access = access();
        let forbidden = Admission::Refused(StatusCode::FORBIDDEN);
        let token = ("authorization", "Bearer 0123456789abcdef");
        for method in ["GET", "HEAD", "POST", "OPTIONS", "DELETE", "FOO"] {
            for headers in [
                vec![("host", "evil.com:8265"), token],
                vec![token],
                vec![HOST, HOST, token],
                vec![HOST, token, ("origin", "http://evil.com")],
                vec![HOST, token, ("origin", "null")],
                vec![HOST, token, ("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors")],
            ] {
                assert_eq!(check(&access, method, &headers), forbidden, "{method} {headers:?}");
            }
            let own = [HOST, token, ("origin", "http://127.0.0.1:8265")];
            let is_served = matches!(method, "GET" | "HEAD");
            let expected = match is_served {
                true => Admission::Granted,
                false => Admission::Refused(StatusCode::METHOD_NOT_ALLOWED),
            };
            assert_eq!(check(&access, method, &own), expected, "{method}");
        }
        let link = [HOST, token, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
        assert_eq!(check(&access, "GET", &link), Admission::Granted);
    }

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
