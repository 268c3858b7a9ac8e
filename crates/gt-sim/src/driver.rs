//! Lets a real client session run in a simulated world.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use gt_client::driver::{Driver, Interrupt, Outbox};
use gt_client::{ClientError, Result, Session};
use gt_dispatcher::PeerId;
use gt_ir::message::Message;
use gt_ir::{Command, RequestId};
use rustc_hash::FxHashMap;

use crate::world::World;

struct SimDriver {
    world: Arc<Mutex<World>>,
    client: PeerId,
    answers: Mutex<FxHashMap<RequestId, Message>>,
    in_flight: AtomicU64,
}

/// A session in a world, and the client's name there.
pub fn connect(world: &Arc<Mutex<World>>) -> (Session, PeerId) {
    let client = lock(world).add_client();
    let driver = SimDriver {
        world: Arc::clone(world),
        client,
        answers: Mutex::default(),
        in_flight: AtomicU64::new(0),
    };
    (Session::new(Arc::new(driver)), client)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl SimDriver {
    /// Takes what has arrived; says whether the session was ended.
    fn take_in(&self, world: &mut World) -> Result<()> {
        for message in world.receive(self.client) {
            match message {
                Message::Done(weight) => {
                    self.in_flight.fetch_sub(weight, Ordering::Relaxed);
                }
                Message::Value { request, .. }
                | Message::Statistics { request, .. }
                | Message::Status { request, .. }
                | Message::Explained { request, .. }
                | Message::Located { request, .. } => {
                    lock(&self.answers).insert(request, message);
                }
                Message::Goodbye { reason } => return Err(ClientError::Connection(reason)),
                _ => {}
            }
        }
        Ok(())
    }

    fn run_until<T>(&self, mut ready: impl FnMut() -> Option<T>) -> Result<T> {
        let mut world = lock(&self.world);
        loop {
            self.take_in(&mut world)?;
            if let Some(found) = ready() {
                return Ok(found);
            }
            if !world.step() {
                return Err(ClientError::Connection("nothing will ever answer".into()));
            }
        }
    }
}

impl Driver for SimDriver {
    fn attach(&self, _outbox: Weak<dyn Outbox>) {}

    fn nudge(&self) {}

    fn submit(&self, batch: &mut Vec<Command>, _work: u64) {
        let weight: u64 = batch.iter().map(Command::weight).sum();
        self.in_flight.fetch_add(weight, Ordering::Relaxed);
        let message = Message::Stream(std::mem::take(batch));
        lock(&self.world).send_from_client(self.client, message);
    }

    fn is_full(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) > 16 << 10
    }

    fn wait_for_room(&self, _interrupt: Interrupt) -> Result<()> {
        self.run_until(|| (!self.is_full()).then_some(()))
    }

    fn wait(&self, request: RequestId, _interrupt: Interrupt) -> Result<Message> {
        self.run_until(|| lock(&self.answers).remove(&request))
    }

    fn close(&self) {
        let goodbye = Message::Goodbye { reason: "the client is done".into() };
        lock(&self.world).send_from_client(self.client, goodbye);
    }

    fn describe(&self) -> String {
        "a simulation".into()
    }
}
