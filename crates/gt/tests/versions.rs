//! A peer of another version is turned away by a server with an error that names the side to
//! upgrade, and the server serves others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use gt::drivers::network::server::{Ask, Server, ServerOptions};
use gt::ir::message::{
    ClientHello, Frame, Goodbye, Hello, PROTOCOL_VERSION, Role, Welcome, WorkerHello,
};
use gt::net::address::Address;
use gt::net::codec::{decode_frame, encode};
use gt::net::dealer::{DealerLink, Wakeup};

const LIMIT: Duration = Duration::from_secs(10);

fn options() -> ServerOptions {
    ServerOptions {
        address: Address::parse_to_listen("tcp://127.0.0.1:0").unwrap().with_free_port().unwrap(),
        key_file: None,
        insecure: true,
        log_file: None,
        worker_wait: LIMIT,
        workers: 0,
        data_roots: Vec::new(),
        policy: None,
        grace: LIMIT,
        lineage: None,
        state: None,
    }
}

/// Says hello, with another version and another layout of what follows if they are given. Returns
/// the answer.
fn answer(address: &Address, role: Role, hello: Hello, other: Option<(u32, u8)>) -> Frame<Welcome> {
    let mut frames = encode(&hello);
    if let Some((version, layout)) = other {
        let mut head = frames[0].to_vec();
        head[2] = layout;
        head[4..8].copy_from_slice(&version.to_le_bytes());
        // The first letter of the release.
        head[17] = b'9';
        frames[0] = Bytes::from(head);
    }
    let mut link = DealerLink::connect(address, role, None, LIMIT).unwrap();
    link.send(&frames).unwrap();
    let answer = link.receive(LIMIT, Wakeup::default()).unwrap().expect("the server answers");
    decode_frame(&answer).unwrap()
}

#[test]
fn a_peer_of_another_version_is_told_which_side_to_upgrade() {
    let options = options();
    let (address, is_over) = (options.address.clone(), Arc::new(AtomicBool::new(false)));
    let until = Arc::clone(&is_over);
    let (say_bound, is_bound) = mpsc::channel();
    let server = std::thread::spawn(move || {
        let mut server = Server::bind(&options).unwrap();
        say_bound.send(()).unwrap();
        let mut ask = || if until.load(Ordering::SeqCst) { Ask::Stop } else { Ask::Nothing };
        server.run(&mut ask).map(|_| ()).unwrap();
    });
    is_bound.recv().unwrap();
    let hellos = [
        (Role::Client, Hello::Client(ClientHello::new(gt::origin(None)))),
        (Role::Worker, Hello::Worker(WorkerHello::new("w"))),
    ];
    for (role, hello) in hellos {
        for version in [PROTOCOL_VERSION - 1, PROTOCOL_VERSION + 1] {
            for layout in [4, 5, 200] {
                let other = Some((version, layout));
                let Frame::Goodbye(Goodbye { reason }) =
                    answer(&address, role, hello.clone(), other)
                else {
                    panic!("a {} of version {version} is welcome", role.name())
                };
                let is_newer = version > PROTOCOL_VERSION;
                let older = if is_newer { "server" } else { role.name() };
                assert!(reason.contains(&format!("the {older} is older")), "{reason}");
            }
        }
        let own = answer(&address, role, hello, None);
        assert!(matches!(own, Frame::Message(_)), "{own:?}");
    }
    is_over.store(true, Ordering::SeqCst);
    server.join().unwrap();
}
