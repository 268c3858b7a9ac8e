//! Recordings: who starts them, what they become, and their limits.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use gt_web::Page;
use serde_json::Value;

use crate::http::{Answer, answer_to, bytes_of_answer_to, get, get_as_owner, token};
use crate::source::{Dispatcher, serve, wait_until};

const FIVE: &str = r#"{"seconds": 5}"#;

/// Asks for a recording with these headers besides the right host and type.
fn post_with(page: &Page, headers: &[(&str, &str)], body: &str) -> Answer {
    let lines: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let (host, length) = (page.address(), body.len());
    let head = format!(
        "POST /recordings HTTP/1.1\r\nHost: {host}\r\n{lines}Content-Length: {length}\r\nConnection: close"
    );
    answer_to(page, &format!("{head}\r\n\r\n{body}"))
}

/// Asks for a recording as a reader's browser does.
fn post(page: &Page, body: &str) -> Answer {
    let (origin, bearer) =
        (format!("http://{}", page.address()), format!("Bearer {}", token(page)));
    let kind = ("Content-Type", "application/json");
    post_with(page, &[("Origin", &origin), ("Authorization", &bearer), kind], body)
}

fn newest(page: &Page) -> Value {
    let list: Value = serde_json::from_str(&get_as_owner(page, "/recordings").body).unwrap();
    list["recordings"][0].clone()
}

fn record(page: &Page, body: &str) -> Value {
    let answer = post(page, body);
    assert_eq!(answer.status, 202, "{}", answer.body);
    wait_until("the recording has ended", || newest(page)["state"] != "recording");
    newest(page)
}

/// Returns the header of a recording, and the bytes of its columns.
fn binary(page: &Page, number: u64) -> (Value, Vec<u8>) {
    let (host, token) = (page.address(), token(page));
    let request = format!(
        "GET /recordings/{number} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    let bytes = bytes_of_answer_to(page, &request);
    let end = bytes.windows(4).position(|of| of == b"\r\n\r\n").unwrap();
    assert!(bytes.starts_with(b"HTTP/1.1 200"));
    let body = &bytes[end + 4..];
    let length = u32::from_le_bytes(body[..4].try_into().unwrap()) as usize;
    (serde_json::from_slice(&body[4..4 + length]).unwrap(), body[4 + length..].to_vec())
}

#[test]
fn a_recording_is_listed_read_and_downloaded() {
    let (page, dispatcher) = serve();
    dispatcher.is_held.store(true, Ordering::SeqCst);
    let answer = post(&page, r#"{"seconds": 5, "session": 1}"#);
    assert_eq!((answer.status, answer.body.as_str()), (202, r#"{"number":1}"#));
    wait_until("it has events", || newest(&page)["events"] == 2);
    let running = newest(&page);
    assert_eq!((&running["state"], &running["seconds"]), (&"recording".into(), &5.into()));
    assert_eq!(get_as_owner(&page, "/recordings/1").status, 404, "it is not ready");
    let second = post(&page, FIVE);
    assert_eq!(second.status, 409);
    assert!(second.body.contains("a recording runs already"), "{}", second.body);
    dispatcher.is_held.store(false, Ordering::SeqCst);
    wait_until("it is ready", || newest(&page)["state"] == "ready");
    let ready = newest(&page);
    assert_eq!((&ready["dropped"], &ready["ended"]), (&3.into(), &Value::Null));

    let (header, columns) = binary(&page, 1);
    assert_eq!((&header["spans"], &header["session"]), (&2.into(), &1.into()));
    assert_eq!(header["rows"][0]["name"], "<b>train</b>.py #0");
    assert_eq!(columns.len(), 2 * 40);
    assert_eq!(f64::from_le_bytes(columns[..8].try_into().unwrap()), 1.0);

    let file = get_as_owner(&page, "/recordings/1.json");
    let disposition = file.header("content-disposition");
    assert_eq!(disposition, Some("attachment; filename=\"gt-recording-1.json\""));
    // It is sent in pieces, each with its length before it.
    let json: String = file.body.lines().filter(|line| line.parse::<u8>().is_err()).collect();
    assert_eq!(json.matches("\"ph\":\"X\"").count(), 2, "{json}");
    assert!(json.contains("\"traceEvents\":["), "{json}");
    assert_eq!(dispatcher.recorded.load(Ordering::SeqCst), 1);
}

#[test]
fn strangers_and_other_sites_neither_record_nor_read() {
    let (page, dispatcher) = serve();
    let (own, bearer) = (format!("http://{}", page.address()), format!("Bearer {}", token(&page)));
    let kind = ("Content-Type", "application/json");
    let reader = ("Authorization", bearer.as_str());
    for (headers, status) in [
        (vec![("Origin", own.as_str()), kind], 401),
        (vec![("Origin", &own), ("Authorization", "Bearer 0123456789abcdef"), kind], 401),
        (vec![reader, kind], 403),
        (vec![("Origin", "http://evil.example"), reader, kind], 403),
        (vec![("Origin", "null"), reader, kind], 403),
        (vec![("Origin", &own), ("Sec-Fetch-Site", "same-site"), reader, kind], 403),
        (vec![("Origin", &own), reader, ("Content-Type", "text/plain")], 415),
    ] {
        assert_eq!(post_with(&page, &headers, FIVE).status, status, "{headers:?}");
    }
    assert_eq!(dispatcher.recorded.load(Ordering::SeqCst), 0);
    assert_eq!(record(&page, FIVE)["state"], "ready");
    for path in ["/recordings", "/recordings/1", "/recordings/1.json", "/recordings/9"] {
        let answer = get(&page, path, &[]);
        assert_eq!((answer.status, answer.body.as_str()), (401, ""), "{path}");
    }
    for path in ["/recordings/9", "/recordings/9.json", "/recordings/x", "/recordings/1.txt"] {
        assert_eq!(get_as_owner(&page, path).status, 404, "{path}");
    }
}

#[test]
fn what_cannot_be_recorded_is_refused_with_a_reason() {
    let (page, dispatcher) = serve();
    let long = format!(r#"{{"seconds": 5, "session": "{}"}}"#, "a".repeat(5000));
    for (body, status, part) in [
        ("", 400, "no JSON"),
        ("[]", 400, "no object"),
        (r#"{"seconds": 61}"#, 400, "expected a whole number from 1 to 60"),
        (r#"{"seconds": 0}"#, 400, "expected a whole number from 1 to 60"),
        (r#"{"seconds": 5, "session": "<b>"}"#, 400, "expected a session's number, or null"),
        (&long, 413, "the recording is longer than 4096 bytes"),
    ] {
        let answer = post(&page, body);
        assert_eq!(answer.status, status, "{body}");
        assert!(answer.body.contains(part), "{body}: {}", answer.body);
    }
    assert_eq!(dispatcher.recorded.load(Ordering::SeqCst), 0);
}

#[test]
fn a_source_that_ends_and_a_quiet_one_are_reported() {
    let (page, dispatcher) = serve();
    let early = record(&page, r#"{"seconds": 60}"#);
    assert_eq!(
        (&early["state"], &early["ended"]),
        (&"ready".into(), &"the program has ended".into())
    );
    dispatcher.sessions.store(0, Ordering::SeqCst);
    let quiet = record(&page, FIVE);
    assert_eq!(quiet["state"], "failed");
    assert!(quiet["error"].as_str().unwrap().contains("there were no events"), "{quiet}");
    dispatcher.is_gone.store(true, Ordering::SeqCst);
    let gone = record(&page, FIVE);
    assert_eq!(
        (&gone["state"], &gone["error"]),
        (&"failed".into(), &"the server <is> gone".into())
    );
    assert_eq!(get_as_owner(&page, "/recordings/3").status, 404);
}

#[test]
fn a_recording_ends_with_the_page() {
    let (page, dispatcher) = serve();
    dispatcher.is_held.store(true, Ordering::SeqCst);
    assert_eq!(post(&page, FIVE).status, 202);
    wait_until("it runs", || dispatcher.recorded.load(Ordering::SeqCst) == 1);
    drop(page);
    wait_until("its thread has ended", || Arc::strong_count(&dispatcher) == 1);
    let Dispatcher { recorded, .. } = &*dispatcher;
    assert_eq!(recorded.load(Ordering::SeqCst), 1);
}
