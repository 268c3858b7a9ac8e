//! Waiting for a lost server, and reconnecting with the worker's snapshots.

use std::time::Instant;

use gt_ir::message::WorkerHello;
use gt_net::NetError;
use gt_worker::{FileResult, Out};

use super::state::StateFolder;
use super::{ATTEMPT, FILES_WITHIN, PAUSE, WorkerAsk, WorkerProcess, WorkerRoute};
use crate::drivers::files::FileDone;
use crate::drivers::network;

impl WorkerProcess {
    /// Waits for a lost server and reconnects. Returns false if the worker must stop instead.
    ///
    /// # Errors
    /// The server does not return in time, or turns the worker away.
    pub(super) fn rejoin(
        &mut self,
        lost: NetError,
        ask: &mut dyn FnMut() -> WorkerAsk,
    ) -> Result<bool, NetError> {
        let (since, mut pause) = (Instant::now(), PAUSE.0);
        tracing::warn!("{lost}; waiting {} s for it", self.grace.as_secs());
        self.forget_server();
        while self.files.is_busy() && since.elapsed() < FILES_WITHIN {
            self.take_written_snapshots();
            std::thread::sleep(PAUSE.0);
        }
        self.take_written_snapshots();
        loop {
            // There is no server to hand anything over.
            if ask() != WorkerAsk::Nothing {
                return Ok(false);
            }
            if since.elapsed() > self.grace {
                return Err(lost);
            }
            let WorkerRoute { address, key_file, insecure, hello } = &self.way;
            let hello = WorkerHello { token: Some(self.token), ..hello.clone() };
            let key = network::find_key(address, key_file.as_deref(), *insecure);
            let joined = key.and_then(|key| {
                network::handshake_within(ATTEMPT, address, key.as_ref(), *insecure, hello)
            });
            match joined {
                Ok((link, welcome)) => {
                    self.link = link;
                    let mut out = Vec::new();
                    self.core.renew(welcome.is_renewed, &mut out);
                    self.neighbours.rename(welcome.worker);
                    self.token = welcome.token.unwrap_or(0);
                    self.grace = welcome.grace;
                    self.send_all(&mut out)?;
                    let seconds = since.elapsed().as_secs_f64();
                    tracing::warn!("joined {} again after {seconds:.1} s", self.link.address());
                    return Ok(true);
                }
                Err(error @ NetError::TurnedAway { .. }) => return Err(error),
                Err(_) => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(PAUSE.1);
                }
            }
        }
    }

    /// Starts the file operations among the core's messages; the others have no receiver.
    fn begin_jobs(&mut self, out: Vec<Out>) {
        for job in out {
            if let Out::Files(job) = job {
                self.files.begin(job);
            }
        }
    }

    /// Collects the snapshot values that were written, which stay. Other file operations have no
    /// receiver.
    fn take_written_snapshots(&mut self) {
        let mut out = Vec::new();
        for done in self.files.take_done() {
            if let FileDone::Worker(result @ FileResult::SnapshotSpilled { .. }) = done {
                self.core.handle(result.into(), &mut out);
            }
        }
        self.begin_jobs(out);
    }

    /// Drops all requests of the lost server.
    fn forget_server(&mut self) {
        let mut out = Vec::new();
        self.core.renew(true, &mut out);
        self.begin_jobs(out);
        self.sharing.clear();
        self.state.iter_mut().for_each(StateFolder::forget);
        for token in self.neighbours.forget_all() {
            self.blocks.release(token);
        }
    }
}
