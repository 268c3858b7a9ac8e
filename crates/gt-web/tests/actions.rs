//! Who may act, with what, and what becomes of it.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gt::drivers::operate::OperatorRequest;
use gt::net::address::Address;
use gt_web::actions::PageOperator;
use gt_web::tunnel::TunnelTarget;
use gt_web::{ActingOptions, Page, WebError};

use crate::http::{Answer, answer_to, connect, get, send, token};
use crate::source::{page_options, start, wait_until};

/// Notes what is asked, and answers once it may.
#[derive(Default)]
pub struct Asked {
    all: Mutex<Vec<(String, OperatorRequest)>>,
    is_held: AtomicBool,
}

struct Fake(Arc<Asked>);

impl PageOperator for Fake {
    fn user(&self) -> Option<&str> {
        None
    }

    fn operate(
        &self,
        reader: &str,
        request: OperatorRequest,
        interrupt: &mut dyn FnMut() -> bool,
    ) -> Result<String, String> {
        self.0.all.lock().unwrap().push((reader.into(), request.clone()));
        while self.0.is_held.load(Ordering::SeqCst) && !interrupt() {
            std::thread::sleep(Duration::from_millis(5));
        }
        match request {
            OperatorRequest::EndSession { .. } => Err("there is no session 'x'".into()),
            _ => Ok("paused <b>x</b>".into()),
        }
    }
}

/// Serves a page that has operators.
pub fn serve() -> (Page, Arc<Asked>) {
    let asked = Arc::new(Asked::default());
    let operator = Arc::new(Fake(asked.clone()));
    let (page, _) = start(&page_options(), Some(ActingOptions { token_file: None, operator }));
    (page.unwrap(), asked)
}

pub fn operators_token(page: &Page) -> &str {
    page.acting_link().unwrap().split_once("#act=").unwrap().1
}

const PAUSE: &str = r#"{"action":"pause","session":"x"}"#;

/// Sends an action with these headers besides the right host and origin.
fn post(page: &Page, headers: &[(&str, &str)], body: &str) -> Answer {
    let (host, origin) = (page.address().to_string(), format!("http://{}", page.address()));
    let own = [("Host", host.as_str()), ("Origin", &origin), ("Content-Type", "application/json")];
    let all: Vec<(&str, &str)> = own.iter().chain(headers).copied().collect();
    send_body(page, &all, body)
}

fn send_body(page: &Page, headers: &[(&str, &str)], body: &str) -> Answer {
    let lines: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    answer_to(
        page,
        &format!(
            "POST /actions HTTP/1.1\r\n{lines}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ),
    )
}

/// Returns the cookie and the proof that the operators' token is exchanged for.
fn sign_in(page: &Page) -> (String, String) {
    let bearer = format!("Bearer {}", operators_token(page));
    let answer = get(page, "/sign-in", &[("Authorization", &bearer)]);
    assert_eq!(answer.status, 200);
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.contains("; HttpOnly; SameSite=Strict"), "{cookie}");
    let proof = answer.body.split('"').nth(3).unwrap().to_string();
    assert!(!cookie.contains(&proof) && !cookie.contains(operators_token(page)));
    (cookie.split(';').next().unwrap().to_string(), proof)
}

#[test]
fn operators_act_with_the_token_or_with_the_cookie_and_the_proof() {
    let (page, asked) = serve();
    let bearer = format!("Bearer {}", operators_token(&page));
    let answer = post(&page, &[("Authorization", &bearer)], PAUSE);
    assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"done":"paused <b>x</b>"}"#));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    let (cookie, proof) = sign_in(&page);
    let both = [("Cookie", cookie.as_str()), ("X-Proof", &proof)];
    let site = ("Sec-Fetch-Site", "same-origin");
    let answer = post(&page, &[both[0], both[1], site], r#"{"action":"end","session":"x"}"#);
    assert_eq!(answer.status, 409);
    assert_eq!(answer.body, r#"{"error":"there is no session 'x'"}"#);
    let all = asked.all.lock().unwrap();
    assert_eq!(all.len(), 2);
    let pause = OperatorRequest::Pause { user: None, name: Some("x".into()), is_paused: true };
    assert_eq!((all[0].0.as_str(), &all[0].1), ("127.0.0.1", &pause));
    // They see what watchers see, and which actions there are.
    assert_eq!(get(&page, "/main.js", &[both[0]]).status, 200);
    let listed = |headers: &[(&str, &str)]| get(&page, "/actions", headers).body;
    let names = r#"{"actions":["pause","resume","end","weigh","drain"],"user":null}"#;
    assert_eq!(listed(&both), names);
    assert_eq!(listed(&[("Authorization", &bearer)]), names);
    assert_eq!(listed(&[both[0]]), r#"{"actions":[]}"#);
}

#[test]
fn watchers_and_strangers_do_not_act() {
    let (page, asked) = serve();
    let watcher = format!("Bearer {}", token(&page));
    let cookie = get(&page, "/sign-in", &[("Authorization", &watcher)]);
    let cookie = cookie.header("set-cookie").unwrap().split(';').next().unwrap().to_string();
    let (operator, proof) = sign_in(&page);
    let guess = format!("{}=0123456789abcdef", operator.split('=').next().unwrap());
    let unlisted = get(&page, "/actions", &[("Cookie", &cookie)]);
    assert_eq!((unlisted.status, unlisted.body.as_str()), (200, r#"{"actions":[]}"#));
    for (headers, status) in [
        (vec![], 401),
        (vec![("Authorization", watcher.as_str())], 403),
        (vec![("Cookie", cookie.as_str())], 403),
        (vec![("Cookie", &cookie), ("X-Proof", &proof)], 403),
        (vec![("X-Proof", &proof)], 401),
        // What another port of this machine would receive.
        (vec![("Cookie", &operator)], 403),
        (vec![("Cookie", &operator), ("X-Proof", "0")], 401),
        (vec![("Cookie", &guess), ("X-Proof", &proof)], 401),
        (vec![("Cookie", &cookie), ("Cookie", &guess)], 401),
        (vec![("Cookie", &cookie), ("Authorization", "Bearer guess")], 401),
    ] {
        let answer = post(&page, &headers, PAUSE);
        assert_eq!((answer.status, answer.body.as_str()), (status, ""), "{headers:?}");
    }
    // Guesses of readers take as long as those of strangers.
    let begin = Instant::now();
    let guess = [("Cookie", cookie.as_str()), ("Authorization", "Bearer 0123456789abcdef")];
    assert_eq!(get(&page, "/actions", &guess).status, 401);
    assert!(begin.elapsed() >= Duration::from_millis(250));
    assert_eq!(asked.all.lock().unwrap().len(), 0);
}

#[test]
fn the_watch_token_opens_no_tunnel_to_a_server_without_keys_if_another_acts() {
    let mut options = page_options();
    let address = Address::Tcp { host: "localhost".into(), port: 9 };
    options.tunnel = Some(TunnelTarget { address, has_keys: false });
    let operator = Arc::new(Fake(Arc::default()));
    let (page, _) = start(&options, Some(ActingOptions { token_file: None, operator }));
    let page = page.unwrap();
    let (watcher, acts) = (token(&page), operators_token(&page));
    let (cookie, proof) = sign_in(&page);
    let get = |headers: &[(&str, &str)]| get(&page, "/connect", headers).status;
    assert_eq!(get(&[("Authorization", &format!("Bearer {watcher}"))]), 401);
    assert_eq!(get(&[("Cookie", &cookie), ("X-Proof", &proof)]), 401);
    assert_eq!(get(&[("Authorization", &format!("Bearer {acts}"))]), 426, "it asks for no tunnel");
}

#[test]
fn cookies_of_an_earlier_start_do_not_refuse_the_right_token() {
    let (page, _) = serve();
    let stale = sign_in(&serve().0).0;
    let stale =
        format!("{}={}", sign_in(&page).0.split('=').next().unwrap(), &stale[stale.len() - 32..]);
    let (watcher, acts) = (token(&page), operators_token(&page));
    let asked = |path: &str, headers: &[(&str, &str)]| get(&page, path, headers).status;
    assert_eq!(asked("/sign-in", &[("Cookie", &stale)]), 401);
    for (right, status) in [(watcher, 204), (acts, 200)] {
        let bearer = format!("Bearer {right}");
        let headers = [("Cookie", stale.as_str()), ("Authorization", &bearer)];
        assert_eq!(asked("/sign-in", &headers), status);
        assert_eq!(asked("/actions", &headers), 200);
    }
    // As the page asks when it has lost the stream of updates.
    let bearer = format!("Bearer {watcher}");
    let cookie = get(&page, "/sign-in", &[("Authorization", &bearer)]);
    let cookie = cookie.header("set-cookie").unwrap().split(';').next().unwrap();
    assert_eq!(asked("/sign-in", &[("Cookie", cookie), ("Cookie", &stale)]), 204);
    // With it, the other cookie could be guessed.
    assert_eq!(asked("/actions", &[("Cookie", cookie), ("Cookie", &stale)]), 401);
}

#[test]
fn other_sites_do_not_act_by_an_operators_browser() {
    let (page, asked) = serve();
    let (cookie, proof) = sign_in(&page);
    let (host, own) = (page.address().to_string(), format!("http://{}", page.address()));
    let operator = [("Cookie", cookie.as_str()), ("X-Proof", &proof)];
    let kind = ("Content-Type", "application/json");
    for (headers, status) in [
        (vec![("Host", host.as_str()), kind], 403),
        (vec![("Host", &host), ("Origin", "http://evil.example"), kind], 403),
        (vec![("Host", &host), ("Origin", "null"), kind], 403),
        (vec![("Host", "evil.example"), ("Origin", "http://evil.example"), kind], 403),
        (vec![("Host", &host), ("Origin", &own), ("Sec-Fetch-Site", "same-site"), kind], 403),
        (vec![("Host", &host), ("Origin", &own), ("Sec-Fetch-Site", "cross-site"), kind], 403),
        (vec![("Host", &host), ("Origin", &own), ("Sec-Fetch-Site", "none"), kind], 403),
        // What a form of another site could send.
        (vec![("Host", &host), ("Origin", &own), ("Content-Type", "text/plain")], 415),
        (vec![("Host", &host), ("Origin", &own)], 415),
    ] {
        let all: Vec<(&str, &str)> = headers.iter().chain(&operator).copied().collect();
        assert_eq!(send_body(&page, &all, PAUSE).status, status, "{headers:?}");
    }
    for (method, path) in
        [("PUT", "/actions"), ("DELETE", "/actions"), ("POST", "/"), ("POST", "/events")]
    {
        let headers = [("Host", host.as_str()), ("Origin", &own), operator[0], operator[1]];
        assert_eq!(send(&page, method, path, &headers).status, 405, "{method} {path}");
    }
    assert_eq!(asked.all.lock().unwrap().len(), 0);
}

#[test]
fn bodies_are_small_whole_and_valid() {
    let (page, asked) = serve();
    let bearer = format!("Bearer {}", operators_token(&page));
    let operator = ("Authorization", bearer.as_str());
    let long = format!(r#"{{"action":"pause","session":"{}"}}"#, "a".repeat(5000));
    for (body, status, part) in [
        ("", 400, "no JSON"),
        ("pause", 400, "no JSON"),
        (r#"{"action":"reboot"}"#, 400, "'reboot', expected one of pause"),
        (&long, 413, "longer than 4096 bytes"),
    ] {
        let answer = post(&page, &[operator], body);
        assert_eq!(answer.status, status, "{body}");
        assert!(answer.body.contains(part), "{body}: {}", answer.body);
        assert_eq!(answer.header("connection"), Some("close"));
    }
    // A body that does not arrive is not awaited for long.
    let address = page.address();
    let head = format!(
        "POST /actions HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\nContent-Type: application/json\r\nAuthorization: {bearer}\r\nContent-Length: 50\r\n\r\n{{"
    );
    let mut stream = connect(address);
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("within 5 s"), "{answer}");
    assert_eq!(asked.all.lock().unwrap().len(), 0);
}

#[test]
fn few_actions_run_at_a_time_and_end_with_the_page() {
    let (page, asked) = serve();
    asked.is_held.store(true, Ordering::SeqCst);
    let bearer = format!("Bearer {}", operators_token(&page));
    let operator = [("Authorization", bearer.as_str())];
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let first: Vec<_> =
            (0..8).map(|_| scope.spawn(|| post(&page, &operator, PAUSE).status)).collect();
        wait_until("eight run", || asked.all.lock().unwrap().len() == 8);
        assert!(begin.elapsed() >= 7 * Duration::from_millis(200), "they start one by one");
        let refused = post(&page, &operator, PAUSE);
        assert_eq!(refused.status, 429);
        assert!(refused.body.contains("8 actions run already"), "{}", refused.body);
        // Readers do not wait for them.
        assert_eq!(get(&page, "/main.js", &operator).status, 200);
        asked.is_held.store(false, Ordering::SeqCst);
        let answers: Vec<u16> = first.into_iter().map(|of| of.join().unwrap()).collect();
        assert_eq!(answers, [200; 8]);
    });
    assert_eq!(post(&page, &operator, PAUSE).status, 200);
    // An action that does not end delays the end of the page by nothing.
    asked.is_held.store(true, Ordering::SeqCst);
    let weak = Arc::downgrade(&asked);
    std::thread::scope(|scope| {
        let address = page.address();
        let token = bearer.clone();
        scope.spawn(move || {
            let mut stream = connect(address);
            let length = PAUSE.len();
            let request = format!(
                "POST /actions HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\nContent-Type: application/json\r\nAuthorization: {token}\r\nContent-Length: {length}\r\n\r\n{PAUSE}"
            );
            stream.write_all(request.as_bytes()).unwrap();
            // The connection ends with the page.
            let _ = stream.read(&mut [0; 1]);
        });
        wait_until("it runs", || asked.all.lock().unwrap().len() == 10);
        drop(page);
    });
    drop(asked);
    wait_until("its thread has ended", || weak.upgrade().is_none());
}

#[test]
fn a_page_without_operators_has_no_actions() {
    let (page, _dispatcher) = crate::source::serve();
    assert_eq!(page.acting_link(), None);
    let bearer = format!("Bearer {}", token(&page));
    assert_eq!(post(&page, &[("Authorization", &bearer)], PAUSE).status, 405);
    let listed = get(&page, "/actions", &[("Authorization", &bearer)]);
    assert_eq!(listed.body, r#"{"actions":[]}"#);
}

#[test]
fn the_two_token_files_have_two_tokens() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    };
    let begin = |own: &str, operators: &str| {
        let mut options = page_options();
        options.token_file = Some(file("own", own));
        let token_file = Some(file("operators", operators));
        let operator = Arc::new(Fake(Arc::default()));
        start(&options, Some(ActingOptions { token_file, operator })).0
    };
    let page = begin("a-token-of-some-length", "another-token-of-some-length").unwrap();
    assert_eq!(page.acting_link(), None);
    let bearer = ("Authorization", "Bearer another-token-of-some-length");
    assert_eq!(post(&page, &[bearer], PAUSE).status, 200);
    let same = begin("a-token-of-some-length", "a-token-of-some-length\n").unwrap_err();
    assert!(matches!(same, WebError::SameToken { .. }), "{same}");
    assert!(same.to_string().contains("everyone who sees the page could act"), "{same}");
}
