//! Garbage, endless and slow requests, and many connections: each costs itself.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::http::{LIMIT, connect, get, get_as_owner, token};
use crate::source::serve;

/// Numbers that look random, from a seed.
fn random_bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..count).map(|_| next()).collect()
}

/// Sends bytes, and returns what is answered until the connection ends. A connection that is reset
/// has ended, too.
fn exchange(stream: &mut TcpStream, bytes: &[u8]) -> Vec<u8> {
    let mut answer = Vec::new();
    let _ = stream.write_all(bytes);
    match stream.read_to_end(&mut answer) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("{error}"),
    }
    answer
}

#[test]
fn garbage_is_answered_by_an_error_or_not_at_all() {
    let (page, _dispatcher) = serve();
    let valid = format!(
        "GET /metrics HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
        page.address(),
        token(&page)
    );
    let mut cases: Vec<Vec<u8>> =
        (0..150).map(|seed| random_bytes(seed, 1 + seed as usize * 7)).collect();
    // A valid request with one byte of it changed, and a part of it.
    for seed in 0..150 {
        let noise = random_bytes(seed + 1000, 3);
        let mut changed = valid.clone().into_bytes();
        let at = (usize::from(noise[0]) << 8 | usize::from(noise[1])) % changed.len();
        changed[at] = noise[2];
        cases.push(changed.clone());
        changed.truncate(at);
        cases.push(changed);
    }
    for text in [
        "GET / HTTP/9.9\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\u{fc}\x03\x03",
        "\r\n\r\n\r\n",
        "GET",
    ] {
        cases.push(text.as_bytes().to_vec());
    }
    for bytes in cases {
        let mut stream = connect(page.address());
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let answer = exchange(&mut stream, &[]);
        let text = String::from_utf8_lossy(&answer);
        let is_ours = ["", "HTTP/1.1 ", "HTTP/1.0 "]
            .iter()
            .any(|start| text.starts_with(start) && (!start.is_empty() || text.is_empty()));
        assert!(is_ours, "{bytes:?}: {text}");
        assert!(!text.contains(" 500 "), "{bytes:?}: {text}");
    }
    assert_eq!(get_as_owner(&page, "/").status, 200);
}

#[test]
fn heads_without_end_are_refused() {
    let (page, _dispatcher) = serve();
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(1000));
    let long = format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "b".repeat(1 << 20));
    let path = format!("GET /{} HTTP/1.1\r\n\r\n", "b".repeat(1 << 20));
    for request in [many, long, path] {
        let answer = exchange(&mut connect(page.address()), request.as_bytes());
        let text = String::from_utf8_lossy(&answer);
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 4"), "{text}");
    }
    assert_eq!(get_as_owner(&page, "/").status, 200);
}

#[test]
fn slow_and_idle_connections_end() {
    let (page, _dispatcher) = serve();
    let mut idle = connect(page.address());
    let mut half = connect(page.address());
    half.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    let mut kept = connect(page.address());
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", page.address());
    kept.write_all(request.as_bytes()).unwrap();
    // A head that arrives byte by byte takes no longer than one that does not arrive.
    let mut drop_by_drop = connect(page.address());
    let begin = Instant::now();
    while drop_by_drop.write_all(b"G").is_ok() {
        assert!(begin.elapsed() < LIMIT, "it still accepts bytes");
        std::thread::sleep(Duration::from_millis(100));
    }
    exchange(&mut idle, &[]);
    exchange(&mut half, &[]);
    let answer = exchange(&mut kept, &[]);
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    assert_eq!(get_as_owner(&page, "/").status, 200);
}

#[test]
fn more_connections_than_allowed_wait_for_the_end_of_others() {
    let (page, _dispatcher) = serve();
    let silent: Vec<TcpStream> = (0..400).map(|_| connect(page.address())).collect();
    // Those of strangers end after some seconds without a request.
    assert_eq!(get_as_owner(&page, "/").status, 200);
    drop(silent);
    assert_eq!(get(&page, "/healthz", &[]).body, "ok\n");
}
