//! Requests that are derived from valid ones by a seed: each is answered by a status or not at all,
//! strangers learn nothing, and a valid request afterwards is served.
//!
//! `GT_FUZZ_WEB` is the number of cases of a longer run, `GT_FUZZ_WEB_FIRST` the first seed. A
//! failure names its seed.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gt::net::address::Address;
use gt_web::Page;
use gt_web::tunnel::TunnelTarget;

use crate::http::{LIMIT, connect, get_as_owner, token};
use crate::random::Random;
use crate::requests::request;
use crate::source::{serve_with, wait_until};

/// The cases of the usual run.
const CASES: u64 = 400;
/// A case takes no longer than the page's own limits: five seconds for a head, and as many for a
/// body that is discarded. The rest is for a machine that does other things, too.
const LONGEST: Duration = Duration::from_secs(25);
/// How long updates and tunnels are read, which do not end by themselves.
const READ: Duration = Duration::from_millis(60);
/// What only those may see who have the token: names of the status, of the page and of GT.
const SECRETS: [&str; 7] =
    ["train", "ada@", "secret-host", "vision", "gt_sessions", "uPlot", "matmul"];

/// A page with recordings, a tunnel to a server without keys, and no operators.
struct Lab {
    page: Page,
    _server: TcpListener,
}

impl Lab {
    fn new() -> Lab {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let address = Address::Tcp { host: "localhost".into(), port };
        let target = TunnelTarget { address, has_keys: false };
        let (page, _) = serve_with(|options| options.tunnel = Some(target));
        Lab { page, _server: server }
    }

    /// Sends a case, and checks what is answered.
    fn run(&self, seed: u64) {
        let mut random = Random::new(seed);
        let is_stranger = random.is_one_of(2);
        let key = if is_stranger { "0".repeat(32) } else { token(&self.page).to_string() };
        let bytes = request(&mut random, &self.page.address().to_string(), &key);
        let begin = Instant::now();
        let answer = self.exchange(&mut random, &bytes);
        let took = begin.elapsed();
        let said = || format!("seed {seed}\n{}\n--\n{}", begin_of(&bytes), begin_of(&answer));
        assert!(took < LONGEST, "it took {took:?}: {}", said());
        let text = String::from_utf8_lossy(&answer);
        assert!(text.is_empty() || text.starts_with("HTTP/1."), "no answer of HTTP: {}", said());
        for status in statuses(&text) {
            let is_known = matches!(status, 100 | 101 | 200..=204 | 400..=499 | 503);
            assert!(is_known, "status {status}: {}", said());
        }
        if is_stranger {
            for secret in SECRETS {
                assert!(!text.contains(secret), "a stranger reads {secret}: {}", said());
            }
        }
    }

    /// Writes bytes, maybe in pieces, and reads until the connection ends or the answer does not.
    fn exchange(&self, random: &mut Random, bytes: &[u8]) -> Vec<u8> {
        let mut stream = connect(self.page.address());
        stream.set_read_timeout(Some(READ)).unwrap();
        let pieces = if random.is_one_of(8) { 1 + random.below(20) } else { 1 };
        for piece in bytes.chunks((bytes.len() / pieces).max(1)) {
            // It may have been refused already.
            if stream.write_all(piece).is_err() {
                break;
            }
            if pieces > 1 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        if random.is_one_of(4) {
            // One that does not read, or leaves before the answer.
            return Vec::new();
        }
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let mut part = [0; 1 << 14];
        let until = Instant::now() + LIMIT;
        while Instant::now() < until {
            match stream.read(&mut part) {
                Ok(0) => return answer,
                Ok(count) => answer.extend_from_slice(&part[..count]),
                Err(error) if is_slow(&error) && is_endless(&answer) => return answer,
                Err(error) if is_slow(&error) => {}
                Err(_) => return answer,
            }
        }
        panic!("the connection does not end: {}", begin_of(bytes));
    }
}

/// Returns the first bytes of a case as text, which may be long.
fn begin_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(1500)]).into_owned()
}

fn is_slow(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Returns whether an answer is one that the page does not end soon: updates, or a tunnel.
fn is_endless(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    text.contains("text/event-stream") || text.contains(" 101 ")
}

/// Returns the statuses of answers that follow one another.
fn statuses(text: &str) -> Vec<u16> {
    let heads = text.split("\r\n").filter(|line| line.starts_with("HTTP/1."));
    heads.filter_map(|line| line.split(' ').nth(1)?.parse().ok()).collect()
}

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok().filter(|text| !text.is_empty());
    given.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

/// The panics of threads that serve pages. A connection hides them: it ends.
static PANICS: AtomicUsize = AtomicUsize::new(0);

fn count_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().name().is_some_and(|name| name.starts_with("gt-web")) {
            PANICS.fetch_add(1, Ordering::SeqCst);
        }
        before(panic);
    }));
}

#[test]
fn derived_requests_are_answered_and_leave_nothing() {
    count_panics();
    let lab = Lab::new();
    let before = connections(&lab.page);
    let first = number("GT_FUZZ_WEB_FIRST", 0);
    let count = number("GT_FUZZ_WEB", CASES);
    // Several at a time: what one sends is not to disturb others.
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let lab = &lab;
            scope.spawn(move || {
                (first..first + count).skip(thread).step_by(8).for_each(|seed| lab.run(seed));
            });
        }
    });
    let answer = get_as_owner(&lab.page, "/metrics");
    assert_eq!((answer.status, answer.body.contains("gt_sessions")), (200, true));
    wait_until("connections remain", || connections(&lab.page) <= before);
    assert_eq!(PANICS.load(Ordering::SeqCst), 0, "the page's thread has panicked; see above");
}

/// Returns the number of connections at the page's end, as the system lists them.
fn connections(page: &Page) -> usize {
    let at = format!(":{:04X} ", page.address().port());
    let Ok(text) = std::fs::read_to_string("/proc/net/tcp") else { return 0 };
    // The second column is the end that is meant; 01 is an established connection, 08 one whose
    // other end has closed.
    let is_open = |line: &&str| {
        let mut columns = line.split_whitespace();
        let local = columns.nth(1).is_some_and(|of| format!("{of} ").ends_with(&at));
        local && columns.nth(1).is_some_and(|state| state == "01" || state == "08")
    };
    text.lines().filter(is_open).count()
}
