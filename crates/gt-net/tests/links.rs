//! Links over real sockets on loopback, with honest peers, strangers and vandals.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use bytes::Bytes;
use gt_ir::message::Role;
use gt_net::NetError;
use gt_net::address::Address;
use gt_net::dealer::{DealerLink, Wakeup};
use gt_net::keys::Key;
use gt_net::server::{Proven, ServerEvent, ServerLink};

const LIMIT: Duration = Duration::from_secs(5);

/// Returns an unused port.
fn free_address() -> Address {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    Address::Tcp { host: "127.0.0.1".into(), port }
}

fn connect(address: &Address, role: Role, key: Option<&Key>) -> Result<DealerLink, NetError> {
    DealerLink::connect(address, role, key, LIMIT)
}

/// The next event within the limit.
fn next(server: &mut ServerLink) -> ServerEvent {
    let until = Instant::now() + LIMIT;
    while Instant::now() < until {
        if let Some(event) = server.try_receive().unwrap() {
            return event;
        }
        server.wait(Duration::from_millis(20), None).unwrap();
    }
    panic!("nothing came");
}

/// Answers every message with itself for a while, and counts them.
fn echo(mut server: ServerLink, time: Duration) -> std::thread::JoinHandle<usize> {
    std::thread::spawn(move || {
        let until = Instant::now() + time;
        let mut count = 0;
        while Instant::now() < until {
            server.wait(Duration::from_millis(20), None).unwrap();
            while let Some(event) = server.try_receive().unwrap() {
                if let ServerEvent::Message { link, frames, .. } = event {
                    count += 1;
                    server.send(&link, frames, 1 << 30).unwrap();
                }
            }
        }
        count
    })
}

#[test]
fn roles_are_what_keys_prove_and_lost_links_are_noticed() {
    let (address, key) = (free_address(), Key::generate());
    let mut server = ServerLink::bind(&address, Some(&key)).unwrap();
    for role in [Role::Client, Role::Worker, Role::Watcher] {
        let limited = key.limited(role).unwrap();
        let mut peer = connect(&address, role, Some(&limited)).unwrap();
        peer.send(&[Bytes::from_static(b"hello")]).unwrap();
        let ServerEvent::Message { link, .. } = next(&mut server) else { panic!("a hello") };
        server.admit(&link);
        peer.send(&[Bytes::from_static(b"hello"), Bytes::from(vec![1; 100_000])]).unwrap();
        let ServerEvent::Message { link, proven, frames } = next(&mut server) else {
            panic!("a message")
        };
        assert_eq!(proven, Some(Proven { role, is_user: false }));
        assert_eq!((frames[0].len(), frames[1].len()), (5, 100_000));
        assert!(server.send(&link, frames, 1 << 30).unwrap());
        assert_eq!(peer.receive(LIMIT, Wakeup::default()).unwrap().unwrap().len(), 2);
        drop(peer);
        let ServerEvent::Disconnected(gone) = next(&mut server) else { panic!("a notice") };
        assert_eq!(gone, link);
    }
}

#[test]
fn strangers_are_told_apart() {
    let (address, key) = (free_address(), Key::generate());
    let check = |result: Result<DealerLink, NetError>, want: &str| {
        let error = result.err().expect("no way in").to_string();
        assert!(error.contains(want), "{error}");
    };
    check(connect(&address, Role::Client, Some(&key)), "nothing answers");
    let server = ServerLink::bind(&address, Some(&key)).unwrap();
    let serving = echo(server, Duration::from_secs(3));
    check(connect(&address, Role::Client, Some(&Key::generate())), "refuses the key");
    check(connect(&address, Role::Client, None), "no key for the server");
    connect(&address, Role::Client, Some(&key)).unwrap();
    serving.join().unwrap();

    // Another program listens.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address =
        Address::Tcp { host: "127.0.0.1".into(), port: listener.local_addr().unwrap().port() };
    let other = std::thread::spawn(move || {
        for _ in 0..4 {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    check(connect(&address, Role::Client, Some(&key)), "does not speak");
    check(connect(&address, Role::Client, None), "does not speak");
    other.join().unwrap();

    // A listener that says nothing, and a server without keys.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address =
        Address::Tcp { host: "127.0.0.1".into(), port: silent.local_addr().unwrap().port() };
    let limit = Duration::from_millis(300);
    check(DealerLink::connect(&address, Role::Client, Some(&key), limit), "does not speak");
    let address = free_address();
    let server = ServerLink::bind(&address, None).unwrap();
    let serving = echo(server, Duration::from_secs(2));
    check(connect(&address, Role::Client, Some(&key)), "takes no keys");
    serving.join().unwrap();
}

#[test]
fn a_second_server_is_told_of_the_first() {
    let address = free_address();
    let first = ServerLink::bind(&address, None).unwrap();
    let error = ServerLink::bind(&address, None).err().expect("in use").to_string();
    assert!(error.contains(&std::process::id().to_string()), "{error}");
    drop(first);
    ServerLink::bind(&address, None).unwrap();

    let folder = std::env::temp_dir().join(format!("gt-test-{}", std::process::id()));
    let address = Address::parse(&format!("ipc://{}", folder.display())).unwrap();
    let _first = ServerLink::bind(&address, None).unwrap();
    let error = ServerLink::bind(&address, None).err().expect("in use").to_string();
    assert!(error.contains("another gt server"), "{error}");
    let _ = std::fs::remove_file(folder);
}

#[test]
fn a_lost_server_is_noticed() {
    let (address, key) = (free_address(), Key::generate());
    let server = ServerLink::bind(&address, Some(&key)).unwrap();
    let mut peer = connect(&address, Role::Worker, Some(&key)).unwrap();
    drop(server);
    let until = Instant::now() + LIMIT;
    let error = loop {
        assert!(Instant::now() < until, "the loss was not noticed");
        match peer.receive(Duration::from_millis(50), Wakeup::default()) {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(error, NetError::Lost { .. }), "{error}");
}

/// The memory of this process, in bytes.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    status.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Garbage, half greetings, endless frames and 800 half connections, while a peer is served.
#[test]
fn vandals_change_neither_memory_nor_service() {
    let (address, key) = (free_address(), Key::generate());
    let server = ServerLink::bind(&address, Some(&key)).unwrap();
    let serving = echo(server, Duration::from_secs(6));
    let mut peer = connect(&address, Role::Client, Some(&key)).unwrap();
    let mut ask = |what: &str| {
        peer.send(&[Bytes::from_static(b"ping")]).unwrap();
        assert!(peer.receive(LIMIT, Wakeup::default()).unwrap().is_some(), "not served: {what}");
    };
    ask("at first");
    let before = memory();
    let Address::Tcp { port, .. } = &address else { panic!("a tcp address") };
    let target = format!("127.0.0.1:{port}");
    let dial = || TcpStream::connect(&target).unwrap();
    // A ZMTP greeting that claims NULL security, and then a frame of 2^62 bytes.
    let mut greeting = vec![0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 3, 0];
    greeting.extend(b"NULL");
    greeting.resize(64, 0);
    let mut halves = Vec::new();
    for number in 0..800 {
        let mut stream = dial();
        let _ = stream.write_all(&greeting[..number % 64]);
        halves.push(stream);
        if number % 200 == 0 {
            ask("among half connections");
        }
    }
    let mut endless = dial();
    let _ = endless.write_all(&greeting);
    let _ = endless.write_all(&[0x02, 0x40, 0, 0, 0, 0, 0, 0, 0]);
    endless.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let junk = vec![0xA5u8; 1 << 20];
    for _ in 0..64 {
        if endless.write_all(&junk).is_err() {
            break;
        }
    }
    ask("after endless frames");
    for seed in 0..50u8 {
        let mut stream = dial();
        let _ = stream.write_all(&vec![seed.wrapping_mul(37); 500]);
        ask("after garbage");
    }
    let grown = memory().saturating_sub(before);
    assert!(grown < 64 << 20, "memory grew by {grown} bytes");
    drop(halves);
    ask("at last");
    assert!(serving.join().unwrap() >= 57);
}
