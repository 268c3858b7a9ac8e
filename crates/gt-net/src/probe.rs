//! Probes which protocol is spoken at an address, to explain a failed handshake.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::address::Address;

/// The protocol of a listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Speaks {
    /// ZeroMQ with CURVE: a server that requires a key.
    Keyed,
    /// ZeroMQ without encryption.
    Open,
    /// A GT server that has no descriptor for another connection.
    Full,
    SomethingElse,
}

/// The timeout of connecting and of reading.
const LIMIT: Duration = Duration::from_millis(500);

/// The beginning of ZeroMQ's greeting (ZMTP 3.0, section "Greeting"): signature and version. The
/// listener then sends its mechanism, without waiting for ours.
const GREETING: [u8; 11] = [0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 3];

/// Exchanges greetings with the listener at an address.
pub fn probe(address: &Address) -> Speaks {
    let found = match address {
        Address::Ipc { path } => UnixStream::connect(path).ok().and_then(|stream| {
            stream.set_read_timeout(Some(LIMIT)).ok()?;
            greet(stream)
        }),
        Address::Tcp { .. } => {
            let target = address.to_connect();
            let target = target.trim_start_matches("tcp://").to_socket_addrs().ok();
            let stream = target
                .and_then(|mut found| found.next())
                .and_then(|to| TcpStream::connect_timeout(&to, LIMIT).ok());
            stream.and_then(|stream| {
                stream.set_read_timeout(Some(LIMIT)).ok()?;
                greet(stream)
            })
        }
    };
    found.unwrap_or(Speaks::SomethingElse)
}

fn greet(mut stream: impl Read + Write) -> Option<Speaks> {
    // Fails if the listener has closed the connection; it may have sent bytes before.
    let _ = stream.write_all(&GREETING);
    let mut answer = [0; 32];
    stream.read_exact(&mut answer).ok()?;
    let is_zeromq = (answer[0], answer[9]) == (0xFF, 0x7F) && answer[10] >= 3;
    is_zeromq.then(|| match &answer[12..] {
        mechanism if mechanism.starts_with(b"CURVE") => Speaks::Keyed,
        mechanism if mechanism.starts_with(b"GT-FULL") => Speaks::Full,
        _ => Speaks::Open,
    })
}
