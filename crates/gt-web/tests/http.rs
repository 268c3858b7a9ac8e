//! A client that writes what a test says and reads the answer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use gt_web::Page;

/// The time limit for each answer.
pub const LIMIT: Duration = Duration::from_secs(30);

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    head: String,
    pub body: String,
}

impl Answer {
    /// The value of a header, whose name is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(of, _)| of.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// Connects to a page.
pub fn connect(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&at, LIMIT).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream
}

/// The token in a page's link.
pub fn token(page: &Page) -> &str {
    page.link().split_once("#token=").unwrap().1
}

/// Sends a request with these headers besides `Connection`.
pub fn send(page: &Page, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let lines: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    answer_to(page, &format!("{method} {path} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n"))
}

/// Sends a request, and returns all bytes of the answer.
pub fn bytes_of_answer_to(page: &Page, request: &str) -> Vec<u8> {
    let mut stream = connect(page.address());
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

/// Sends a request, and returns the answer.
pub fn answer_to(page: &Page, request: &str) -> Answer {
    let bytes = bytes_of_answer_to(page, request);
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.into(), body: body.into() }
}

/// Asks with the right host and these further headers.
pub fn get(page: &Page, path: &str, headers: &[(&str, &str)]) -> Answer {
    let host = page.address().to_string();
    let all: Vec<(&str, &str)> = [("Host", host.as_str())].iter().chain(headers).copied().collect();
    send(page, "GET", path, &all)
}

/// Asks with the page's token.
pub fn get_as_owner(page: &Page, path: &str) -> Answer {
    get(page, path, &[("Authorization", &format!("Bearer {}", token(page)))])
}
