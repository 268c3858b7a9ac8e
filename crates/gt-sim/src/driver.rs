//! The simulation driver of a client session: waiting advances the world.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use gt_client::driver::{Driver, Interrupt, Outbox};
use gt_client::{ClientError, Result, Session};
use gt_dispatcher::{PeerId, ToPeer};
use gt_ir::message::{Answer, ClientToServer, Goodbye, ServerToClient, Welcome};
use gt_ir::{ClientCommand, RequestId, StreamNumbers};
use rustc_hash::FxHashMap;

use crate::world::World;

/// The virtual time after which a wait fails.
const LIMIT: Duration = Duration::from_secs(600);

struct SimDriver {
    world: Arc<Mutex<World>>,
    client: PeerId,
    answers: Mutex<FxHashMap<RequestId, Answer>>,
    in_flight: AtomicU64,
    numbers: StreamNumbers,
    /// Why the session has ended, if it has.
    ended: Mutex<Option<String>>,
}

/// Connects a session to a world; returns it and its client's link.
pub fn connect(world: &Arc<Mutex<World>>) -> (Session, PeerId) {
    let client = lock(world).add_client();
    connected(world, client, StreamNumbers::default())
}

/// Like [`connect`], with a key of this user.
pub fn connect_as(world: &Arc<Mutex<World>>, user: &str) -> (Session, PeerId) {
    let client = lock(world).add_client_of(Some(user));
    connected(world, client, StreamNumbers::default())
}

/// Attaches to a session by its name, or begins it. Returns also whether it
/// existed before.
///
/// # Errors
/// Nothing will ever answer, or the session is lost.
pub fn attach(world: &Arc<Mutex<World>>, name: &str) -> Result<(Session, PeerId, bool)> {
    'again: loop {
        let client = lock(world).add_attaching(name);
        loop {
            let mut all = lock(world);
            for message in all.receive(client) {
                match message {
                    // The dispatcher has restarted before the client knew of its session.
                    ToPeer::Welcome(Welcome::Client(welcome)) if welcome.is_renewed => {
                        all.kill_client(client);
                        continue 'again;
                    }
                    ToPeer::Welcome(Welcome::Client(welcome)) => {
                        drop(all);
                        let (session, client) = connected(world, client, welcome.numbers);
                        if welcome.is_attached {
                            session.read_kept(&mut || false)?;
                        }
                        return Ok((session, client, welcome.is_attached));
                    }
                    ToPeer::Goodbye(goodbye) => {
                        return Err(ClientError::Connection(goodbye.reason));
                    }
                    _ => {}
                }
            }
            if !all.step() {
                return Err(ClientError::Connection("nothing will ever answer".into()));
            }
        }
    }
}

fn connected(
    world: &Arc<Mutex<World>>,
    client: PeerId,
    numbers: StreamNumbers,
) -> (Session, PeerId) {
    let driver = SimDriver {
        world: Arc::clone(world),
        client,
        answers: Mutex::default(),
        in_flight: AtomicU64::new(0),
        numbers,
        ended: Mutex::default(),
    };
    (Session::new(Arc::new(driver)), client)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl SimDriver {
    /// Takes the messages that have arrived; an error if the session has ended.
    fn take_in(&self, world: &mut World) -> Result<()> {
        for message in world.receive(self.client) {
            match message {
                ToPeer::Client(ServerToClient::Credit(weight)) => {
                    let before = self.in_flight.load(Ordering::Relaxed);
                    self.in_flight.store(before.saturating_sub(weight), Ordering::Relaxed);
                }
                // The dispatcher has restarted.
                ToPeer::Welcome(Welcome::Client(welcome)) if welcome.is_renewed => {
                    self.in_flight.store(welcome.window, Ordering::Relaxed);
                }
                ToPeer::Goodbye(goodbye) => *lock(&self.ended) = Some(goodbye.reason),
                ToPeer::Client(ServerToClient::Answer(answer)) => {
                    lock(&self.answers).insert(answer.request, answer);
                }
                _ => {}
            }
        }
        lock(&self.ended).clone().map_or(Ok(()), |reason| Err(ClientError::Connection(reason)))
    }

    fn run_until<T>(
        &self,
        interrupt: Interrupt,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Result<T> {
        let mut world = lock(&self.world);
        let until = world.now() + LIMIT;
        loop {
            self.take_in(&mut world)?;
            if let Some(found) = ready() {
                return Ok(found);
            }
            if interrupt() {
                return Err(ClientError::Interrupted);
            }
            if world.now() > until || !world.step() {
                // A fault may have ended the session without a message.
                self.take_in(&mut world)?;
                return Err(ClientError::Connection("nothing will ever answer".into()));
            }
        }
    }
}

impl Driver for SimDriver {
    fn attach(&self, _outbox: Weak<dyn Outbox>) {}

    fn nudge(&self) {}

    fn submit(&self, batch: &mut Vec<ClientCommand>, _work: u64) {
        let weight: u64 = batch.iter().map(ClientCommand::weight).sum();
        self.in_flight.fetch_add(weight, Ordering::Relaxed);
        let message = ClientToServer::Stream(std::mem::take(batch));
        lock(&self.world).send_from_client(self.client, message);
    }

    fn is_full(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) > 16 << 10
    }

    fn wait_for_room(&self, interrupt: Interrupt) -> Result<()> {
        if self.is_full() {
            lock(&self.world).send_from_client(self.client, ClientToServer::AwaitCredit);
        }
        self.run_until(interrupt, || (!self.is_full()).then_some(()))
    }

    fn wait(&self, request: RequestId, interrupt: Interrupt) -> Result<Answer> {
        self.run_until(interrupt, || lock(&self.answers).remove(&request))
    }

    fn abandon(&self, request: RequestId) {
        lock(&self.answers).remove(&request);
    }

    fn close(&self) {
        let goodbye = Goodbye { reason: "the client is done".into() };
        lock(&self.world).send_from_client(self.client, goodbye);
    }

    fn numbers(&self) -> StreamNumbers {
        self.numbers
    }

    fn data_roots(&self) -> Option<Vec<String>> {
        Some(Vec::new())
    }

    fn describe(&self) -> String {
        "a simulation".into()
    }

    fn name(&self) -> String {
        "client".into()
    }
}
