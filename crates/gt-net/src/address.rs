//! Server addresses: `host:port`, `[::1]:port`, `tcp://host:port` or `ipc:///path`.

use std::io::ErrorKind;
use std::mem::zeroed;
use std::net::{Ipv6Addr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::error::NetError;

/// The default port.
pub const DEFAULT_PORT: u16 = 9000;

/// The longest path of a socket file that the system supports.
// SAFETY: all zero bytes are a valid `sockaddr_un`, of which only the size is taken.
const LONGEST_PATH: usize = size_of_val(&unsafe { zeroed::<libc::sockaddr_un>() }.sun_path) - 1;

/// A server's address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    Tcp {
        host: String,
        port: u16,
    },
    /// A socket file on this machine.
    Ipc {
        path: String,
    },
}

impl Address {
    /// Parses `host:port`, `tcp://host:port` or `ipc:///path`; the port may be left out.
    ///
    /// # Errors
    /// The text has another form.
    pub fn parse(text: &str) -> Result<Address, NetError> {
        let bad = || NetError::BadAddress { given: text.to_string() };
        if let Some(path) = text.strip_prefix("ipc://") {
            return match path.len() {
                0 => Err(bad()),
                1..=LONGEST_PATH => Ok(Address::Ipc { path: path.to_string() }),
                length => {
                    Err(NetError::LongPath { path: path.into(), length, longest: LONGEST_PATH })
                }
            };
        }
        let rest = text.strip_prefix("tcp://").unwrap_or(text);
        if let Some((host, port)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            // An interface may follow, as in fe80::1%eth0.
            let number = host.split('%').next().unwrap_or_default();
            number.parse::<Ipv6Addr>().map_err(|_| bad())?;
            let port = match port.strip_prefix(':') {
                Some(port) => port.parse::<u16>().map_err(|_| bad())?,
                None if port.is_empty() => DEFAULT_PORT,
                None => return Err(bad()),
            };
            let host = host.to_string();
            return if port == 0 { Err(bad()) } else { Ok(Address::Tcp { host, port }) };
        }
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) => (host, port.parse::<u16>().map_err(|_| bad())?),
            None => (rest, DEFAULT_PORT),
        };
        let valid = |c: char| c.is_ascii_alphanumeric() || "-_.*".contains(c);
        if host.is_empty() || !host.chars().all(valid) || port == 0 {
            return Err(bad());
        }
        Ok(Address::Tcp { host: host.to_string(), port })
    }

    /// The ZeroMQ endpoint to bind.
    pub fn to_bind(&self) -> String {
        match self {
            Address::Tcp { host, port } if host == "localhost" => format!("tcp://127.0.0.1:{port}"),
            Address::Tcp { .. } => format!("tcp://{self}"),
            Address::Ipc { path } => format!("ipc://{path}"),
        }
    }

    /// Returns whether a host is an IPv6 address.
    pub fn is_v6(&self) -> bool {
        matches!(self, Address::Tcp { host, .. } if host.contains(':'))
    }

    /// The ZeroMQ endpoint to connect to.
    pub fn to_connect(&self) -> String {
        match self {
            Address::Tcp { host, port }
                if ["localhost", "0.0.0.0", "*"].contains(&host.as_str()) =>
            {
                format!("tcp://127.0.0.1:{port}")
            }
            Address::Tcp { host, port } if host == "::" => format!("tcp://[::1]:{port}"),
            _ => self.to_bind(),
        }
    }

    /// Returns whether it is reachable from this machine only.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Tcp { host, .. } => {
                ["localhost", "::1"].contains(&host.as_str()) || host.starts_with("127.")
            }
            Address::Ipc { .. } => true,
        }
    }

    /// This machine's own address towards the server; for a local server the loopback address.
    pub fn own_host(&self) -> String {
        let (loopback, any) =
            if self.is_v6() { ("::1", "[::]:0") } else { ("127.0.0.1", "0.0.0.0:0") };
        let loopback = loopback.to_string();
        let Address::Tcp { host, port } = self else { return loopback };
        if self.is_local() {
            return loopback;
        }
        // Connecting a UDP socket sends nothing, it only selects the route.
        let way = || {
            let socket = std::net::UdpSocket::bind(any).ok()?;
            socket.connect((host.as_str(), *port)).ok()?;
            Some(socket.local_addr().ok()?.ip().to_string())
        };
        way().unwrap_or(loopback)
    }

    /// The command-line option that makes a server listen here.
    pub fn server_option(&self) -> String {
        match self {
            Address::Tcp { port, .. } => format!("-p {port}"),
            Address::Ipc { path } => format!("--ipc {path}"),
        }
    }

    /// Returns whether the host is reachable and no process listens at the port. Takes at most
    /// `limit`.
    pub fn is_refused(&self, limit: Duration) -> bool {
        let tried = match self {
            Address::Ipc { path } => UnixStream::connect(path).map(drop),
            Address::Tcp { host, port } => {
                let host =
                    if ["0.0.0.0", "*"].contains(&host.as_str()) { "127.0.0.1" } else { host };
                let first = (host, *port).to_socket_addrs().ok().and_then(|mut all| all.next());
                first.map_or(Ok(()), |one| TcpStream::connect_timeout(&one, limit).map(drop))
            }
        };
        let kinds = [ErrorKind::ConnectionRefused, ErrorKind::NotFound];
        tried.is_err_and(|error| kinds.contains(&error.kind()))
    }

    /// Checks that the host's name resolves.
    ///
    /// # Errors
    /// It does not resolve.
    pub fn check_host(&self) -> Result<(), NetError> {
        let Address::Tcp { host, port } = self else { return Ok(()) };
        match (host.as_str(), *port).to_socket_addrs() {
            Err(error) if host != "*" => Err(NetError::UnknownHost { host: host.clone(), error }),
            _ => Ok(()),
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Tcp { host, port } if self.is_v6() => write!(f, "[{host}]:{port}"),
            Address::Tcp { host, port } => write!(f, "{host}:{port}"),
            Address::Ipc { path } => write!(f, "ipc://{path}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_parse() {
        let tcp = |host: &str, port| Some(Address::Tcp { host: host.into(), port });
        let check = |text: &str, want| assert_eq!(Address::parse(text).ok(), want, "{text}");
        check("localhost:12345", tcp("localhost", 12345));
        check("tcp://10.0.0.1:80", tcp("10.0.0.1", 80));
        check("node7", tcp("node7", 9000));
        check("[::1]:80", tcp("::1", 80));
        check("tcp://[fe80::1%eth0]", tcp("fe80::1%eth0", 9000));
        for bad in ["::1", "::1:80", "[::1", "[::1]80", "[node]:80", "[::1]:0", "[]:80"] {
            check(bad, None);
        }
        check("node7:", None);
        check("node7:99999", None);
        check("", None);
        check("a b:1", None);
        check("ipc:///tmp/gt.sock", Some(Address::Ipc { path: "/tmp/gt.sock".into() }));
    }
}
