//! The command name and details fields of a log line.

use std::fmt::{Display, Formatter, Result};

use gt_ir::exchange::{Collective, Exchange};
use gt_ir::{
    ClientCommand, Create, Definition, Instruction, Invocation, Operand, Rescale, SlotId, TensorId,
    WorkerCommand,
};

use crate::peer::word;

/// Returns the name of a command in the log. Users grep for these names: they do not change.
pub(super) fn client_name(command: &ClientCommand) -> &'static str {
    match command {
        ClientCommand::Run(instruction) => instruction.operation.family.log_name(),
        ClientCommand::Create(_) => "CreateTensor",
        ClientCommand::Fetch { .. } => "GetData",
        ClientCommand::Save(_) => "SaveTensors",
        ClientCommand::Free(_) => "FreeTensor",
        ClientCommand::Cancel { .. } => "Cancel",
        ClientCommand::Signal { .. } => "Signal",
        ClientCommand::Statistics { .. } => "GetStats",
        ClientCommand::Explain { .. } => "Explain",
        ClientCommand::Locate { .. } => "Locate",
        ClientCommand::Strict { .. } => "Strict",
        ClientCommand::Rescale { .. } => "Rescale",
        ClientCommand::Status { .. } => "GetStatus",
        ClientCommand::Define(_) => "DefineHotPath",
        ClientCommand::Forget { .. } => "ForgetHotPath",
        ClientCommand::Invoke(_) => "HotPathStart",
        ClientCommand::Keep(_) => "Keep",
        ClientCommand::Unkeep { .. } => "Unkeep",
        ClientCommand::Kept { .. } => "GetKept",
        ClientCommand::Detach(_) => "Detach",
        ClientCommand::Abandon => "Abandon",
        ClientCommand::Publish(_) => "Publish",
        ClientCommand::Find { .. } => "Find",
        ClientCommand::Withdraw { .. } => "Withdraw",
    }
}

/// Returns the name of a worker command in the log, without its prefix.
pub(super) fn worker_name(command: &WorkerCommand) -> &'static str {
    match command {
        WorkerCommand::Run(instruction) => instruction.operation.family.log_name(),
        WorkerCommand::Create(_) => "CreateTensor",
        WorkerCommand::Fetch { .. } => "GetData",
        WorkerCommand::Save(_) => "SaveTensors",
        WorkerCommand::Free(_) => "FreeTensor",
        WorkerCommand::Statistics { .. } => "GetStats",
        WorkerCommand::Exchange(exchange) => collective_name(exchange.collective),
        WorkerCommand::Slots(_) => "Slots",
        WorkerCommand::Snapshot(_) => "Snapshot",
        WorkerCommand::Restore { .. } => "Restore",
        WorkerCommand::Define(_) => "DefineHotPath",
        WorkerCommand::Invoke(_) => "HotPathStart",
    }
}

fn instruction_details(f: &mut Formatter, instruction: &Instruction) -> Result {
    write!(f, "result={} op={}", instruction.output, instruction.title())?;
    const NAMES: [&str; 3] = ["left", "right", "third"];
    let single = instruction.operands.len() == 1;
    for (index, operand) in instruction.operands.iter().enumerate() {
        let name = if single { "input" } else { NAMES.get(index).unwrap_or(&"more") };
        match operand {
            Operand::Tensor(id) => write!(f, " {name}={id}")?,
            Operand::Scalar(scalar) => write!(f, " {name}=scalar({scalar})")?,
        }
    }
    for (of, value) in instruction.operation.named(&instruction.attributes) {
        write!(f, " {}={}", of.name, of.shown(value))?;
    }
    signal_details(f, instruction.signal)
}

fn create_details(f: &mut Formatter, create: &Create) -> Result {
    let meta = create.content.meta();
    write!(f, "result={} dtype={} shape={}", create.output, meta.dtype, meta.shape)?;
    signal_details(f, create.signal)
}

fn signal_details(f: &mut Formatter, signal: u32) -> Result {
    if signal != 0 { write!(f, " signal={signal}") } else { Ok(()) }
}

fn exchange_details(f: &mut Formatter, exchange: &Exchange) -> Result {
    write!(f, "op={}", exchange.collective.name())?;
    if let Some((output, meta)) = &exchange.output {
        write!(f, " result={output} shape={}", meta.shape)?;
    }
    if let Some(input) = exchange.input {
        write!(f, " input={input}")?;
    }
    let slots = |ids: Vec<SlotId>| ids.iter().map(SlotId::to_string).collect::<Vec<_>>().join(",");
    let (mut to, mut from) = exchange.neighbours();
    // The blocks of a chain have the same neighbours.
    if !exchange.hops.is_empty() {
        [&mut to, &mut from].into_iter().for_each(Vec::dedup);
    }
    write!(f, " to=[{}] from=[{}]", slots(to), slots(from))?;
    match &exchange.engine_collective {
        Some(engine_collective) => write!(f, " by={}", engine_collective.kind),
        None => Ok(()),
    }
}

fn definition_details(f: &mut Formatter, definition: &Definition) -> Result {
    write!(f, "template={} operations={}", definition.number, definition.template.len())
}

fn invocation_details(f: &mut Formatter, invocation: &Invocation) -> Result {
    let (part, first_tensor): (_, TensorId) = (invocation.part, invocation.bases[0]);
    let count = part.last.saturating_sub(part.first);
    write!(f, "template={} operations={count}", invocation.template)?;
    write!(f, " first={} result={first_tensor}", part.first)
}

/// The details field of a client's command.
pub(super) struct ClientDetails<'a>(pub &'a ClientCommand);

impl Display for ClientDetails<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.0 {
            ClientCommand::Run(instruction) => instruction_details(f, instruction),
            ClientCommand::Create(create) => create_details(f, create),
            ClientCommand::Fetch { tensor, .. } | ClientCommand::Locate { tensor, .. } => {
                write!(f, "tensor={tensor}")
            }
            ClientCommand::Save(save) => {
                write!(f, "folder={} tensors={}", word(&save.folder), save.tensors.len())
            }
            ClientCommand::Free(tensor) => write!(f, "tensor={tensor}"),
            ClientCommand::Signal { number, name, shard } => {
                write!(f, "signal={number} name={}", word(name))?;
                match shard {
                    Some(shard) => write!(f, " placement={shard}"),
                    None => Ok(()),
                }
            }
            ClientCommand::Cancel { request } => write!(f, "request={}", request.0),
            ClientCommand::Statistics { .. }
            | ClientCommand::Status { .. }
            | ClientCommand::Kept { .. }
            | ClientCommand::Abandon => Ok(()),
            ClientCommand::Keep(kept) => {
                write!(f, "name={} tensors={}", word(&kept.name), kept.tensors.len())
            }
            ClientCommand::Publish(publish) => {
                write!(f, "name={} tensors={}", word(&publish.name), publish.tensors.len())?;
                write!(f, " to={}", word(&publish.audience.to_string()))
            }
            ClientCommand::Unkeep { name }
            | ClientCommand::Find { name, .. }
            | ClientCommand::Withdraw { name, .. } => write!(f, "name={}", word(name)),
            ClientCommand::Detach(detach) => write!(f, "name={}", word(&detach.name)),
            ClientCommand::Explain { begin, .. } => write!(f, "begin={begin}"),
            ClientCommand::Strict { limit } => write!(f, "limit={limit:?}"),
            ClientCommand::Rescale(Rescale { slots, elastic }) => {
                write!(f, "slots={slots:?} elastic={elastic:?}")
            }
            ClientCommand::Define(definition) => definition_details(f, definition),
            ClientCommand::Forget { template } => write!(f, "template={template}"),
            ClientCommand::Invoke(invocation) => invocation_details(f, invocation),
        }
    }
}

/// The details field of a worker's command.
pub(super) struct WorkerDetails<'a>(pub &'a WorkerCommand);

impl Display for WorkerDetails<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.0 {
            WorkerCommand::Run(instruction) => instruction_details(f, instruction),
            WorkerCommand::Create(create) => create_details(f, create),
            WorkerCommand::Fetch { tensor, .. } => write!(f, "tensor={tensor}"),
            WorkerCommand::Save(part) => {
                write!(f, "folder={} file={}", word(&part.folder), word(&part.file))?;
                write!(f, " tensors={}", part.blocks.len())
            }
            WorkerCommand::Free(tensor) => write!(f, "tensor={tensor}"),
            WorkerCommand::Statistics { .. } => Ok(()),
            WorkerCommand::Exchange(exchange) => exchange_details(f, exchange),
            WorkerCommand::Slots(workers) => {
                let workers: Vec<String> = workers.iter().map(ToString::to_string).collect();
                write!(f, "workers=[{}]", workers.join(","))
            }
            WorkerCommand::Snapshot(snapshot) => write!(f, "snapshot={}", snapshot.number),
            WorkerCommand::Restore { snapshot, .. } => write!(f, "snapshot={snapshot}"),
            WorkerCommand::Define(definition) => definition_details(f, definition),
            WorkerCommand::Invoke(invocation) => invocation_details(f, invocation),
        }
    }
}

/// Returns the name of a collective in the log.
pub(super) const fn collective_name(collective: Collective) -> &'static str {
    match collective {
        Collective::AllGather => "AllGather",
        Collective::ReduceScatter => "ReduceScatter",
        Collective::AllReduce => "AllReduce",
        Collective::AllToAll => "AllToAll",
        Collective::Broadcast => "Broadcast",
        Collective::Send => "Send",
    }
}
