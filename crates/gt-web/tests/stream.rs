//! Server-sent events: one watcher for all readers, and each reader for itself.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;

use gt_web::Page;
use serde_json::Value;

use crate::http::{connect, get, token};
use crate::source::{serve, wait_until};

/// A reader of events.
struct Reader(BufReader<TcpStream>);

impl Reader {
    fn open(page: &Page) -> Reader {
        let mut stream = connect(page.address());
        let (host, token) = (page.address(), token(page));
        let request = format!(
            "GET /events HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        Reader(BufReader::new(stream))
    }

    /// Returns the next event of a name.
    fn next(&mut self, wanted: &str) -> Value {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream has ended");
            if let Some(of) = line.strip_prefix("event: ") {
                name = of.trim().into();
            }
            if let Some(data) = line.strip_prefix("data: ").filter(|_| name == wanted) {
                return serde_json::from_str(data).unwrap();
            }
        }
    }
}

#[test]
fn a_reader_gets_the_status_again_and_again() {
    let (page, _dispatcher) = serve();
    let mut reader = Reader::open(&page);
    let first = reader.next("status");
    let second = reader.next("status");
    assert_eq!(second["dispatcher"], "server secret-host:9000");
    assert_eq!(second["reader"]["user"], "ada");
    assert_eq!(second["workers"][1]["name"], "w1");
    assert_eq!(second["workers"][1]["draining"], true);
    assert_eq!(second["sessions"][1]["name"], "<b>train</b>.py ada@box #1");
    assert_eq!(second["sessions"][0]["rate"], 200.0);
    assert!(second["seconds"].as_f64().unwrap() > first["seconds"].as_f64().unwrap());
}

#[test]
fn the_dispatcher_is_asked_while_there_are_readers_and_not_otherwise() {
    let (page, dispatcher) = serve();
    let asked = || dispatcher.asked.load(Ordering::SeqCst);
    assert_eq!(get(&page, "/healthz", &[]).status, 200);
    assert_eq!(asked(), 0);
    let mut readers: Vec<Reader> = (0..50).map(|_| Reader::open(&page)).collect();
    for reader in &mut readers {
        reader.next("status");
    }
    // One question for all: they have the same answers.
    let before = asked();
    readers.iter_mut().for_each(|reader| drop(reader.next("status")));
    assert!(asked() < before + 25, "{} questions for 50 readers", asked() - before);
    drop(readers);
    // One who comes back soon continues with rates.
    assert!(Reader::open(&page).next("status")["sessions"][0]["rate"].as_f64().unwrap() > 0.0);
    wait_until("the watcher rests", || dispatcher.rested.load(Ordering::SeqCst) == 1);
    let before = asked();
    std::thread::sleep(std::time::Duration::from_millis(1200));
    assert_eq!(asked(), before);
    // The next reader gets what is new, not what was the newest then.
    let status = Reader::open(&page).next("status");
    assert!(status["seconds"].as_f64().unwrap() > before as f64 / 2.0);
}

#[test]
fn a_dispatcher_whose_status_takes_long_is_asked_less_often() {
    let (page, dispatcher) = serve();
    dispatcher.is_slow.store(true, Ordering::SeqCst);
    let mut reader = Reader::open(&page);
    // The first answer takes a connection, and rates need a second one.
    (0..2).for_each(|_| drop(reader.next("status")));
    let begin = std::time::Instant::now();
    (0..2).for_each(|_| drop(reader.next("status")));
    // Two seconds each, less what had passed of the first.
    assert!(begin.elapsed() > std::time::Duration::from_secs(3), "{:?}", begin.elapsed());
}

#[test]
fn a_dispatcher_that_is_gone_is_shown_and_watched_again() {
    let (page, dispatcher) = serve();
    let mut reader = Reader::open(&page);
    reader.next("status");
    dispatcher.is_gone.store(true, Ordering::SeqCst);
    let lost = reader.next("lost");
    assert_eq!(lost["error"], "the server <is> gone");
    assert_eq!(get(&page, "/readyz", &[]).status, 503);
    assert_eq!(get(&page, "/healthz", &[]).status, 200);
    reader.next("lost");
    dispatcher.is_gone.store(false, Ordering::SeqCst);
    reader.next("status");
    wait_until("it is ready", || get(&page, "/readyz", &[]).status == 200);
}

#[test]
fn a_reader_that_does_not_read_delays_no_other() {
    let (page, dispatcher) = serve();
    // Each status is larger than what the system buffers for a connection in the end.
    dispatcher.sessions.store(2000, Ordering::SeqCst);
    let mut stuck: Vec<Reader> = (0..20).map(|_| Reader::open(&page)).collect();
    let mut reader = Reader::open(&page);
    let mut last = -1.0;
    for _ in 0..12 {
        let now = reader.next("status")["seconds"].as_f64().unwrap();
        assert!(now > last);
        last = now;
    }
    // Once it reads, what was written is old, and then comes the newest: those between are dropped.
    let late = &mut stuck[0];
    let mut times = vec![];
    while times.last().is_none_or(|time| *time < last) {
        times.push(late.next("status")["seconds"].as_f64().unwrap());
    }
    assert!(times.is_sorted());
    assert!(times.len() < 12, "it missed none of {}", times.len());
}
