//! Bounds on what a peer with a key can make a server hold, by raw ZeroMQ sockets that follow no
//! protocol.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gt_ir::message::Role;
use gt_net::address::Address;
use gt_net::dealer::{DealerLink, Wakeup};
use gt_net::keys::Key;
use gt_net::server::{LinkId, ServerEvent, ServerLink};
use zmq::{Context, Message, PollEvents, Socket, SocketType};

const LIMIT: Duration = Duration::from_secs(10);
const PART: usize = 512 << 10;

fn server() -> (Address, Key, ServerLink) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (address, key) = (Address::Tcp { host: "127.0.0.1".into(), port }, Key::generate());
    let server = ServerLink::bind(&address, Some(&key)).unwrap();
    (address, key, server)
}

/// A socket with a client's key.
fn raw(address: &Address, key: &Key) -> Socket {
    let socket = Context::new().socket(SocketType::DEALER).unwrap();
    let link = key.link(Role::Client).unwrap();
    socket.set_linger(0).unwrap();
    socket.set_sndhwm(4).unwrap();
    socket.set_reconnect_ivl(-1).unwrap();
    socket.set_curve_serverkey(&link.server).unwrap();
    socket.set_curve_publickey(&link.own.public).unwrap();
    socket.set_curve_secretkey(&link.own.secret).unwrap();
    socket.connect(&address.to_connect()).unwrap();
    socket
}

/// Sends copies of a part, with a flag, until the peer accepts no more; returns the number
/// accepted.
fn flood(socket: &Socket, part: &Bytes, flag: i32, most: usize) -> usize {
    for sent in 0..most {
        if !matches!(socket.poll(PollEvents::POLLOUT, 1_000), Ok(1..)) {
            return sent;
        }
        if socket.send(Message::from_owner(part.clone()), flag | zmq::DONTWAIT).is_err() {
            return sent;
        }
    }
    most
}

/// Returns the next event, if one arrives soon.
fn next(server: &mut ServerLink) -> Option<ServerEvent> {
    let until = Instant::now() + Duration::from_millis(500);
    loop {
        if let Some(event) = server.try_receive().unwrap() {
            return Some(event);
        }
        if Instant::now() > until {
            return None;
        }
        server.wait(Duration::from_millis(20), None).unwrap();
    }
}

/// The link and the first frame of the next message.
fn message(server: &mut ServerLink) -> (LinkId, Bytes) {
    match next(server) {
        Some(ServerEvent::Message { link, frames, .. }) => (link, frames[0].clone()),
        _ => panic!("a message"),
    }
}

/// The peak memory of this process, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

#[test]
fn messages_of_many_parts_are_not_held() {
    let (address, key, mut server) = server();
    let long = Bytes::from(vec![7; 32 << 20]);
    let before = peak();
    for part in [&long, &long.slice(..PART)] {
        let socket = raw(&address, &key);
        flood(&socket, part, zmq::SNDMORE, 60);
        let _ = socket.send(&b"end"[..], zmq::DONTWAIT);
        let got = next(&mut server);
        assert!(
            matches!(got, None | Some(ServerEvent::Disconnected(_))),
            "the connection is closed"
        );
    }
    let grown = peak() - before;
    // One part, which is encrypted here before it is sent.
    assert!(grown < 100 << 20, "{grown}");
}

#[test]
fn little_is_under_way_before_a_hello_and_more_after() {
    let (address, key, mut server) = server();
    let socket = raw(&address, &key);
    let part = Bytes::from(vec![7; PART]);
    socket.send(&b"hello"[..], 0).unwrap();
    let before = flood(&socket, &part, 0, 1000);
    // What the kernel's buffers and the sender's own queue take is among them.
    assert!(before < 40, "{before} parts");
    let (link, hello) = message(&mut server);
    assert_eq!(&hello[..], b"hello");
    server.admit(&link);
    let after = flood(&socket, &part, 0, 1000);
    assert!((80..200).contains(&after), "{after} parts");
    for place in 0..before + after {
        let (from, frame) = message(&mut server);
        assert!(from == link && frame == part, "{place}");
    }
    assert!(flood(&socket, &part, 0, 200) > 80, "there is room again");
}

#[test]
fn a_link_that_was_not_greeted_may_not_announce_long_messages() {
    let (address, key, mut server) = server();
    let mut peer = DealerLink::connect(&address, Role::Client, Some(&key), LIMIT).unwrap();
    let long = vec![Bytes::from(vec![1; 3 * PART])];
    peer.send(&long).unwrap();
    let Some(ServerEvent::Refused { link, reason }) = next(&mut server) else {
        panic!("a refusal")
    };
    assert!(reason.contains("longer than a hello"), "{reason}");
    assert!(next(&mut server).is_none(), "nothing more is read of it");
    assert!(server.send(&link, vec![Bytes::from_static(b"no")], 0).unwrap());
    assert_eq!(peer.receive(LIMIT, Wakeup::default()).unwrap().unwrap()[0], &b"no"[..]);
}

#[test]
fn long_messages_go_both_ways_and_the_longest_gives_way() {
    let (address, key, mut server) = server();
    let mut links = Vec::new();
    let mut peers: Vec<DealerLink> = (0..2)
        .map(|_| {
            let mut peer = DealerLink::connect(&address, Role::Client, Some(&key), LIMIT).unwrap();
            peer.send(&[Bytes::from_static(b"hello")]).unwrap();
            let (link, _) = message(&mut server);
            server.admit(&link);
            links.push(link);
            peer
        })
        .collect();
    let bytes: Vec<u8> = (0..150 << 20).map(|at: usize| (at % 251) as u8).collect();
    let frames = vec![Bytes::from_static(b"head"), Bytes::from(bytes), Bytes::from_static(b"x")];
    std::thread::scope(|scope| {
        let (first, sent) = (&mut peers[0], frames.clone());
        let back = scope.spawn(move || {
            first.send(&sent).unwrap();
            first.receive(Duration::from_secs(30), Wakeup::default()).unwrap().unwrap()
        });
        let got = loop {
            if let Some(ServerEvent::Message { frames, .. }) = next(&mut server) {
                break frames;
            }
        };
        assert!(got == frames);
        assert!(server.send(&links[0], got, 0).unwrap());
        while !back.is_finished() {
            server.wait(Duration::from_millis(5), None).unwrap();
        }
        assert!(back.join().unwrap() == frames);
    });
    server.set_budget(4 << 20);
    let long = vec![Bytes::from(vec![1; 64 * PART])];
    std::thread::scope(|scope| {
        let second = &mut peers[1];
        scope.spawn(move || second.send(&long).unwrap());
        let refused = loop {
            if let Some(event) = next(&mut server) {
                break event;
            }
        };
        let ServerEvent::Refused { link, reason } = refused else { panic!("a refusal") };
        assert!(link == links[1] && reason.contains("room for 4194304 bytes"), "{reason}");
        assert!(next(&mut server).is_none());
    });
}
