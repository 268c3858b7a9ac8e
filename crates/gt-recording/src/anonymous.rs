//! What an anonymous recording has instead of data, texts and names.

use bytes::Bytes;
use gt_ir::operation::ParameterKind;
use gt_ir::publication::Audience;
use gt_ir::signal::Shard;
use gt_ir::stored::Save;
use gt_ir::template::{Definition, Step};
use gt_ir::{
    Attribute, Attributes, ClientCommand, Content, Create, Detach, Instruction, Kept, Meta,
    Operation, Publish, SharedBlock,
};

/// What stands for the names of a program.
const HIDDEN: &str = "hidden";

/// Returns the content that stands for data that is not recorded: a block without a token.
fn hidden(meta: Meta) -> Content {
    let block = SharedBlock { pid: 0, fd: 0, length: meta.bytes() as u64, token: 0 };
    Content::Shared { meta, block }
}

/// Returns shape and dtype of the data, if the content stands for data that is not recorded.
pub fn hidden_meta(content: &Content) -> Option<Meta> {
    match content {
        Content::Shared { meta, block } if block.token == 0 => Some(*meta),
        _ => None,
    }
}

/// Returns a command without data, texts and names; `None` for a command that has none.
pub fn command(command: &ClientCommand) -> Option<ClientCommand> {
    Some(match command {
        ClientCommand::Run(instruction) => {
            let attributes = attributes(instruction.operation, &instruction.attributes)?;
            ClientCommand::Run(Instruction { attributes, ..instruction.clone() })
        }
        ClientCommand::Define(definition) => ClientCommand::Define(Box::new(template(definition)?)),
        ClientCommand::Create(create) => {
            let content = hidden(create.content.meta());
            ClientCommand::Create(Create { content, ..*create })
        }
        ClientCommand::Signal { number, shard, .. } => ClientCommand::Signal {
            number: *number,
            name: format!("{HIDDEN}-{number}"),
            shard: shard.as_ref().map(placement),
        },
        ClientCommand::Save(save) => {
            ClientCommand::Save(Box::new(Save { folder: HIDDEN.into(), ..(**save).clone() }))
        }
        ClientCommand::Keep(kept) => ClientCommand::Keep(Box::new(Kept {
            name: HIDDEN.into(),
            structure: Bytes::new(),
            tensors: kept.tensors.clone(),
        })),
        ClientCommand::Publish(publish) => ClientCommand::Publish(Box::new(Publish {
            name: HIDDEN.into(),
            audience: Audience::Team,
            description: String::new(),
            structure: Bytes::new(),
            at: 0,
            ..(**publish).clone()
        })),
        ClientCommand::Find { request, .. } => {
            ClientCommand::Find { request: *request, name: HIDDEN.into() }
        }
        ClientCommand::Withdraw { request, .. } => {
            ClientCommand::Withdraw { request: *request, name: HIDDEN.into() }
        }
        ClientCommand::Unkeep { .. } => ClientCommand::Unkeep { name: HIDDEN.into() },
        ClientCommand::Detach(detach) => ClientCommand::Detach(Box::new(Detach {
            request: detach.request,
            name: HIDDEN.into(),
            token: None,
        })),
        _ => return None,
    })
}

/// Returns the attributes without texts; `None` if there are none.
fn attributes(operation: &'static Operation, given: &Attributes) -> Option<Attributes> {
    let is_text = |of: &gt_ir::operation::Parameter| of.kind == ParameterKind::Text;
    if !operation.attributes().any(|(of, _)| is_text(of)) {
        return None;
    }
    let hide = |(of, attribute): (&gt_ir::operation::Parameter, &Attribute)| {
        if is_text(of) { Attribute::text(HIDDEN) } else { attribute.clone() }
    };
    Some(operation.named(given).map(hide).collect())
}

/// Returns the definition of a template without texts; `None` if it has none.
fn template(definition: &Definition) -> Option<Definition> {
    let texts = |step: &Step| match step {
        Step::Run(step) => attributes(step.operation, &step.attributes),
        _ => None,
    };
    if definition.template.steps.iter().all(|step| texts(step).is_none()) {
        return None;
    }
    let mut definition = definition.clone();
    for step in &mut definition.template.steps {
        if let Some(attributes) = texts(step)
            && let Step::Run(step) = step
        {
            step.attributes = attributes;
        }
    }
    Some(definition)
}

/// Returns a placement whose axes of workers have other names.
fn placement(shard: &Shard) -> Shard {
    let mut shard = shard.clone();
    for (index, axis) in shard.mesh.iter_mut().enumerate() {
        if !axis.name.is_empty() {
            axis.name = format!("axis-{index}");
        }
    }
    shard
}
