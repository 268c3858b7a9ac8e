//! The worker's state machine: lanes that take turns on one device.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use gt_ir::message::{Failure, Message, WorkerStats};
use gt_ir::status::Share;
use gt_ir::template::Values;
use gt_ir::{Joint, LaneId, Piece, RequestId, WorkerCommand, WorkerId};

use crate::device::Device;
use crate::engine::Engine;
use crate::exchange::Lost;
use crate::iterate::{AtHand, dying};
use crate::iteration::{Iteration, Running};
use crate::joint::Joints;
use crate::lane::Lane;
use crate::work::{Options, Out, Work};

/// A turn ends after so many commands,
const TURN: usize = 128;
/// or so much work, if another lane waits: see [`gt_ir::Operation::work`].
const TURN_WORK: u64 = 1 << 20;
/// So many sessions that have ended are remembered: pieces for them may still come.
const ENDED: usize = 1 << 10;

/// Runs the commands of many lanes on an engine. An operation that fails, or panics, fails its
/// output and all that depend on it; the worker goes on.
pub struct Worker<E: Engine> {
    device: Device<E>,
    lanes: BTreeMap<LaneId, Lane<E::Tensor>>,
    joints: Joints<E::Tensor>,
    lost: Lost,
    /// The lanes that may have something to do, in the order of their turns.
    ready: VecDeque<LaneId>,
    ended: VecDeque<u32>,
}

/// Why a lane's turn ends.
enum TurnEnd {
    /// Nothing is left, or what is next waits for others.
    Idle,
    /// It is another lane's turn.
    Over,
}

impl<E: Engine> Worker<E> {
    /// A worker that calls itself `name`.
    pub fn new(name: String, engine: E) -> Worker<E> {
        Worker {
            device: Device::new(name, engine),
            lanes: BTreeMap::new(),
            joints: Joints::default(),
            lost: Lost::default(),
            ready: VecDeque::new(),
            ended: VecDeque::new(),
        }
    }

    /// The same worker, to run otherwise.
    pub fn with_options(mut self, options: Options) -> Worker<E> {
        self.device.options = options;
        self
    }

    /// A lane, which is made with the first that comes for it.
    fn lane(&mut self, id: LaneId) -> &mut Lane<E::Tensor> {
        self.lanes.entry(id).or_insert_with(|| Lane::new(id))
    }

    /// A lane may have something to do.
    fn wake(&mut self, id: LaneId) {
        if !self.ready.contains(&id) {
            self.ready.push_back(id);
        }
    }

    fn accept(&mut self, id: LaneId, commands: Vec<WorkerCommand>) {
        if self.ended.contains(&id.session) {
            return;
        }
        let asks = matches!(commands.last(), Some(WorkerCommand::Fetch { .. }));
        let lane = self.lane(id);
        let (waits, sequences) = (!lane.queue.is_empty(), lane.templates.len());
        lane.accept(commands);
        let now = lane.templates.len();
        let has_grown = lane.queue.has_grown();
        let stats = &mut self.device.stats;
        stats.hot_sequences = stats.hot_sequences + now as u64 - sequences as u64;
        // Whoever asks for a value is not to wait for what nobody wants.
        if waits && (asks || has_grown) {
            self.look_through(id);
        }
        self.wake(id);
    }

    /// Looks for what nobody wants in a lane's queue.
    fn look_through(&mut self, id: LaneId) {
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        let free = lane.queue.look_through();
        if lane.running.is_none() {
            lane.store.free_all(&mut self.device.held, &free);
        }
    }

    fn cancel(&mut self, id: LaneId, request: RequestId) {
        if self.lanes.get_mut(&id).is_some_and(|lane| lane.queue.cancel(request)) {
            self.look_through(id);
            self.wake(id);
        }
    }

    fn receive(&mut self, piece: Piece) {
        if self.ended.contains(&piece.to.session) {
            return;
        }
        if self.device.events.is_on {
            self.device.emit_piece(&piece);
        }
        let id = piece.to;
        let lane = self.lanes.entry(id).or_insert_with(|| Lane::new(id));
        if self.device.take_piece(lane, piece) {
            self.wake(id);
        }
    }

    fn lose(&mut self, worker: WorkerId, name: &str) {
        self.lost.add(worker, name);
        self.joints.lose(worker);
        let ids: Vec<LaneId> = self.lanes.keys().copied().collect();
        for id in ids {
            if let Some(lane) = self.lanes.get_mut(&id) {
                self.device.lose_peer(lane, &self.lost, worker);
            }
            self.wake(id);
        }
        // Nothing depends on how that goes.
        let _ = self.device.guarded(|engine| {
            engine.leave(worker);
            Ok(())
        });
    }

    fn end_session(&mut self, session: u32) {
        let of_session: Vec<LaneId> =
            self.lanes.keys().copied().filter(|id| id.session == session).collect();
        for id in of_session {
            if let Some(mut lane) = self.lanes.remove(&id) {
                lane.store.clear(&mut self.device.held);
                self.device.stats.hot_sequences -= lane.templates.len() as u64;
            }
            self.ready.retain(|ready| *ready != id);
        }
        self.joints.end_session(session);
        self.device.events.end_session(session);
        self.device.engine.release_memory();
        self.ended.push_back(session);
        if self.ended.len() > ENDED {
            self.ended.pop_front();
        }
    }

    /// All members of a joint exchange are ready, or one has failed.
    fn hear(&mut self, id: LaneId, transfer: gt_ir::TransferId, result: Result<u64, Failure>) {
        let Some((turn, failure)) = self.joints.hear(id, transfer, result) else { return };
        if let Some(lane) = self.lanes.get_mut(&id) {
            self.device.finish_exchange(lane, &turn.exchange, Err(Arc::new(failure)));
            self.wake(id);
        }
    }

    /// Lets a lane have its turn.
    fn turn(&mut self, id: LaneId, out: &mut Vec<Out>) -> TurnEnd {
        let Worker { device, lanes, joints, lost, ready, .. } = self;
        let Some(lane) = lanes.get_mut(&id) else { return TurnEnd::Idle };
        device.events.turn_to(id.session);
        let others_wait = !ready.is_empty();
        let mut turn = Turn { device, lane, joints, lost, out, spent: 0 };
        for _ in 0..TURN {
            if !turn.next() {
                return TurnEnd::Idle;
            }
            if others_wait && turn.spent > TURN_WORK {
                break;
            }
        }
        TurnEnd::Over
    }

    fn held(&self) -> impl Fn(&mut Vec<Share>) + use<E> {
        let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
        for (id, lane) in &self.lanes {
            *bytes.entry(id.session).or_default() += lane.store.bytes();
        }
        move |shares: &mut Vec<Share>| {
            shares.iter_mut().for_each(|share| share.bytes = 0);
            for (session, bytes) in &bytes {
                match shares.iter_mut().find(|share| share.session == *session) {
                    Some(share) => share.bytes = *bytes,
                    None if *bytes > 0 => {
                        let busy = Duration::ZERO;
                        shares.push(Share { session: *session, bytes: *bytes, busy });
                    }
                    None => {}
                }
            }
        }
    }

    /// What it was at has ended, for now.
    fn pause(&mut self, out: &mut Vec<Out>) {
        if self.device.events.is_on {
            let held = self.held();
            self.device.pause(out, held);
        }
    }
}

/// A lane's turn.
struct Turn<'a, E: Engine> {
    device: &'a mut Device<E>,
    lane: &'a mut Lane<E::Tensor>,
    joints: &'a mut Joints<E::Tensor>,
    lost: &'a Lost,
    out: &'a mut Vec<Out>,
    /// What it has cost.
    spent: u64,
}

impl<E: Engine> Turn<'_, E> {
    /// Does the next that is to be done; false if there is nothing, or it waits for others.
    fn next(&mut self) -> bool {
        if self.lane.running.is_some() {
            return self.go_on();
        }
        let Some(batch) = self.lane.queue.front() else { return false };
        let (place, count) = (batch.next, batch.commands.len());
        if place == count {
            self.finish_batch();
            return true;
        }
        if batch.is_skipped(place) {
            batch.next += 1;
            if let WorkerCommand::Invoke(_) = batch.commands[place] {
                let iteration = batch.iterations.pop_front();
                self.skip(iteration);
            }
            return true;
        }
        if self.lane.store.has_pending() && self.has_to_wait() {
            return false;
        }
        // The command is taken out as long as it is run.
        let Some(batch) = self.lane.queue.front() else { return false };
        let commands = std::mem::take(&mut batch.commands);
        let done = self.run(&commands, place);
        if let Some(batch) = self.lane.queue.front() {
            batch.commands = commands;
            batch.next = place + done;
        }
        true
    }

    /// Runs the command at a place, or several from there on: gives how many.
    fn run(&mut self, commands: &[WorkerCommand], place: usize) -> usize {
        let command = &commands[place];
        let is_batch = self.device.options.batch_size > 1 && !self.lane.store.has_pending();
        // A batch emits itself.
        if self.device.events.is_on && !(is_batch && matches!(command, WorkerCommand::Run(_))) {
            self.device.emit_command(command);
        }
        match command {
            WorkerCommand::Run(_) if is_batch => {
                let skipped: Vec<usize> = match self.lane.queue.front() {
                    Some(batch) => {
                        (place..commands.len()).filter(|at| batch.is_skipped(*at)).collect()
                    }
                    None => Vec::new(),
                };
                let is_skipped = |at: usize| skipped.contains(&(place + at));
                return self.device.run_batch(self.lane, &commands[place..], is_skipped);
            }
            WorkerCommand::Run(instruction) => {
                let dying = dying(&commands[place + 1..]);
                self.spent += self.device.run(self.lane, instruction, dying);
            }
            WorkerCommand::Free(id) => self.device.free(self.lane, *id),
            WorkerCommand::Create(create) => self.device.create(self.lane, create),
            WorkerCommand::Fetch { request, tensor, .. } => {
                let result = self.device.fetch(self.lane, *tensor);
                if self.device.events.is_on {
                    self.device.events.fetches(&result);
                }
                let value = Message::Value { request: *request, result };
                self.out.push(Out::Dispatcher(value));
            }
            WorkerCommand::Statistics { request } => {
                let workers = vec![self.device.stats()];
                let statistics = Message::Statistics { request: *request, workers };
                self.out.push(Out::Dispatcher(statistics));
            }
            WorkerCommand::Exchange(exchange) => self.exchange(exchange),
            WorkerCommand::Slots(workers) => self.lane.slots.clone_from(workers),
            WorkerCommand::Define(definition) => {
                self.device.stats.unique_sequences += 1;
                self.lane.templates.retire(definition.number);
            }
            WorkerCommand::Invoke(_) => {
                let iterations = self.lane.queue.front().map(|batch| &mut batch.iterations);
                let iteration = iterations.and_then(VecDeque::pop_front);
                self.begin(iteration);
            }
        }
        1
    }

    fn exchange(&mut self, exchange: &gt_ir::Exchange) {
        match &exchange.joint {
            Some(joint) => {
                let joints = (&mut *self.joints, self.lost);
                self.device.begin_joint(self.lane, joints, exchange, joint, self.out);
            }
            None => self.device.begin_exchange(self.lane, self.lost, exchange, self.out),
        }
    }

    /// Whether the next command needs a tensor of which pieces are still to come.
    fn has_to_wait(&mut self) -> bool {
        let Lane { queue, store, .. } = &mut *self.lane;
        let Some(batch) = queue.front() else { return false };
        match &batch.commands[batch.next] {
            WorkerCommand::Run(instruction) => instruction.reads().any(|id| store.is_pending(id)),
            WorkerCommand::Fetch { tensor, .. } => store.is_pending(*tensor),
            WorkerCommand::Exchange(exchange) => {
                exchange.input.is_some_and(|input| store.is_pending(input))
            }
            _ => false,
        }
    }

    /// An iteration begins.
    fn begin(&mut self, iteration: Option<Iteration>) {
        let Some(Iteration { work, number, generation }) = iteration else { return };
        match work {
            Ok((bound, template)) => {
                self.lane.running = Some(Running::new(bound, template, generation));
            }
            Err(error) => {
                // Two ends that disagree: what this lane has is not to be trusted.
                let reason = format!("hot path {number}: {error}");
                let lane = self.lane.id;
                self.out.push(Out::Dispatcher(Message::LaneBroken { lane, reason }));
            }
        }
    }

    /// An iteration that nobody wants: only its frees are done.
    fn skip(&mut self, iteration: Option<Iteration>) {
        let Some(iteration) = iteration else { return };
        for id in iteration.effects().frees {
            self.device.free(self.lane, id);
        }
    }

    /// Goes on with the iteration under way, by a part; false if that waits for others.
    fn go_on(&mut self) -> bool {
        let Some(mut running) = self.lane.running.take() else { return false };
        let Some(mut known) = self.lane.templates.take_known(running.generation) else {
            return true;
        };
        let mut waits = false;
        if let Some(part) = known.parts.get_mut(running.part) {
            let bound = &running.bound;
            waits = self.lane.store.has_pending()
                && part.needs.iter().any(|name| self.lane.store.is_pending(bound.tensor(*name)));
            if !waits {
                let at_hand = AtHand {
                    template: &running.template,
                    bound,
                    number: Some(known.number),
                    compile: known.compile,
                };
                self.device.stats.hot_instructions += part.operations;
                // The planner has cut it at a quantum: where others wait it is a whole turn.
                self.spent = self.spent.max(TURN_WORK) + 1;
                if !self.device.run_part(self.lane, &at_hand, part) {
                    let steps = &running.template.steps[part.steps.clone()];
                    let slot = self.lane.id.slot;
                    let command =
                        |step: &gt_ir::template::Step| step.command(bound, bound.transfer, slot);
                    let commands: Vec<WorkerCommand> = steps.iter().filter_map(command).collect();
                    match commands.as_slice() {
                        [WorkerCommand::Exchange(exchange)] => self.exchange(exchange),
                        commands => self.device.run_plainly(self.lane, commands),
                    }
                }
                running.part += 1;
            }
        }
        let is_done = running.part >= known.parts.len();
        self.lane.templates.put_known(running.generation, known);
        if !is_done {
            self.lane.running = Some(running);
        }
        !waits
    }

    fn finish_batch(&mut self) {
        let weight = self.lane.queue.pop();
        let skipped = std::mem::take(&mut self.lane.queue.skipped);
        self.device.stats.operations_skipped += skipped;
        let lane = self.lane.id;
        self.out.push(Out::Dispatcher(Message::LaneDone { lane, weight }));
    }
}

impl<E: Engine> Work for Worker<E> {
    fn handle(&mut self, message: Message, out: &mut Vec<Out>) {
        match message {
            Message::Work { lane, commands } => self.accept(lane, commands),
            Message::Piece { piece, .. } => self.receive(piece),
            Message::Join { lane, transfer, result, .. } => self.hear(lane, transfer, result),
            Message::Cancel { lane, request } => self.cancel(lane, request),
            Message::EndSession { session } => self.end_session(session),
            Message::WorkerLost { worker, name } => self.lose(worker, &name),
            _ => {}
        }
        self.pause(out);
    }

    fn step(&mut self, out: &mut Vec<Out>) -> bool {
        let Some(id) = self.ready.pop_front() else { return false };
        let end = self.turn(id, out);
        if let TurnEnd::Over = end {
            self.ready.push_back(id);
        }
        self.pause(out);
        true
    }

    fn due(&self) -> Option<&Joint> {
        self.joints.due()
    }

    fn join(&mut self, out: &mut Vec<Out>) {
        let Some((id, turn, epoch)) = self.joints.take_due() else { return };
        self.device.events.turn_to(id.session);
        let input = turn.exchange.input;
        let input = input.and_then(|input| self.lanes.get(&id)?.store.meta(input));
        let (exchange, made) = self.device.join_members(&mut self.joints, turn, epoch, input);
        // The session may be over: then nobody needs what was made.
        if let Some(lane) = self.lanes.get_mut(&id) {
            self.device.finish_exchange(lane, &exchange, made);
            self.wake(id);
        }
        self.pause(out);
    }

    fn stats(&self) -> WorkerStats {
        self.device.stats()
    }

    fn leftovers(&self) -> Option<String> {
        let (tensors, lanes) = (self.device.stats().tensors, self.lanes.len());
        let (joints, ready) = (self.joints.len(), self.ready.len());
        (tensors > 0 || lanes + joints + ready > 0).then(|| {
            format!("{tensors} tensors, {lanes} lanes, {joints} joint exchanges, {ready} turns")
        })
    }

    fn rate(&self) -> u64 {
        self.device.engine.rate()
    }

    fn observe(&mut self, on: bool, now: Duration) {
        let here = self.device.engine.now();
        self.device.events.observe(on, here, now);
    }

    fn report(&mut self, out: &mut Vec<Out>) {
        let held = self.held();
        self.device.send_events(true, out, held);
    }

    fn after_fork(&mut self) {
        self.device.engine.after_fork();
    }
}
