//! Who may act by the page: the operators' token, and what replaces it in a browser.

use axum::http::{HeaderMap, HeaderName, Method, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::secret::{Secret, bearer, cookies_named, new_cookie};

/// The path of actions.
pub const PATH: &str = "/actions";
/// The path at which tokens are exchanged.
pub const SIGN_IN: &str = "/sign-in";
/// The header of the proof.
const PROOF: HeaderName = HeaderName::from_static("x-proof");

/// The secrets of the page's operators.
#[derive(Debug)]
pub struct ActingRules {
    token: Secret,
    cookie: Secret,
    /// Browsers send a cookie to all ports of a host, but store this for one port. So a program at
    /// another port of this machine that receives the cookie cannot act with it.
    proof: Secret,
    cookie_name: String,
}

impl ActingRules {
    /// The rules of a page at a port.
    pub fn new(token: Secret, port: u16) -> ActingRules {
        let (cookie, proof) = (Secret::random(), Secret::random());
        ActingRules { token, cookie, proof, cookie_name: format!("gt_web_act_{port}") }
    }

    /// Returns whether a text is the token.
    pub fn is_token(&self, given: &str) -> bool {
        self.token.is(given)
    }

    /// Returns whether a request has the cookie: enough to see the page, not to act.
    pub fn has_cookie(&self, headers: &HeaderMap) -> bool {
        cookies_named(headers, &self.cookie_name).any(|given| self.cookie.is(given))
    }

    /// Returns whether a request has a cookie of this name, whatever its value.
    pub fn has_any_cookie(&self, headers: &HeaderMap) -> bool {
        cookies_named(headers, &self.cookie_name).next().is_some()
    }

    /// Returns whether the sender of a request may act: it has the token, or the cookie with the
    /// proof.
    pub fn may_act(&self, headers: &HeaderMap) -> bool {
        let has_token = bearer(headers).is_some_and(|given| self.is_token(given));
        let has_proof = proof(headers).is_some_and(|given| self.proof.is(given));
        has_token || self.has_cookie(headers) && has_proof
    }

    /// Returns whether a request has another proof than the right one.
    pub fn has_wrong_proof(&self, headers: &HeaderMap) -> bool {
        proof(headers).is_some_and(|given| !self.proof.is(given))
    }

    /// Returns whether a request has the cookie, but not with its value.
    pub fn has_wrong_cookie(&self, headers: &HeaderMap) -> bool {
        self.has_any_cookie(headers) && !self.has_cookie(headers)
    }

    /// Returns the answer to a sign-in with the token: the cookie and the proof.
    pub fn sign_in(&self, headers: &HeaderMap) -> Option<Response> {
        let ActingRules { cookie, cookie_name, proof, .. } = self;
        bearer(headers).filter(|given| self.is_token(given)).map(|_| {
            let cookie = [(header::SET_COOKIE, new_cookie(cookie_name, cookie))];
            let answer = serde_json::json!({"proof": proof.text()});
            (cookie, json(&answer)).into_response()
        })
    }
}

/// Returns a value as the content of an answer.
pub fn json(value: &Value) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string())
}

/// Returns whether a request is one for an action.
pub fn is_action(method: &Method, uri: &Uri) -> bool {
    *method == Method::POST && uri.path() == PATH
}

/// Returns whether the page itself, or a program that claims to be it, sent a request. Browsers send
/// the origin with each request that acts, so one without it is not from the page. That the origin
/// is ours is checked for all requests.
pub fn is_from_page(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    headers.contains_key(header::ORIGIN) && sites.all(|site| site == "same-origin")
}

fn proof(headers: &HeaderMap) -> Option<&str> {
    headers.get(PROOF)?.to_str().ok()
}
