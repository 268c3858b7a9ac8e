//! A call of a kernel in Python, while it is found out what it does.

use gt::program::{self, Running};
use gt::{Session, ValueRef};
use smallvec::SmallVec;

use super::argument::{Argument, CLUSTER, Kind};
use super::call::Call;
use super::effects::{Effects, Elements, Given, Layout};
use crate::torch::programs::Key;
use crate::torch::storage::{self, Content};

/// A call that is being recorded.
pub struct Pending {
    running: Running,
    key: Key,
    /// The storages of its arguments, and which elements each had.
    storages: SmallVec<[(usize, Option<ValueRef>); 4]>,
    views: Vec<Option<View>>,
}

/// What an argument shows of its storage: address, offset, sizes and strides.
#[derive(PartialEq)]
struct View(usize, i64, SmallVec<[i64; 4]>, SmallVec<[i64; 4]>);

impl Pending {
    /// Begins to record; `None` where that cannot be.
    pub fn begin(session: &Session, call: Call) -> Option<Pending> {
        let running = program::begin(session, &call.inputs.values, &call.numbers)?;
        let numbers = call.storages.all.iter().map(|&number| number as usize);
        Some(Pending {
            running,
            storages: numbers.map(|number| (number, elements(number))).collect(),
            views: call.arguments.iter().map(View::of).collect(),
            key: call.key,
        })
    }

    /// What the call has done; `None` where that cannot be told.
    pub fn end(self, arguments: &[Argument], results: &[Argument]) -> Option<(Key, Effects)> {
        let recording = self.running.end()?;
        if !arguments.iter().map(View::of).eq(self.views) {
            return None;
        }
        let mut outputs = Vec::new();
        let writes = writes(&self.storages, &mut outputs)?;
        let mut taken: Vec<usize> = self.storages.iter().map(|(number, _)| *number).collect();
        let results: Option<_> = results
            .iter()
            .map(|result| given(result, arguments, &mut taken, &mut outputs))
            .collect();
        let results = results?;
        let program = recording.finish(&outputs)?;
        Some((self.key, Effects { program, writes, results }))
    }
}

/// The storages that have other elements than before; these become outputs.
fn writes(
    storages: &[(usize, Option<ValueRef>)],
    outputs: &mut Vec<ValueRef>,
) -> Option<SmallVec<[(usize, usize); 1]>> {
    let mut writes = SmallVec::new();
    for (place, (number, before)) in storages.iter().enumerate() {
        let before = before.as_ref().map(ValueRef::identity);
        match storage::get(*number)?.content {
            Content::Elements(elements) if before != Some(elements.identity()) => {
                writes.push((place, outputs.len()));
                outputs.push(elements);
            }
            Content::Elements(_) => {}
            Content::Blank if before.is_none() => {}
            Content::Blank | Content::Bytes(_) => return None,
        }
    }
    Some(writes)
}

/// A result, which is an argument, new, or no tensor. The elements of a new one become an output;
/// `taken` are the storages that others are over.
fn given(
    result: &Argument,
    arguments: &[Argument],
    taken: &mut Vec<usize>,
    outputs: &mut Vec<ValueRef>,
) -> Option<Given> {
    match result.kind {
        Kind::None => return Some(Given::Nothing),
        Kind::Integer => return Some(Given::Integer(result.value)),
        Kind::List => return Some(Given::List(result.count)),
        Kind::Tensor => {}
        _ => return None,
    }
    let is_this = |of: &Argument| of.kind == Kind::Tensor && of.value == result.value;
    if let Some(place) = arguments.iter().position(is_this) {
        return Some(Given::Argument(place));
    }
    let number = storage::number(result.address)?;
    if result.device != CLUSTER || taken.contains(&number) {
        return None;
    }
    taken.push(number);
    let held = storage::get(number)?;
    let elements = match held.content {
        Content::Elements(elements) => {
            outputs.push(elements);
            Elements::Output(outputs.len() - 1)
        }
        Content::Blank => Elements::Blank(held.dtype, held.shape),
        Content::Bytes(_) => return None,
    };
    Some(Given::Tensor(Layout::of(result)?, elements))
}

/// The elements of a storage.
fn elements(number: usize) -> Option<ValueRef> {
    storage::look(number, |held| match &held.content {
        Content::Elements(elements) => Some(elements.clone()),
        Content::Blank | Content::Bytes(_) => None,
    })?
}

impl View {
    fn of(argument: &Argument) -> Option<View> {
        (argument.kind == Kind::Tensor && argument.device == CLUSTER).then(|| {
            let (sizes, strides) = (argument.sizes().into(), argument.strides().into());
            View(argument.address, argument.offset, sizes, strides)
        })
    }
}
