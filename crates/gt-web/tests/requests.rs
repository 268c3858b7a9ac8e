//! Requests that are valid but for what a seed changes.

use crate::random::Random;

const METHODS: [&str; 12] = [
    "GET", "GET", "GET", "GET", "POST", "POST", "HEAD", "OPTIONS", "PUT", "CONNECT", "get", "\0GET",
];
const PATHS: [&str; 27] = [
    "/",
    "/events",
    "/metrics",
    "/sign-in",
    "/actions",
    "/connect",
    "/recordings",
    "/recordings/1",
    "/recordings/1.json",
    "/recordings/../../etc/passwd",
    "/recordings/%00",
    "/sessions/1",
    "/sessions/1?explain",
    "/sessions/99999999999999999999",
    "/sessions/-1",
    "/sessions/%31",
    "/sessions/1/../../metrics",
    "/healthz",
    "/main.js",
    "/views/../main.js",
    "/%2e%2e/%2e%2e/etc/passwd",
    "//evil.example/",
    "http://evil.example/metrics",
    "*",
    "",
    "/\u{e9}\u{1f980}",
    "/metrics?%ff&a=%zz#x",
];
const VERSIONS: [&str; 6] = ["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/"];
const NAMES: [&str; 14] = [
    "Host",
    "Authorization",
    "Cookie",
    "Origin",
    "Content-Length",
    "Content-Type",
    "Connection",
    "Upgrade",
    "Transfer-Encoding",
    "Expect",
    "X-GT-Proof",
    "Sec-WebSocket-Key",
    "a",
    " ",
];
const VALUES: [&str; 20] = [
    "",
    "-1",
    "0",
    "18446744073709551616",
    "close",
    "keep-alive",
    "upgrade",
    "websocket",
    "chunked",
    "gzip, chunked",
    "100-continue",
    "null",
    "http://evil.example",
    "evil.example:80",
    "Bearer ",
    "Basic YTpi",
    "application/json",
    "a=b; c=d",
    "\u{ff}\u{fe}",
    "\t \0",
];
const BODIES: [&str; 9] = [
    r#"{"seconds": 1, "session": null}"#,
    r#"{"seconds": 1e999}"#,
    r#"{"seconds": 99999999999999999999, "session": -1}"#,
    r#"{"action": "pause", "session": "train.py"}"#,
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    r#"{"a": "\ud800"}"#,
    "\u{0}\u{1}",
    "null",
    "",
];

/// Returns the bytes of one request or of several, with a token, for a host; then changes some.
pub fn request(random: &mut Random, host: &str, token: &str) -> Vec<u8> {
    if random.is_one_of(20) {
        let count = random.below(3000);
        return random.bytes(count);
    }
    let count = if random.is_one_of(6) { 1 + random.below(12) } else { 1 };
    let mut bytes: Vec<u8> = (0..count).flat_map(|_| one(random, host, token)).collect();
    for _ in 0..[0, 0, 0, 1, 2, 8][random.below(6)] {
        mutate(random, &mut bytes);
    }
    bytes
}

fn one(random: &mut Random, host: &str, token: &str) -> Vec<u8> {
    let (method, path) = (random.pick(&METHODS), random.pick(&PATHS));
    let mut path = path.to_string();
    if random.is_one_of(12) {
        path.push_str(&"%41a/".repeat(random.below(6000)));
    }
    let body = random.pick(&BODIES);
    let mut lines = vec![format!("{method} {path} {}", random.pick(&VERSIONS))];
    let mut add = |random: &mut Random, name: &str, value: &str| {
        // Each is left out now and then, or there are two.
        for _ in 0..[0, 1, 1, 1, 1, 1, 1, 1, 1, 2][random.below(10)] {
            lines.push(format!("{name}: {value}"));
        }
    };
    add(random, "Host", host);
    add(random, "Authorization", &format!("Bearer {token}"));
    if method == "POST" || random.is_one_of(5) {
        add(random, "Origin", &format!("http://{host}"));
        add(random, "Content-Type", "application/json");
    }
    if path == "/connect" {
        add(random, "Upgrade", "websocket");
        add(random, "Connection", "upgrade");
        add(random, "Sec-WebSocket-Version", "13");
        add(random, "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
        add(random, "Sec-WebSocket-Protocol", "gt");
    }
    for _ in 0..[0, 0, 0, 1, 3, 80][random.below(6)] {
        let (name, value) = (random.pick(&NAMES), random.pick(&VALUES));
        add(random, name, value);
    }
    if random.is_one_of(15) {
        let long = "b".repeat(random.below(70_000));
        add(random, "a", &long);
    }
    let mut sent = body.as_bytes().to_vec();
    if random.is_one_of(3) {
        add(random, "Transfer-Encoding", "chunked");
        sent = chunked(random, body);
    } else if method == "POST" || !random.is_one_of(3) {
        let length = if random.is_one_of(5) { random.below(100_000) } else { body.len() };
        add(random, "Content-Length", &length.to_string());
    }
    let mut bytes = format!("{}\r\n\r\n", lines.join("\r\n")).into_bytes();
    bytes.append(&mut sent);
    bytes
}

/// Returns a body in chunks, whose sizes are wrong now and then.
fn chunked(random: &mut Random, body: &str) -> Vec<u8> {
    let size = match random.below(6) {
        0 => "ffffffffffffffff".to_string(),
        1 => "-1".into(),
        2 => format!("{:x};{}", body.len(), "e".repeat(random.below(30_000))),
        _ => format!("{:x}", body.len()),
    };
    let end = random.pick(&["0\r\n\r\n", "0\r\n\r\n", "0\r\na: b\r\n\r\n", "0\r\n", ""]);
    format!("{size}\r\n{body}\r\n{end}").into_bytes()
}

/// Changes, removes, doubles or adds some bytes.
fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    let at = random.below(bytes.len());
    let to = (at + 1 + random.below(40)).min(bytes.len());
    match random.below(6) {
        0 => bytes[at] = random.next() as u8,
        1 => bytes[at] ^= 1 << random.below(8),
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at..to)),
        4 => {
            let part = bytes[at..to].to_vec();
            bytes.splice(at..at, part);
        }
        _ => {
            let count = 1 + random.below(8);
            let part = random.bytes(count);
            bytes.splice(at..at, part);
        }
    }
}
