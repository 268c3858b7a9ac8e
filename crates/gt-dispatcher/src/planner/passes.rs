//! Passes that were planned before: what is the same again is not planned again.
//!
//! A pass of a template is planned instruction by instruction once, and noted: what each worker
//! was sent, and where the tensors lie afterwards. When a pass begins as a noted one did (the same
//! steps, on tensors that lie in the same way), the workers are told to play their scripts, and
//! the notes say where the tensors lie.

use std::sync::Arc;

use gt_ir::script::{Name, Play, Script, ScriptOperand, ScriptStep};
use gt_ir::template::{Pass, Place};
use gt_ir::{Bindings, Command, Instruction, Operand, Template, TensorId, TransferId, WorkerId};
use rustc_hash::FxHashMap;

use super::Planner;
use super::layout::Layout;
use super::streams::Streams;
use super::tensors::{Copy, Origin, Tensors, There};
use super::touches::{Span, Touches};

/// The most passes of a session that are noted.
const MOST: usize = 32;

/// The passes of a session that were planned.
#[derive(Default)]
pub struct Passes {
    noted: Vec<Noted>,
    /// What they touch, worked out once.
    touches: FxHashMap<Span, Arc<Touches>>,
    clock: u64,
}

/// A pass that was planned.
struct Noted {
    key: Key,
    /// What it began with, in the order of what the pass touches.
    entry: Vec<Entry>,
    /// Numbers that decide how it is planned, by slot.
    fixed: Vec<(usize, i64)>,
    /// Names of the planner's own, and transfers, that it uses.
    made: u64,
    transfers: u64,
    number: u32,
    scripts: Vec<(WorkerId, Script)>,
    /// Whether the workers have their scripts.
    is_told: bool,
    bindings: Bindings,
    /// Which copy of which touched tensor each slot is.
    slots: Vec<(usize, usize)>,
    /// Where touched tensors lie afterwards; `None` for those that are freed.
    after: Vec<Option<After>>,
    /// And what it makes, by step.
    results: Vec<(u32, After)>,
    weight: u32,
    used: u64,
}

/// Which steps of which template, and all else that planning depends on.
#[derive(Clone, PartialEq)]
struct Key {
    span: Span,
    cluster: u64,
    strict: Option<u64>,
    signals: u64,
}

/// A tensor as a pass finds it.
#[derive(PartialEq)]
struct Entry {
    meta: gt_ir::Meta,
    origin: Origin,
    layouts: Vec<Arc<Layout>>,
}

impl Entry {
    fn of(there: &There) -> Entry {
        let layouts = there.copies.iter().map(|copy| Arc::clone(&copy.layout)).collect();
        Entry { meta: there.meta, origin: there.origin, layouts }
    }

    fn fits(&self, there: &There) -> bool {
        self.meta == there.meta
            && self.origin == there.origin
            && self.layouts.len() == there.copies.len()
            && self
                .layouts
                .iter()
                .zip(&there.copies)
                .all(|(layout, copy)| Arc::ptr_eq(layout, &copy.layout) || **layout == *copy.layout)
    }
}

/// A tensor as a pass leaves it.
struct After {
    meta: gt_ir::Meta,
    origin: Origin,
    copies: Vec<CopyAfter>,
}

struct CopyAfter {
    layout: Arc<Layout>,
    name: Name,
    /// Whether it was made for an instruction, and may be dropped for want of memory.
    moved: bool,
}

/// A pass at hand.
pub struct PassAtHand<'a> {
    pub number: u32,
    pub template: &'a Template,
    pub bindings: &'a Bindings,
    pub pass: Pass<'a>,
    /// Whether the client asked for it to be compiled.
    pub compile: bool,
}

impl PassAtHand<'_> {
    fn span(&self) -> Span {
        let Pass { first, last, freed, frees, .. } = self.pass;
        Span { template: self.number, first, last, freed, frees }
    }
}

/// What a pass began with, noted before it is planned.
pub struct Beginning {
    key: Key,
    touched: Vec<TensorId>,
    entry: Vec<Entry>,
    /// The names of the tensors' copies on workers.
    copies: Vec<Vec<TensorId>>,
    fixed: Vec<(usize, i64)>,
    made: u64,
    transfers: u64,
}

impl Planner {
    /// Has the workers play a pass, if it was planned before. Else gives what it begins with, to
    /// be noted once it is planned; `None` if it cannot be.
    pub fn play(
        &mut self,
        passes: &mut Passes,
        tensors: &mut Tensors,
        streams: &mut Streams,
        at_hand: &PassAtHand,
        mut tell: Option<&mut dyn FnMut(WorkerId, Vec<Command>)>,
    ) -> Result<(), Option<Beginning>> {
        if !at_hand.pass.others.is_empty() || tensors.notes.is_some() {
            return Err(None);
        }
        let key = self.key(tensors, at_hand);
        let touches = passes.touches(at_hand);
        let touched = touches.tensors(at_hand);
        let mut there = Vec::with_capacity(touched.len());
        for &id in &touched {
            there.push(tensors.get(id).map_err(|_| None)?);
        }
        let fixed = touches.fixed(at_hand.bindings);
        let fits = |noted: &Noted| {
            noted.key == key
                && noted.fixed == fixed
                && noted.entry.len() == there.len()
                && noted.entry.iter().zip(&there).all(|(entry, there)| entry.fits(there))
        };
        let Some(index) = passes.noted.iter().position(fits) else {
            let entry = there.iter().map(|there| Entry::of(there)).collect();
            let copies =
                there.iter().map(|there| there.copies.iter().map(|copy| copy.id).collect());
            let copies = copies.collect();
            let (made, transfers) = tensors.counts();
            let beginning = Beginning { key, touched, entry, copies, fixed, made, transfers };
            return Err(Some(beginning));
        };
        passes.clock += 1;
        let noted = &mut passes.noted[index];
        noted.used = passes.clock;
        let slots: Vec<TensorId> =
            noted.slots.iter().map(|&(tensor, copy)| there[tensor].copies[copy].id).collect();
        let play = noted.next(tensors, at_hand, &slots).ok_or(None)?;
        noted.apply(tensors, at_hand, &touched);
        let play = Arc::new(play);
        for (worker, script) in &noted.scripts {
            if !noted.is_told {
                streams.push(*worker, Command::Script(Box::new(script.clone())));
            }
            if let Some(tell) = &mut tell {
                tell(*worker, script.commands(&noted.bindings, play.transfer));
            }
            streams.push(*worker, Command::Play(Arc::clone(&play)));
        }
        noted.is_told = true;
        tensors.limit_copies(streams);
        Ok(())
    }

    fn key(&self, tensors: &Tensors, at_hand: &PassAtHand) -> Key {
        Key {
            span: at_hand.span(),
            cluster: self.cluster.version,
            strict: tensors.strict,
            signals: tensors.signals_version,
        }
    }

    /// Notes a pass that has been planned: `lists` is what the workers were sent.
    pub fn note_pass(
        &self,
        passes: &mut Passes,
        tensors: &Tensors,
        at_hand: &PassAtHand,
        beginning: Beginning,
        lists: &[(WorkerId, Vec<Command>)],
    ) {
        let number = passes.free_number();
        if let Some(noted) = noted(number, tensors, at_hand, beginning, lists) {
            passes.clock += 1;
            let noted = Noted { used: passes.clock, ..noted };
            passes.noted.retain(|other| other.number != number);
            passes.noted.push(noted);
        }
    }
}

impl Passes {
    /// What a pass touches.
    fn touches(&mut self, at_hand: &PassAtHand) -> Arc<Touches> {
        if self.touches.len() > MOST {
            self.touches.clear();
        }
        let touches = self.touches.entry(at_hand.span());
        Arc::clone(touches.or_insert_with(|| Arc::new(Touches::of(at_hand))))
    }

    /// A number for a pass: that of the one that was not used for longest, if there are many.
    fn free_number(&self) -> u32 {
        if self.noted.len() < MOST {
            let taken = |number: &u32| self.noted.iter().any(|noted| noted.number == *number);
            return (0..MOST as u32).find(|number| !taken(number)).unwrap_or(0);
        }
        self.noted.iter().min_by_key(|noted| noted.used).map_or(0, |noted| noted.number)
    }

    /// A template is another one from now on.
    pub fn forget(&mut self, template: u32) {
        self.noted.retain(|noted| noted.key.span.template != template);
        self.touches.retain(|span, _| span.template != template);
    }
}

impl Noted {
    /// The next pass: its names, and what differs from what is predicted.
    fn next(
        &mut self,
        tensors: &mut Tensors,
        at_hand: &PassAtHand,
        slots: &[TensorId],
    ) -> Option<Play> {
        let session = tensors.session;
        let base = at_hand.bindings.base().qualify(session)?;
        let (made, transfer) = tensors.skip(self.made, self.transfers)?;
        let bases = [base, made];
        self.bindings.begin_with(bases);
        let mut changed = Vec::new();
        for (slot, &id) in slots.iter().enumerate() {
            if self.bindings.predict_tensor(slot) != id {
                changed.push((slot as u32, id));
            }
            self.bindings.bind_tensor(slot, id);
        }
        let mut numbers = Vec::new();
        let Pass { first, last, .. } = at_hand.pass;
        let given = at_hand.template.new_numbers(first, last);
        for (slot, number) in given.enumerate() {
            let value = at_hand.bindings.number(number);
            if !value.same_bits(self.bindings.predict_number(slot)) {
                numbers.push((slot as u32, value));
            }
            self.bindings.bind_number(slot, value);
        }
        let (script, weight) = (self.number, self.weight);
        Some(Play { session, script, bases, transfer, tensors: changed, numbers, weight })
    }

    /// Lets the tensors lie as they do after the pass.
    fn apply(&self, tensors: &mut Tensors, at_hand: &PassAtHand, touched: &[TensorId]) {
        for (&id, after) in touched.iter().zip(&self.after) {
            let before = tensors.take(id);
            if let Some(after) = after {
                self.put(tensors, id, after, before);
            }
        }
        for (step, after) in &self.results {
            let id = TensorId(at_hand.bindings.base().0 + u64::from(*step));
            self.put(tensors, id, after, None);
        }
    }

    fn put(&self, tensors: &mut Tensors, id: TensorId, after: &After, before: Option<There>) {
        let copies = after.copies.iter().map(|copy| {
            let name = self.bindings.named(copy.name);
            let was = before.iter().flat_map(|there| &there.copies).find(|was| was.id == name);
            let made = was.map_or(0, |was| was.made);
            (Copy { layout: Arc::clone(&copy.layout), id: name, made }, copy.moved && was.is_none())
        });
        tensors.lay(id, after.meta, after.origin, copies.collect());
    }
}

/// A pass that was planned, with everything named by its place; `None` if that is not possible.
fn noted(
    number: u32,
    tensors: &Tensors,
    at_hand: &PassAtHand,
    beginning: Beginning,
    lists: &[(WorkerId, Vec<Command>)],
) -> Option<Noted> {
    let Beginning { key, touched, entry, copies, fixed, made: made_before, transfers } = beginning;
    let session = tensors.session;
    let Pass { first, last, .. } = at_hand.pass;
    let base = at_hand.bindings.base();
    let (made_after, transfers_after) = tensors.counts();
    let (made, used) = (made_after - made_before, transfers_after - transfers);
    let mut names: FxHashMap<TensorId, Name> = FxHashMap::default();
    let (mut slots, mut outside) = (Vec::new(), Vec::new());
    for (tensor, copies) in copies.iter().enumerate() {
        for (copy, &id) in copies.iter().enumerate() {
            names.insert(id, Name::Outside(slots.len() as u32));
            slots.push((tensor, copy));
            outside.push(id);
        }
    }
    for step in first..last {
        if at_hand.template.steps[step].is_some() {
            let id = TensorId(base.0 + step as u64).qualify(session)?;
            names.insert(id, Name::Own(step as u32));
        }
    }
    for place in 0..made {
        names.insert(tensors.made_name(made_before + 1 + place)?, Name::Made(place as u32));
    }
    let first_transfer = tensors.transfer_at(transfers + 1)?;
    let given = at_hand.template.new_numbers(first, last);
    let writer = Writer { at_hand, names: &names, first_transfer, first_number: given.start };
    let numbers = given.map(|slot| at_hand.bindings.number(slot)).collect();
    let bases = [base.qualify(session)?, tensors.made_name(made_before + 1)?];
    let widths = [at_hand.template.len() as u64, made];
    let mut scripts = Vec::with_capacity(lists.len());
    let empty = Script {
        session,
        number,
        widths,
        tensors: outside,
        numbers,
        bases,
        steps: Vec::new(),
        compile: at_hand.compile,
    };
    for (worker, commands) in lists {
        let steps: Option<Vec<ScriptStep>> =
            commands.iter().map(|command| writer.step(command)).collect();
        scripts.push((*worker, Script { steps: steps?, ..empty.clone() }));
    }
    let after = |there: &There| {
        let copies = there.copies.iter().map(|copy| {
            let (layout, name) = (Arc::clone(&copy.layout), *names.get(&copy.id)?);
            Some(CopyAfter { layout, name, moved: copy.made != 0 })
        });
        let (meta, origin) = (there.meta, there.origin);
        Some(After { meta, origin, copies: copies.collect::<Option<_>>()? })
    };
    let mut touched_after = Vec::with_capacity(touched.len());
    for &id in &touched {
        touched_after.push(match tensors.get(id) {
            Ok(there) => Some(after(there)?),
            Err(_) if tensors.failure(id).is_some() => return None,
            Err(_) => None,
        });
    }
    let mut results = Vec::new();
    for step in (first..last).filter(|&step| at_hand.template.steps[step].is_some()) {
        let id = TensorId(base.0 + step as u64);
        match tensors.get(id) {
            Ok(there) => results.push((step as u32, after(there)?)),
            Err(_) if tensors.failure(id).is_some() => return None,
            Err(_) => {}
        }
    }
    let weight = scripts.iter().map(|(_, script)| script.steps.len()).max().unwrap_or(0) as u32;
    let bindings = empty.bindings();
    Some(Noted {
        key,
        entry,
        fixed,
        made,
        transfers: used,
        number,
        scripts,
        is_told: false,
        bindings,
        slots,
        after: touched_after,
        results,
        weight,
        used: 0,
    })
}

/// Writes commands down by the places of their tensors.
struct Writer<'a> {
    at_hand: &'a PassAtHand<'a>,
    names: &'a FxHashMap<TensorId, Name>,
    first_transfer: TransferId,
    first_number: usize,
}

impl Writer<'_> {
    fn step(&self, command: &Command) -> Option<ScriptStep> {
        let name = |id: &TensorId| self.names.get(id).copied();
        Some(match command {
            Command::Run(instruction) => {
                let output = name(&instruction.output)?;
                let operands = instruction.operands.iter().enumerate().map(|(place, operand)| {
                    Some(match operand {
                        Operand::Tensor(id) => ScriptOperand::Tensor(name(id)?),
                        Operand::Scalar(scalar) => match self.number(instruction, output, place) {
                            Some(slot) => ScriptOperand::Number(slot),
                            None => ScriptOperand::Constant(*scalar),
                        },
                    })
                });
                ScriptStep::Run {
                    operation: instruction.operation,
                    output,
                    operands: operands.collect::<Option<_>>()?,
                    attributes: instruction.attributes.clone(),
                    source: instruction.source,
                    signal: instruction.signal,
                }
            }
            Command::Exchange(exchange) => ScriptStep::Exchange {
                transfer: u32::try_from(exchange.transfer.0.checked_sub(self.first_transfer.0)?)
                    .ok()?,
                input: match &exchange.input {
                    Some(id) => Some(name(id)?),
                    None => None,
                },
                output: match &exchange.output {
                    Some((id, _)) => Some(name(id)?),
                    None => None,
                },
                exchange: exchange.clone(),
            },
            Command::Free(id) => ScriptStep::Free(name(id)?),
            _ => return None,
        })
    }

    /// The slot of a number that the client gave: it stands at the same place of the same
    /// operation. What the planner adds has numbers of its own.
    fn number(&self, instruction: &Instruction, output: Name, place: usize) -> Option<u32> {
        let Name::Own(step) = output else { return None };
        let step = self.at_hand.template.steps[step as usize].as_ref()?;
        let same = step.operation == instruction.operation
            && step.operands.len() == instruction.operands.len();
        match step.operands.get(place) {
            Some(Place::Number(slot)) if same => Some(slot - self.first_number as u32),
            _ => None,
        }
    }
}
