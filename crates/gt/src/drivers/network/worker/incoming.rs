//! Incoming messages of a worker.

use std::os::fd::RawFd;
use std::time::Duration;

use gt_ir::WorkerCommand;
use gt_ir::message::{Frame, Goodbye, ServerToWorker, WorkerToServer, WorkerToWorker};
use gt_net::dealer::Wakeup;
use gt_net::{NetError, codec};
use gt_worker::WorkerInput;

use super::WorkerProcess;
use crate::drivers::network::blocks;

impl WorkerProcess {
    /// Handles messages from the server and other workers, after waiting for at most `limit`, or
    /// until descriptor `wake` is readable.
    pub(super) fn receive_all(
        &mut self,
        mut limit: Duration,
        wake: Option<RawFd>,
    ) -> Result<(), NetError> {
        while let Some(message) = self.neighbours.try_receive()? {
            // Values of snapshots may arrive without a pause: lanes have turns in between.
            let may_wait = matches!(message, WorkerToWorker::Backup(_));
            match message {
                WorkerToWorker::Release { token } => self.blocks.release(token),
                message => self.pass(message)?,
            }
            limit = Duration::ZERO;
            if may_wait {
                break;
            }
        }
        while let Some(frames) =
            self.link.receive(limit, Wakeup { fd: wake, ..self.neighbours.wakeup() })?
        {
            match codec::decode_frame(&frames)? {
                Frame::Message(message) => self.handle(message)?,
                Frame::Goodbye(Goodbye { reason }) => {
                    let address = self.link.address().to_string();
                    return Err(NetError::Lost { address, reason });
                }
            }
            limit = Duration::ZERO;
        }
        Ok(())
    }

    /// Handles a message from the server: what it asks of this process, and then, in the core, what
    /// it asks of the worker.
    fn handle(&mut self, mut message: ServerToWorker) -> Result<(), NetError> {
        match &mut message {
            ServerToWorker::Work { commands, .. } => self.prepare(commands)?,
            ServerToWorker::Neighbour { worker, name, endpoint, machine } => {
                self.neighbours.know(*worker, name.clone(), endpoint.clone(), machine.clone());
            }
            ServerToWorker::WorkerLost { worker, .. } => {
                for token in self.neighbours.forget(*worker) {
                    self.blocks.release(token);
                }
            }
            ServerToWorker::Release { token } => {
                self.blocks.release(*token);
                return Ok(());
            }
            ServerToWorker::DrainEnded { refused } => self.leave.ended(refused.take()),
            ServerToWorker::Observe { level, sent } => {
                let (sent, here) = (*sent, self.started.elapsed());
                self.core.observe(*level, here);
                return self.send(&WorkerToServer::Observed { sent, here });
            }
            _ => {}
        }
        self.pass(message)
    }

    /// Passes something to the core, and sends what it answers.
    pub(super) fn pass(&mut self, input: impl Into<WorkerInput>) -> Result<(), NetError> {
        let mut out = Vec::new();
        self.core.handle(input.into(), &mut out);
        self.send_all(&mut out)
    }

    /// Maps data in shared memory, and records which fetches may be answered through it.
    fn prepare(&mut self, commands: &mut [WorkerCommand]) -> Result<(), NetError> {
        for command in commands {
            match command {
                WorkerCommand::Create(create) => {
                    // Data that cannot be mapped is left as it is, and fails where it is used.
                    if let Ok((mapped, Some(token))) = blocks::receive(create.content.clone()) {
                        create.content = mapped;
                        self.send(&WorkerToServer::Release { token })?;
                    }
                }
                WorkerCommand::Fetch { request, shared: true, .. } => {
                    self.sharing.insert(*request);
                }
                _ => {}
            }
        }
        Ok(())
    }
}
