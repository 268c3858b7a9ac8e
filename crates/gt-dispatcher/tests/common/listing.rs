//! Streams as readable programs: `%3: float32 (2, 3) = add(%1, %2)`.
//!
//! `%3` is a client's tensor and `%t3` one that the planner makes. In templates `%own0` and `%tmp0`
//! are the first of each that an iteration makes, `%in0` is its first input, and `#0` its first number.

use std::collections::BTreeMap;

use gt_ir::SlotId;
use gt_ir::exchange::{Exchange, Parts, Sender};
use gt_ir::template::{Argument, ExchangeStep, Instance, IterationPart, Name, RunStep, Step};
use gt_ir::{
    Attribute, ClientCommand, Create, Definition, Instruction, Invocation, Meta, Operand,
    Operation, TensorId, WorkerCommand,
};

/// Prints the commands of one session.
#[derive(Default)]
pub struct Listing {
    signals: BTreeMap<u32, String>,
    /// The templates of each slot, by their numbers.
    templates: BTreeMap<(SlotId, u32), Instance>,
}

fn join(items: impl IntoIterator<Item = String>) -> String {
    items.into_iter().collect::<Vec<_>>().join(", ")
}

fn tensor(id: TensorId) -> String {
    match id.0.checked_sub(TensorId::PLANNED.0) {
        Some(planned) => format!("%t{planned}"),
        None => format!("%{id}"),
    }
}

fn name(name: Name) -> String {
    match name {
        Name::Own(index) => format!("%own{index}"),
        Name::Made(index) => format!("%tmp{index}"),
        Name::Outside(slot) => format!("%in{slot}"),
    }
}

/// Formats `%3: float32 (2, 3), %4: int64 (2,)`; tensors of one operation have consecutive names.
fn results(names: impl IntoIterator<Item = String>, metas: &[Meta]) -> String {
    let results = names.into_iter().zip(metas);
    join(results.map(|(name, meta)| format!("{name}: {} {}", meta.dtype, meta.shape)))
}

fn call(
    operation: &Operation,
    title: &str,
    operands: impl IntoIterator<Item = String>,
    attributes: &[Attribute],
) -> String {
    let named = operation.named(attributes);
    let named = named.map(|(of, value)| format!("{}={}", of.name, of.shown(value)));
    format!("{title}({})", join(operands.into_iter().chain(named)))
}

fn exchange(exchange: &Exchange, input: Option<String>, output: Option<String>) -> String {
    let meta = exchange.output.as_ref().map(|(_, meta)| *meta);
    let result = output.zip(meta).map(|(name, meta)| results([name], &[meta]) + " = ");
    let called = format!("{}({})", exchange.collective.name(), input.unwrap_or_default());
    let by = exchange
        .engine_collective
        .as_ref()
        .map(|engine_collective| format!(" by {}", engine_collective.kind));
    let routes = routes(&exchange.parts);
    format!("{}{called}{routes}{}", result.unwrap_or_default(), by.unwrap_or_default())
}

/// Returns the slots to which blocks are sent, and from which they are received.
fn routes(parts: &Parts) -> String {
    let list = |way: &str, slots: Vec<SlotId>| match slots.is_empty() {
        true => String::new(),
        false => format!(" {way} {}", join(slots.iter().map(SlotId::to_string))),
    };
    let received = parts.receives.iter().filter_map(|receive| match receive.from {
        Sender::Slot(slot) => Some(slot),
        Sender::Own(_) => None,
    });
    let to = list("to", parts.sends.iter().map(|(to, _)| *to).collect());
    to + &list("from", received.collect())
}

impl Listing {
    /// Returns a client's command, without the placement of its result.
    pub fn client(&mut self, command: &ClientCommand) -> String {
        match command {
            ClientCommand::Run(instruction) => self.instruction(instruction),
            ClientCommand::Create(create) => self.create(create),
            ClientCommand::Free(id) => format!("free {}", tensor(*id)),
            ClientCommand::Fetch { tensor: id, .. } => format!("fetch {}", tensor(*id)),
            ClientCommand::Signal { number, name, shard } => {
                self.signals.insert(*number, name.clone());
                let shard = shard.as_ref().map_or("nothing".into(), ToString::to_string);
                format!("signal \"{name}\" means {shard}")
            }
            ClientCommand::Define(definition) => self.define(definition),
            ClientCommand::Invoke(invocation) => invoke(invocation),
            command => format!("{command:?}"),
        }
    }

    pub fn worker(&mut self, slot: SlotId, command: &WorkerCommand) -> String {
        match command {
            WorkerCommand::Run(instruction) => self.instruction(instruction),
            WorkerCommand::Create(create) => self.create(create),
            WorkerCommand::Free(id) => format!("free {}", tensor(*id)),
            WorkerCommand::Fetch { tensor: id, .. } => format!("fetch {}", tensor(*id)),
            WorkerCommand::Exchange(of) => {
                exchange(of, of.input.map(tensor), of.output.map(|(id, _)| tensor(id)))
            }
            WorkerCommand::Slots(workers) => {
                let workers = join(workers.iter().map(|worker| format!("w{worker}")));
                format!("slots are on {workers}")
            }
            WorkerCommand::Define(definition) => {
                let instance = Instance::new((**definition).clone());
                self.templates.insert((slot, definition.number), instance);
                self.define(definition)
            }
            WorkerCommand::Invoke(invocation) => {
                invoke(invocation) + &self.varying_exchanges(slot, invocation)
            }
            command => format!("{command:?}"),
        }
    }

    /// Returns a line for each exchange of a slot whose blocks depend on the iteration's numbers.
    fn varying_exchanges(&mut self, slot: SlotId, invocation: &Invocation) -> String {
        let instance = self.templates.get_mut(&(slot, invocation.template));
        let instance = instance.expect("a template is defined before its invocations");
        instance.take(invocation).expect("both ends have the same bindings");
        let IterationPart { first, last, .. } = invocation.part;
        let steps = &instance.template.steps[first as usize..last as usize];
        let lines = steps.iter().filter_map(|step| match step {
            Step::Exchange(step) if step.slice.is_some() => {
                let of = step.exchange(&instance.bindings, invocation.transfer, slot);
                let output = of.output.as_ref().map(|(id, _)| tensor(*id));
                Some(format!("\n    # {}", exchange(&of, of.input.map(tensor), output)))
            }
            _ => None,
        });
        lines.collect()
    }

    /// Returns the signal scope of a command, if it is in one.
    fn scope(&self, signal: u32) -> String {
        self.signals.get(&signal).map(|name| format!(" in \"{name}\"")).unwrap_or_default()
    }

    fn instruction(&self, instruction: &Instruction) -> String {
        let names = instruction.outputs().map(|(id, _)| tensor(id));
        let operands = instruction.operands.iter().map(|operand| match operand {
            Operand::Tensor(id) => tensor(*id),
            Operand::Scalar(scalar) => scalar.to_string(),
        });
        let (operation, attributes) = (instruction.operation, &instruction.attributes);
        let called = call(operation, &instruction.title(), operands, attributes);
        let scope = self.scope(instruction.signal);
        format!("{} = {called}{scope}", results(names, &instruction.results))
    }

    fn create(&self, create: &Create) -> String {
        let result = results([tensor(create.output)], &[create.content.meta()]);
        format!("{result} = data{}", self.scope(create.signal))
    }

    fn define(&self, definition: &Definition) -> String {
        let template = &definition.template;
        let steps = template.steps.iter().map(|step| match step {
            Step::Run(step) => self.run(step),
            Step::Data { output, meta } => results([name(*output)], &[*meta]) + " = data",
            Step::Exchange(step) => varying_exchange(step),
            Step::Free(of) => format!("free {}", name(*of)),
        });
        let frees = template.frees.iter().map(|of| format!("free {}", name(*of)));
        let mut text = format!("define template {} {{\n", definition.number);
        for line in steps.chain(frees) {
            text += &format!("    {line}\n");
        }
        text + "}"
    }

    fn run(&self, step: &RunStep) -> String {
        let names = (0..step.results.len() as u32).map(|index| match step.output {
            Name::Own(first) => name(Name::Own(first + index)),
            Name::Made(first) => name(Name::Made(first + index)),
            Name::Outside(slot) => name(Name::Outside(slot)),
        });
        let operands = step.operands.iter().map(|operand| match operand {
            Argument::Tensor(of) => name(*of),
            Argument::Number(slot) => format!("#{slot}"),
            Argument::Constant(scalar) => scalar.to_string(),
        });
        let varying = step.varying.as_ref().map(|varying| {
            let slots = varying.slots().map(|slot| format!("#{slot}"));
            format!(" varying by [{}]", join(slots))
        });
        let called = call(step.operation, step.operation.name, operands, &step.attributes);
        let (varying, scope) = (varying.unwrap_or_default(), self.scope(step.signal));
        format!("{} = {called}{varying}{scope}", results(names, &step.results))
    }
}

fn varying_exchange(step: &ExchangeStep) -> String {
    let text = exchange(&step.exchange, step.input.map(name), step.output.map(name));
    let slots = step.slice.as_ref().map(|slice| slice.starts.slots());
    let slots = slots.map(|slots| join(slots.map(|slot| format!("#{slot}"))));
    text + &slots.map(|slots| format!(" of a slice from [{slots}]")).unwrap_or_default()
}

/// Formats an invocation, which lists only the differences from the prediction.
fn invoke(invocation: &Invocation) -> String {
    let Invocation { template, bases, part: IterationPart { first, last, .. }, .. } = invocation;
    let tensors = invocation.tensors.iter();
    let tensors = tensors.map(|(slot, id)| format!("%in{slot}={}", tensor(*id)));
    let numbers = invocation.numbers.iter().map(|(slot, value)| format!("#{slot}={value}"));
    let bases = [format!("%own0={}", tensor(bases[0])), format!("%tmp0={}", tensor(bases[1]))];
    let bindings = join(bases.into_iter().chain(tensors).chain(numbers));
    let frees = join(invocation.others.iter().map(|id| tensor(*id)));
    let frees = if frees.is_empty() { frees } else { format!(", then free {frees}") };
    format!("invoke template {template} steps {first}..{last} with {bindings}{frees}")
}
