//! Connections to a server over the page's port.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use gt::net::address::Address;
use gt_web::Page;
use gt_web::tunnel::{TUNNELS, TunnelTarget};
use tungstenite::client::IntoClientRequest;
use tungstenite::{Error, Message, WebSocket};

use crate::http::{LIMIT, connect, get, get_as_owner, token};
use crate::source::{serve, serve_with};

/// A page with a server behind it, of which a test decides what it sends.
struct Lab {
    page: Page,
    server: TcpListener,
}

impl Lab {
    fn new(has_keys: bool) -> Lab {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let address = Address::Tcp { host: "localhost".into(), port };
        let target = TunnelTarget { address, has_keys };
        Lab { page: serve_with(|options| options.tunnel = Some(target)).0, server }
    }

    /// Opens a tunnel; returns its status if that is refused.
    fn open(&self, headers: &[(&'static str, &str)]) -> Result<WebSocket<TcpStream>, u16> {
        let url = format!("ws://{}/connect", self.page.address());
        let mut request = url.into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        request.headers_mut().insert("sec-websocket-protocol", "gt".parse().unwrap());
        match tungstenite::client(request, connect(self.page.address())) {
            Ok((socket, answer)) => {
                assert_eq!(answer.headers()["sec-websocket-protocol"], "gt");
                Ok(socket)
            }
            Err(tungstenite::HandshakeError::Failure(Error::Http(answer))) => {
                Err(answer.status().as_u16())
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Opens a tunnel; returns both ends.
    fn open_both(&self) -> (WebSocket<TcpStream>, TcpStream) {
        let program = self.open(&[]).unwrap();
        let server = self.server.accept().unwrap().0;
        server.set_read_timeout(Some(LIMIT)).unwrap();
        (program, server)
    }
}

/// Returns the next bytes that a program receives, or none when the tunnel has ended.
fn receive(program: &mut WebSocket<TcpStream>, count: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while bytes.len() < count {
        match program.read() {
            Ok(Message::Binary(part)) => bytes.extend_from_slice(&part),
            Ok(Message::Close(_)) | Err(Error::ConnectionClosed | Error::Protocol(_)) => {
                return None;
            }
            Err(Error::Io(error)) if error.kind() == ErrorKind::ConnectionReset => return None,
            other => panic!("{other:?}"),
        }
    }
    Some(bytes)
}

/// Checks that a server's connection ends.
fn assert_ends(server: &mut TcpStream) {
    match server.read(&mut [0; 64]) {
        Ok(count) => assert_eq!(count, 0),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}

fn payload(seed: usize, count: usize) -> Vec<u8> {
    (0..count).map(|at| (at.wrapping_mul(31) + at / 251 + seed) as u8).collect()
}

#[test]
fn bytes_are_carried_in_both_directions() {
    let lab = Lab::new(true);
    let (mut program, mut server) = lab.open_both();
    server.write_all(b"greeting").unwrap();
    assert_eq!(receive(&mut program, 8).unwrap(), b"greeting");
    let (up, down) = (payload(1, 3_000_000), payload(2, 3_000_000));
    let mut writer = server.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| down.chunks(70_001).for_each(|part| writer.write_all(part).unwrap()));
        for part in up.chunks(100_003) {
            program.send(Message::binary(part.to_vec())).unwrap();
            let mut arrived = vec![0; part.len()];
            server.read_exact(&mut arrived).unwrap();
            assert!(arrived == part);
        }
        assert!(receive(&mut program, down.len()).unwrap() == down);
    });
    program.close(None).unwrap();
    assert_ends(&mut server);
    let (mut program, server) = lab.open_both();
    drop(server);
    assert_eq!(receive(&mut program, 1), None);
}

#[test]
fn keys_protect_a_server_and_the_token_one_without_keys() {
    let lab = Lab::new(true);
    assert!(lab.open(&[]).is_ok());
    assert_eq!(get(&lab.page, "/events", &[]).status, 401, "the page itself takes the token");
    for header in [
        ("host", "evil.example"),
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
    ] {
        assert_eq!(lab.open(&[header]).err(), Some(403), "{header:?}");
    }
    let lab = Lab::new(false);
    assert_eq!(lab.open(&[]).err(), Some(401));
    assert_eq!(lab.open(&[("authorization", "Bearer 0123456789abcdef")]).err(), Some(401));
    let bearer = format!("Bearer {}", token(&lab.page));
    assert!(lab.open(&[("authorization", &bearer)]).is_ok());
    // Programs at other ports of this machine receive the cookie.
    let answer = get(&lab.page, "/sign-in", &[("Authorization", &bearer)]);
    let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap();
    assert_eq!(get(&lab.page, "/main.js", &[("Cookie", cookie)]).status, 200);
    assert_eq!(lab.open(&[("cookie", cookie)]).err(), Some(401));
    assert_eq!(
        lab.open(&[("cookie", cookie), ("authorization", "Bearer 0123456789abcdef")]).err(),
        Some(401)
    );
    assert!(lab.open(&[("cookie", cookie), ("authorization", &bearer)]).is_ok());
    assert_eq!(
        lab.open(&[("authorization", &bearer), ("origin", "http://evil.example")]).err(),
        Some(403)
    );
}

#[test]
fn what_opens_no_tunnel_is_told_apart() {
    let (page, _dispatcher) = serve();
    assert_eq!(get(&page, "/connect", &[]).status, 401);
    assert_eq!(get_as_owner(&page, "/connect").status, 404, "it only watches");
    let lab = Lab::new(true);
    let upgrade = [("Connection", "Upgrade"), ("Upgrade", "h2c")];
    for headers in [&[][..], &upgrade] {
        let answer = get(&lab.page, "/connect", headers);
        assert_eq!((answer.status, answer.header("upgrade")), (426, Some("websocket")));
    }
    drop(lab.server);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = Address::Tcp { host: "127.0.0.1".into(), port };
    let target = TunnelTarget { address, has_keys: true };
    let page = serve_with(|options| options.tunnel = Some(target)).0;
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(Lab { page, server }.open(&[]).err(), Some(502));
}

#[test]
fn a_socket_file_is_reached_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let server = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let address = Address::Ipc { path: path.display().to_string() };
    let target = TunnelTarget { address, has_keys: true };
    let page = serve_with(|options| options.tunnel = Some(target)).0;
    let lab = Lab { page, server: TcpListener::bind("127.0.0.1:0").unwrap() };
    let mut program = lab.open(&[]).unwrap();
    server.accept().unwrap().0.write_all(b"greeting").unwrap();
    assert_eq!(receive(&mut program, 8).unwrap(), b"greeting");
}

#[test]
fn what_is_no_part_of_the_protocol_ends_its_tunnel_only() {
    let lab = Lab::new(true);
    let (mut other, mut other_server) = lab.open_both();
    for message in [Message::text("GET /"), Message::binary(vec![0; (1 << 20) + 1])] {
        let (mut program, mut server) = lab.open_both();
        // The page may have ended it before all is written.
        let _ = program.send(message);
        assert_ends(&mut server);
        assert_eq!(receive(&mut program, 1), None);
    }
    let (mut program, mut server) = lab.open_both();
    program.get_mut().write_all(b"\xff\xff garbage, which is no frame").unwrap();
    assert_ends(&mut server);
    // A frame that announces 2^63 bytes, and one without a mask.
    for frame in [&b"\x82\xff\x80\0\0\0\0\0\0\0\0\0\0\0"[..], b"\x82\x01a"] {
        let (mut program, mut server) = lab.open_both();
        program.get_mut().write_all(frame).unwrap();
        assert_ends(&mut server);
    }
    other.send(Message::binary(b"still".to_vec())).unwrap();
    let mut arrived = [0; 5];
    other_server.read_exact(&mut arrived).unwrap();
    assert_eq!(&arrived, b"still");
}

#[test]
fn a_program_that_does_not_read_delays_no_other_and_little_is_stored_for_it() {
    let lab = Lab::new(true);
    let (_slow, mut server) = lab.open_both();
    server.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
    let (chunk, mut sent) = (vec![7; 1 << 20], 0);
    while server.write_all(&chunk).is_ok() {
        sent += chunk.len();
        assert!(sent < 128 << 20, "{sent} bytes were taken for a program that reads nothing");
    }
    let (mut program, mut server) = lab.open_both();
    server.write_all(b"greeting").unwrap();
    assert_eq!(receive(&mut program, 8).unwrap(), b"greeting");
    assert_eq!(get(&lab.page, "/healthz", &[]).status, 200);
}

#[test]
fn more_tunnels_than_allowed_are_refused_until_others_end() {
    // Each takes four.
    gt::net::descriptors::raise_limit();
    let lab = Lab::new(true);
    let mut open: Vec<_> = (0..TUNNELS).map(|_| lab.open_both()).collect();
    assert_eq!(lab.open(&[]).err(), Some(429));
    // They take no places of the page's readers.
    assert_eq!(get_as_owner(&lab.page, "/main.js").status, 200);
    let (program, mut server) = open.pop().unwrap();
    drop(program);
    assert_ends(&mut server);
    crate::source::wait_until("a place is free", || lab.open(&[]).is_ok());
    // They end with the page.
    let Lab { page, server: _ } = lab;
    drop(page);
    for (mut program, mut server) in open {
        assert_ends(&mut server);
        assert_eq!(receive(&mut program, 1), None);
    }
}
