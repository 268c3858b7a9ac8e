//! Emits the device's events: commands, parts of iterations, pieces.

use std::time::Duration;

use gt_ir::SlotId;
use gt_ir::event::{EventKind, Mix, Subject, What};
use gt_ir::exchange::{Exchange, Piece};
use gt_ir::sharding::Block;
use gt_ir::statistics::WorkerStats;
use gt_ir::{LaneId, Meta, TensorId, WorkerCommand};

use super::Device;
use crate::engine::Engine;
use crate::events::Urgency;
use crate::work::Out;

impl<E: Engine> Device<E> {
    /// The worker's statistics since it started.
    pub fn stats(&self) -> WorkerStats {
        let mut compilation = self.programs.stats();
        let (time, failures) = self.engine.background();
        compilation.compile_time += time;
        compilation.failures += failures;
        WorkerStats {
            tensors: self.held.tensors,
            bytes: self.held.bytes,
            bytes_peak: self.held.bytes_peak,
            spilled_tensors: self.held.spilled_tensors,
            spilled_bytes: self.held.spilled_bytes,
            top_sequences: self.programs.top_sequences(),
            compilation,
            gpu: self.engine.gpu(),
            memory_limit: self.options.memory,
            ..self.stats.clone()
        }
    }

    /// Emits that a command begins.
    pub fn emit_command(&mut self, command: &WorkerCommand) {
        // Frees take no time, and would split runs of equal instructions; iterations emit their
        // parts.
        if let WorkerCommand::Free(_) | WorkerCommand::Invoke(_) = command {
            return;
        }
        let is_move = matches!(command, WorkerCommand::Exchange(_));
        let kind = if is_move { EventKind::Move } else { EventKind::Run };
        let subject = Subject::of_worker(command);
        if !self.events.goes_on(subject) {
            self.begin_event(kind, subject);
        }
    }

    /// Emits that a part begins, of the iteration of a hot path with this number, or of a batch.
    pub fn emit_part(&mut self, tensor: TensorId, number: Option<u32>) {
        let mix = Mix::default();
        let what = number.map_or(What::Batch { mix }, |number| What::HotPath { number, mix });
        self.begin_event(EventKind::Run, Subject { what, signal: 0, tensor });
    }

    /// Emits that a block is sent to another slot.
    pub fn emit_send(
        &mut self,
        exchange: &Exchange,
        to: SlotId,
        block: &Block,
        meta: Option<Meta>,
    ) {
        let Exchange { collective, transfer, .. } = *exchange;
        let what = What::Send { collective, transfer, to };
        let tensor = exchange.input.unwrap_or(TensorId(0));
        self.begin_event(EventKind::Move, Subject { what, signal: 0, tensor });
        if let Some(meta) = meta {
            self.events.moves(&Meta::new(meta.dtype, block.shape));
        }
    }

    /// Emits that the engine carries out a collective.
    pub fn emit_join(&mut self, exchange: &Exchange, input: Option<Meta>) {
        let what = What::Join { collective: exchange.collective };
        let output = exchange.output.as_ref();
        let tensor = output.map(|(id, _)| *id).or(exchange.input).unwrap_or(TensorId(0));
        self.begin_event(EventKind::Move, Subject { what, signal: 0, tensor });
        if let Some(meta) = output.map(|(_, meta)| *meta).or(input) {
            self.events.moves(&meta);
        }
    }

    /// Emits that a piece was received from another slot.
    pub fn emit_piece(&mut self, piece: &Piece) {
        let LaneId { incarnation, .. } = piece.to;
        self.events.turn_to(incarnation);
        let what = What::Receive { transfer: piece.transfer, from: piece.from };
        self.begin_event(EventKind::Move, Subject { what, signal: 0, tensor: TensorId(0) });
        if let Ok(content) = &piece.result {
            self.events.moves(&content.meta());
        }
    }

    fn begin_event(&mut self, kind: EventKind, subject: Subject) {
        let now = self.engine.now();
        self.events.begin(kind, subject, now, &self.stats);
    }

    /// Ends the open event if the worker's turn `is_over`, and sends events if that is due.
    pub fn pause(&mut self, is_over: bool, out: &mut Vec<Out>) {
        if is_over {
            self.end_event();
        }
        self.send_events(Urgency::Busy, out);
    }

    /// Ends the open event.
    pub fn end_event(&mut self) {
        self.events.end(self.engine.now(), &self.stats);
    }

    /// Sends the events and a report of an idle worker, or as a watcher asks for the status.
    pub fn report(&mut self, is_asked: bool, out: &mut Vec<Out>) -> Option<Duration> {
        self.send_events(if is_asked { Urgency::Asked } else { Urgency::Idle }, out)
    }

    /// Sends the events and a report if that is due. Returns how long it takes until it is.
    pub fn send_events(&mut self, urgency: Urgency, out: &mut Vec<Out>) -> Option<Duration> {
        if !self.events.is_on() {
            return None;
        }
        let now = self.engine.now();
        if !self.events.is_due(now, urgency) {
            return Some(self.events.due_in(now));
        }
        let stats = self.stats();
        let messages = self.events.send(now, urgency, &stats);
        out.extend(messages.into_iter().map(Out::Server));
        None
    }
}
