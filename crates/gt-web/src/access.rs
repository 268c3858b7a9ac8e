//! Who may see the page: its token, the cookie that replaces it, and requests of other sites.

use std::time::Duration;

use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use tokio::sync::{Mutex, Semaphore};

use crate::acting::{self, ActingRules};
use crate::listen::ServedHosts;
use crate::recordings;
use crate::secret::{Secret, bearer, cookies_named, new_cookie};

/// The time for which a wrong token is answered, one after the other.
const PAUSE: Duration = Duration::from_millis(250);
/// The number of wrong tokens that wait for their answer; others are refused at once.
const WAITING: usize = 16;

/// What the rules say about a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It has the token or the cookie.
    Granted,
    /// It has neither.
    Unknown,
    /// It has another token or cookie.
    Wrong,
    /// It may see the page, and asks to act.
    Watcher,
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
    /// Without them, no reader may act.
    acting: Option<ActingRules>,
    hosts: ServedHosts,
    waiting: Semaphore,
    gate: Mutex<()>,
}

impl AccessRules {
    /// The rules of a page at a port.
    pub fn new(
        token: Secret,
        acting: Option<ActingRules>,
        hosts: ServedHosts,
        port: u16,
    ) -> AccessRules {
        AccessRules {
            token,
            cookie: Secret::random(),
            // Cookies are shared by all ports of a host.
            cookie_name: format!("gt_web_{port}"),
            acting,
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
        let reader = self.check_reader(headers);
        match (&self.acting, matches!(*method, Method::GET | Method::HEAD)) {
            // A reader who guesses the operators' token is as slow as a stranger.
            (Some(acting), true) if reader == Admission::Granted => {
                let is_guess = match uri.path() {
                    acting::PATH => self.is_guess(acting, headers),
                    // The answer does not depend on cookies, which may be of an earlier start.
                    acting::SIGN_IN => self.has_wrong_token(headers),
                    _ => false,
                };
                if is_guess { Admission::Wrong } else { reader }
            }
            (_, true) => reader,
            (Some(acting), false) if acting::is_action(method, uri) => match reader {
                _ if !acting::is_from_page(headers) => Admission::Refused(StatusCode::FORBIDDEN),
                Admission::Granted if acting.may_act(headers) => Admission::Granted,
                Admission::Granted if self.is_guess(acting, headers) => Admission::Wrong,
                Admission::Granted => Admission::Watcher,
                other => other,
            },
            // Readers record, too. Other sites do not, as they have no right origin.
            (_, false) if recordings::is_start(method, uri) => match reader {
                _ if !acting::is_from_page(headers) => Admission::Refused(StatusCode::FORBIDDEN),
                other => other,
            },
            (_, false) => Admission::Refused(StatusCode::METHOD_NOT_ALLOWED),
        }
    }

    /// The rules of a tunnel to a server without keys, for those who may see the page. Browsers send
    /// cookies to all ports of a host, so it takes the token itself; that of those who may act, if
    /// there is one, as all who connect to such a server may act.
    pub fn check_tunnel(&self, headers: &HeaderMap) -> Admission {
        let is_right = |given: &str| match &self.acting {
            Some(acting) => acting.is_token(given),
            None => self.token.is(given),
        };
        match bearer(headers) {
            Some(given) if is_right(given) => Admission::Granted,
            Some(_) => Admission::Wrong,
            None => Admission::Unknown,
        }
    }

    /// The rules for readers. Operators are readers, too.
    fn check_reader(&self, headers: &HeaderMap) -> Admission {
        let bearer = bearer(headers);
        let acting = self.acting.as_ref();
        let mut cookies = cookies_named(headers, &self.cookie_name).peekable();
        let has_none = bearer.is_none()
            && cookies.peek().is_none()
            && !acting.is_some_and(|acting| acting.has_any_cookie(headers));
        let is_right = bearer.is_some_and(|given| self.is_any_token(given))
            || cookies.any(|given| self.cookie.is(given))
            || acting.is_some_and(|acting| acting.has_cookie(headers));
        match (is_right, has_none) {
            (true, _) => Admission::Granted,
            (false, true) => Admission::Unknown,
            (false, false) => Admission::Wrong,
        }
    }

    /// Returns whether a reader who may not act has tried a token, a proof or a cookie. Beside a
    /// right token, a cookie is what a browser has kept from an earlier start.
    fn is_guess(&self, acting: &ActingRules, headers: &HeaderMap) -> bool {
        let is_guess = match bearer(headers) {
            Some(_) => self.has_wrong_token(headers),
            None => acting.has_wrong_cookie(headers),
        };
        !acting.may_act(headers) && (is_guess || acting.has_wrong_proof(headers))
    }

    fn has_wrong_token(&self, headers: &HeaderMap) -> bool {
        bearer(headers).is_some_and(|given| !self.is_any_token(given))
    }

    /// Returns whether the sender of a request may act.
    pub fn may_act(&self, headers: &HeaderMap) -> bool {
        self.acting.as_ref().is_some_and(|acting| acting.may_act(headers))
    }

    /// Returns the answer to a sign-in, if a request has a token itself.
    pub fn sign_in(&self, headers: &HeaderMap) -> Option<Response> {
        if let Some(answer) = self.acting.as_ref().and_then(|acting| acting.sign_in(headers)) {
            return Some(answer);
        }
        bearer(headers).filter(|given| self.token.is(given)).map(|_| {
            let cookie = [(header::SET_COOKIE, new_cookie(&self.cookie_name, &self.cookie))];
            (StatusCode::NO_CONTENT, cookie).into_response()
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

    fn is_any_token(&self, given: &str) -> bool {
        let is_operators = self.acting.as_ref().is_some_and(|acting| acting.is_token(given));
        self.token.is(given) || is_operators
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
}

/// Returns whether an origin, as `http://127.0.0.1:8265`, is the host of a request.
fn is_origin_of(origin: &str, host: &str) -> bool {
    let own = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    own.is_some_and(|own| own.eq_ignore_ascii_case(host))
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
    use axum::http::HeaderValue;

    use super::*;

    fn access() -> AccessRules {
        let hosts = ServedHosts::new("127.0.0.1:8265".parse().unwrap(), &[]).unwrap();
        AccessRules::new(Secret::of("0123456789abcdef"), None, hosts, 8265)
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
}
