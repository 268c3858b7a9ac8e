//! Who gets in, and what others learn.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use gt_web::listen::ListenAddress;
use gt_web::secret::Secret;

use crate::http::{get, get_as_owner, send, token};
use crate::source::{serve, serve_with};

const PRIVATE: [&str; 8] = [
    "/",
    "/events",
    "/metrics",
    "/main.js",
    "/style.css",
    "/sign-in",
    "/views/mine.js",
    "/no-such",
];

#[test]
fn a_stranger_gets_401_and_learns_nothing() {
    let (page, dispatcher) = serve();
    for path in PRIVATE {
        let answer = get(&page, path, &[]);
        assert_eq!(answer.status, 401, "{path}");
        assert_eq!(answer.header("server"), None);
        let said = answer.body.to_lowercase();
        for word in ["gt ", "gt<", "dispatcher", "secret-host", "ada", env!("CARGO_PKG_VERSION")] {
            assert!(!said.contains(word), "{path} says {word}: {said}");
        }
        assert!(path == "/" || said.is_empty(), "{path}: {said}");
    }
    assert_eq!(dispatcher.asked.load(std::sync::atomic::Ordering::SeqCst), 0);
}

#[test]
fn the_token_is_exchanged_for_a_cookie() {
    let (page, _dispatcher) = serve();
    let answer = get_as_owner(&page, "/sign-in");
    assert_eq!(answer.status, 204);
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.contains("; HttpOnly; SameSite=Strict") && !cookie.contains(token(&page)));
    let cookie = cookie.split(';').next().unwrap();
    for (path, kind) in [("/", "text/html"), ("/main.js", "text/javascript")] {
        let answer = get(&page, path, &[("Cookie", cookie)]);
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.header("content-type").unwrap().starts_with(kind), "{path}");
    }
    assert_eq!(get(&page, "/no-such", &[("Cookie", cookie)]).status, 404);
    assert_eq!(get(&page, "/../Cargo.toml", &[("Cookie", cookie)]).status, 404);
    // The cookie is no token, and asks for no other cookie.
    let value = cookie.split_once('=').unwrap().1;
    let as_token = get(&page, "/", &[("Authorization", &format!("Bearer {value}"))]);
    assert_eq!(as_token.status, 401);
    assert_eq!(get(&page, "/sign-in", &[("Cookie", cookie)]).header("set-cookie"), None);
    // A token in an address would reach logs: it is worth nothing there.
    assert_eq!(get(&page, &format!("/?token={}", token(&page)), &[]).status, 401);
    let (other, _) = serve();
    assert_eq!(get(&other, "/", &[("Cookie", cookie)]).status, 401);
}

#[test]
fn wrong_tokens_are_answered_slowly_and_right_ones_at_once() {
    let (page, _dispatcher) = serve();
    std::thread::scope(|scope| {
        let wrong = |number: u32| {
            let page = &page;
            let bearer = format!("Bearer {number:032x}");
            scope.spawn(move || get(page, "/metrics", &[("Authorization", &bearer)]).status)
        };
        let begin = Instant::now();
        let guesses: Vec<_> = (0..24).map(wrong).collect();
        for _ in 0..20 {
            assert_eq!(get_as_owner(&page, "/main.js").status, 200);
        }
        let owner = begin.elapsed();
        let answers: Vec<u16> = guesses.into_iter().map(|of| of.join().unwrap()).collect();
        let slow = answers.iter().filter(|status| **status == 401).count() as u32;
        assert!(answers.iter().all(|status| [401, 429].contains(status)), "{answers:?}");
        assert!(slow >= 16, "{answers:?}");
        // One after the other, at least a quarter of a second each.
        let all = begin.elapsed();
        assert!(all >= slow * Duration::from_millis(250), "{all:?}");
        assert!(owner < all / 2, "the owner took {owner:?} of {all:?}"); // not one of their turns
    });
}

#[test]
fn other_hosts_origins_and_methods_are_refused_even_with_the_token() {
    let (page, _dispatcher) = serve_with(|options| options.names = vec!["gt.example.com".into()]);
    let bearer = format!("Bearer {}", token(&page));
    let own = page.address().to_string();
    let port = page.address().port();
    let localhost = format!("localhost:{port}");
    for host in [&own, &localhost, "gt.example.com"] {
        let headers = [("Host", host), ("Authorization", &bearer)];
        assert_eq!(send(&page, "GET", "/", &headers).status, 200, "{host}");
        let origin = format!("http://{host}");
        let headers = [("Host", host), ("Origin", &origin), ("Authorization", &bearer)];
        assert_eq!(send(&page, "GET", "/", &headers).status, 200, "{origin}");
    }
    for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "FOO"] {
        for path in ["/", "/events", "/healthz", "/sign-in.js", "/no-such"] {
            let rebound = format!("evil.example:{port}");
            for headers in [
                vec![("Host", rebound.as_str()), ("Authorization", &bearer)],
                vec![("Host", "evil.example"), ("Authorization", &bearer)],
                vec![("Host", &own), ("Origin", "http://evil.example"), ("Authorization", &bearer)],
                vec![("Host", &own), ("Origin", "null"), ("Authorization", &bearer)],
                // Another host that the page is served at is another origin.
                vec![
                    ("Host", &own),
                    ("Origin", "https://gt.example.com:9999"),
                    ("Authorization", &bearer),
                ],
                vec![("Authorization", bearer.as_str())],
            ] {
                let answer = send(&page, method, path, &headers);
                assert_eq!(answer.status, 403, "{method} {path} {headers:?}");
                let said = if method == "HEAD" {
                    ""
                } else {
                    "This host or origin is not one that is served here.\n"
                };
                assert_eq!(answer.body, said);
            }
            if !["GET", "HEAD"].contains(&method) {
                let headers = [("Host", own.as_str()), ("Authorization", &bearer)];
                assert_eq!(send(&page, method, path, &headers).status, 405, "{method} {path}");
            }
        }
    }
    // The host of a request to a proxy counts, too.
    let target = format!("http://evil.example:{port}/");
    let headers = [("Host", own.as_str()), ("Authorization", &bearer)];
    assert_eq!(send(&page, "GET", &target, &headers).status, 403);
}

#[test]
fn every_answer_has_the_headers_that_browsers_obey() {
    let (page, _dispatcher) = serve();
    let answers = [
        get(&page, "/", &[]),
        get_as_owner(&page, "/"),
        get_as_owner(&page, "/main.js"),
        get_as_owner(&page, "/no-such"),
        get(&page, "/healthz", &[]),
        get(&page, "/", &[("Origin", "http://evil.example")]),
    ];
    for answer in answers {
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("script-src 'self'"));
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
}

#[test]
fn a_token_file_has_the_token_instead_of_the_link() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "a-token-of-some-length\n").unwrap();
    let set_mode = |mode| std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    set_mode(0o644);
    let refused = Secret::read(&path).unwrap_err().to_string();
    assert!(refused.contains("others may use it"), "{refused}");
    assert!(Secret::read(folder.path()).unwrap_err().to_string().contains("no token in it"));
    set_mode(0o600);
    let (page, _dispatcher) = serve_with(|options| options.token_file = Some(path.clone()));
    assert_eq!(page.link(), format!("http://{}/", page.address()));
    let status =
        |token: &str| get(&page, "/", &[("Authorization", &format!("Bearer {token}"))]).status;
    assert_eq!([status("a-token-of-some-length"), status("another")], [200, 401]);
}

#[test]
fn a_page_that_ends_frees_its_port() {
    let (page, _dispatcher) = serve();
    let at = ListenAddress::parse(&page.address().to_string()).unwrap();
    assert!(at.bind(false).is_err());
    drop(page);
    at.bind(false).unwrap();
}
