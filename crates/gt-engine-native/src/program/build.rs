//! From a plan to its units.

use gt_ir::ops::binary::POW;
use gt_ir::shape::axes;
use gt_ir::{DType, Meta, Operand, Shape};
use gt_worker::plan::{Input, Plan, Source, Step};
use rustc_hash::FxHashMap;

use super::Unit;
use super::fold::{Folding, folding};
use super::group::{End, EndKind, From, Group, GroupInput, Kind, Node, Output, Space};
use super::micro::{Micro, micro};
use super::sound::Sound;

/// Rows longer than this are folded by themselves: a tile holds whole ones.
const LONGEST_ROW: usize = 8192;
/// So many totals at most are held for each thread.
const MOST_COLUMNS: usize = 1 << 16;
/// Groups do not grow beyond this many nodes.
const MOST_NODES: usize = 256;

/// Cuts a plan into units, in an order in which each finds what it needs.
pub fn units(plan: &Plan) -> Vec<Unit> {
    let mut builder = Builder { plan, drafts: Vec::new(), homes: vec![Home::Given; plan.values()] };
    for (index, step) in plan.steps.iter().enumerate() {
        builder.step(index as u32, step);
    }
    builder.finish()
}

/// For each unit, the values that are not needed after it. Outputs are needed to the end.
pub fn dying(plan: &Plan, units: &[Unit]) -> Vec<Vec<u32>> {
    let mut last: Vec<Option<usize>> = vec![None; plan.values()];
    for (index, unit) in units.iter().enumerate() {
        let mut uses = |value: u32| last[value as usize] = Some(index);
        match unit {
            Unit::Single(step) => plan.steps[*step as usize].reads().for_each(&mut uses),
            Unit::Group(group) => {
                let sources = group.inputs.iter().filter_map(|input| input.source.tensor());
                sources.for_each(|&value| uses(value));
            }
        }
    }
    let mut dying = vec![Vec::new(); units.len()];
    for (value, last) in last.into_iter().enumerate() {
        if let Some(last) = last
            && !plan.outputs.contains(&(value as u32))
        {
            dying[last].push(value as u32);
        }
    }
    dying
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq)]
enum Home {
    Given,
    /// Made by a step of its own, or at the end of a group.
    Unit(usize),
    /// In a group, tile by tile.
    Node {
        unit: usize,
        node: u16,
    },
}

impl Home {
    fn unit(self) -> Option<usize> {
        match self {
            Home::Given => None,
            Home::Unit(unit) | Home::Node { unit, .. } => Some(unit),
        }
    }
}

enum Draft {
    /// It was taken in by a later one.
    Gone,
    Single(u32),
    Group(Box<GroupDraft>),
}

struct GroupDraft {
    group: Group,
    /// The nodes that are values of the plan.
    values: FxHashMap<u32, u16>,
    /// Whether another unit reads one of them.
    is_read: bool,
}

struct Builder<'a> {
    plan: &'a Plan,
    drafts: Vec<Draft>,
    homes: Vec<Home>,
}

impl Builder<'_> {
    fn step(&mut self, index: u32, step: &Step) {
        let value = self.plan.inputs.len() as u32 + index;
        let fused = step.output.shape.numel() > 0
            && (self.map(index, value, step) || self.fold(index, value, step));
        if !fused {
            self.homes[value as usize] = Home::Unit(self.drafts.len());
            self.drafts.push(Draft::Single(index));
        }
        // Only now: the step itself may have taken in a group that it reads.
        let unit = self.homes[value as usize].unit();
        for read in step.reads() {
            if let Home::Node { unit: home, .. } = self.homes[read as usize]
                && Some(home) != unit
                && let Draft::Group(draft) = &mut self.drafts[home]
            {
                draft.is_read = true;
            }
        }
    }

    /// The group in which the last of a step's operands is made, if all of them can be had there.
    fn group_of_last(&self, step: &Step) -> Option<usize> {
        let homes = || step.reads().map(|value| self.homes[value as usize]);
        let last = homes().filter_map(Home::unit).max()?;
        let within = homes().all(|home| home != Home::Unit(last));
        let Draft::Group(draft) = &self.drafts[last] else { return None };
        (within && draft.group.nodes.len() < MOST_NODES).then_some(last)
    }

    /// Puts an elementwise step into a group.
    fn map(&mut self, index: u32, value: u32, step: &Step) -> bool {
        let Some(micro) = micro(self.plan, step) else { return false };
        let shape = step.output.shape;
        let joined = self.group_of_last(step).filter(|&unit| self.accepts(unit, step));
        let unit = joined.unwrap_or_else(|| self.open(shape));
        self.gather(unit, step);
        let Draft::Group(draft) = &mut self.drafts[unit] else { unreachable!("it is a group") };
        let space = if shape == draft.group.shape { Space::Full } else { Space::Rows };
        let is_power = step.operation.id == POW.id;
        let mut inputs = [From::Input(0); 3];
        let mut kind = Kind::Map(micro);
        for (place, source) in step.operands.iter().enumerate() {
            let wanted = micro.kernel.inputs()[place];
            inputs[place] = draft.read(self.plan, &self.homes, unit, *source, wanted, space);
            if let (true, 1, From::Input(input)) = (is_power, place, inputs[place])
                && is_number(self.plan, *source)
            {
                kind = Kind::Power(input);
            }
        }
        let arity = step.operands.len();
        draft.group.cost += if space == Space::Full { micro.cost } else { 0 };
        let result = micro.kernel.result();
        let mut node = draft.push(Node { kind, inputs, arity, space, dtype: result });
        if result != step.output.dtype {
            node = draft.cast(From::Node(node), result, step.output.dtype, space);
        }
        draft.group.steps.push(index);
        draft.values.insert(value, node);
        self.homes[value as usize] = Home::Node { unit, node };
        true
    }

    /// Takes earlier groups that a step reads into its own, if nothing else has read them yet: their
    /// results need not go through memory.
    fn gather(&mut self, unit: usize, step: &Step) {
        for value in step.reads() {
            let Home::Node { unit: home, .. } = self.homes[value as usize] else { continue };
            let [Draft::Group(earlier), Draft::Group(draft)] =
                [&self.drafts[home], &self.drafts[unit]]
            else {
                continue;
            };
            let nodes = earlier.group.nodes.len() + draft.group.nodes.len();
            if home == unit
                || earlier.is_read
                || nodes > MOST_NODES
                || step.output.shape != draft.group.shape
                || !draft.group.takes(&earlier.group)
                || !self.reads_as_made(home, step)
            {
                continue;
            }
            let Draft::Group(earlier) = std::mem::replace(&mut self.drafts[home], Draft::Gone)
            else {
                unreachable!("it was a group a line ago")
            };
            let Draft::Group(draft) = &mut self.drafts[unit] else { unreachable!("likewise") };
            let GroupDraft { group, values, .. } = *earlier;
            let offset = draft.group.take_in(group);
            for (value, node) in values {
                let node = node + offset;
                draft.values.insert(value, node);
                self.homes[value as usize] = Home::Node { unit, node };
            }
        }
    }

    /// Whether a group can compute an elementwise step.
    fn accepts(&self, unit: usize, step: &Step) -> bool {
        let Draft::Group(draft) = &self.drafts[unit] else { return false };
        let group = &draft.group;
        let shape = step.output.shape;
        let is_full = shape == group.shape;
        let is_row = || group.split.map(|split| kept(group.shape, split)) == Some(shape);
        (is_full || is_row()) && self.reads_as_made(unit, step)
    }

    /// Whether a step reads what a group makes in the way it is made: an element for each row is
    /// one for all of the row, and not one for each column, as it is when the folded axes are gone.
    fn reads_as_made(&self, unit: usize, step: &Step) -> bool {
        let Draft::Group(draft) = &self.drafts[unit] else { return false };
        let group = &draft.group;
        step.operands.iter().filter_map(Operand::tensor).all(|value| {
            let Home::Node { unit: home, node } = self.homes[*value as usize] else { return true };
            if home != unit {
                return true;
            }
            let meta = self.plan.meta(*value).tensor().copied().expect("a node makes a tensor");
            match group.nodes[node as usize].space {
                Space::Full => step.output.shape == group.shape,
                Space::Rows => {
                    let split = group.split.expect("where there are rows they end somewhere");
                    meta.shape == kept(group.shape, split)
                }
            }
        })
    }

    /// Puts a reduction into a group: among the others if it is one of rows, else at its end.
    fn fold(&mut self, index: u32, value: u32, step: &Step) -> bool {
        let Some(&operand) = step.operands.first().and_then(Operand::tensor) else { return false };
        let Some(meta) = self.plan.meta(operand).tensor().copied() else { return false };
        let Some(folding) = folding(step, meta.dtype) else { return false };
        if meta.shape.numel() == 0 {
            return false;
        }
        let rank = meta.shape.rank();
        let given = gt_ir::operation::ints(&step.attributes, 0);
        let Ok(mut gone) = axes(given, rank, "reduce") else { return false };
        gone.sort_unstable();
        let count = gone.len();
        let is_last = gone.iter().copied().eq(rank - count..rank);
        let is_first = gone.iter().copied().eq(0..count);
        let split = if is_last { rank - count } else { count };
        let dims = meta.shape.dims();
        let row: usize = dims[split..].iter().product();
        let fits = |group: &Group| group.split.is_none_or(|known| known == split);
        let joined = self.group_of_last(step).filter(|&unit| match &self.drafts[unit] {
            Draft::Group(draft) => draft.group.shape == meta.shape,
            Draft::Single(_) | Draft::Gone => false,
        });
        let group = joined.and_then(|unit| match &self.drafts[unit] {
            Draft::Group(draft) => Some(&draft.group),
            Draft::Single(_) | Draft::Gone => None,
        });
        if is_last && split == 0 {
            return joined.is_some_and(|unit| {
                self.end(unit, index, value, step, operand, folding, EndKind::Total)
            });
        }
        if is_last && row <= LONGEST_ROW && group.is_none_or(fits) {
            let unit = joined.unwrap_or_else(|| self.open(meta.shape));
            let Draft::Group(draft) = &mut self.drafts[unit] else { unreachable!("a group") };
            draft.group.split = Some(split);
            let source = Operand::Tensor(operand);
            let from =
                draft.read(self.plan, &self.homes, unit, source, folding.dtype(), Space::Full);
            let (kind, inputs) = (Kind::Fold(folding), [from; 3]);
            let dtype = folding.dtype();
            let node = draft.push(Node { kind, inputs, arity: 1, space: Space::Rows, dtype });
            draft.group.cost += 1;
            draft.group.steps.push(index);
            draft.values.insert(value, node);
            self.homes[value as usize] = Home::Node { unit, node };
            return true;
        }
        if is_first && count > 0 && row <= MOST_COLUMNS && group.is_some_and(fits) {
            let unit = joined.expect("there is a group");
            let Draft::Group(draft) = &mut self.drafts[unit] else { unreachable!("a group") };
            draft.group.split = Some(split);
            return self.end(unit, index, value, step, operand, folding, EndKind::Columns);
        }
        false
    }

    #[allow(clippy::too_many_arguments, reason = "they are all that an end is")]
    fn end(
        &mut self,
        unit: usize,
        index: u32,
        value: u32,
        step: &Step,
        operand: u32,
        folding: Folding,
        kind: EndKind,
    ) -> bool {
        let Draft::Group(draft) = &mut self.drafts[unit] else { return false };
        let source = Operand::Tensor(operand);
        let from = draft.read(self.plan, &self.homes, unit, source, folding.dtype(), Space::Full);
        draft.group.ends.push(End { folding, from, kind, value, meta: step.output });
        draft.group.cost += 1;
        draft.group.steps.push(index);
        self.homes[value as usize] = Home::Unit(unit);
        true
    }

    fn open(&mut self, shape: Shape) -> usize {
        let group = Group {
            shape,
            steps: Vec::new(),
            split: None,
            inputs: Vec::new(),
            nodes: Vec::new(),
            ends: Vec::new(),
            outputs: Vec::new(),
            cost: 0,
        };
        let values = FxHashMap::default();
        let draft = GroupDraft { group, values, is_read: false };
        self.drafts.push(Draft::Group(Box::new(draft)));
        self.drafts.len() - 1
    }

    /// The units, once it is known which values are needed outside of the groups that make them.
    fn finish(self) -> Vec<Unit> {
        let Builder { plan, drafts, homes } = self;
        let mut unit_of_step = vec![usize::MAX; plan.steps.len()];
        for (unit, draft) in drafts.iter().enumerate() {
            match draft {
                Draft::Gone => {}
                Draft::Single(step) => unit_of_step[*step as usize] = unit,
                Draft::Group(draft) => {
                    draft.group.steps.iter().for_each(|&step| unit_of_step[step as usize] = unit);
                }
            }
        }
        let mut outside = vec![false; plan.values()];
        plan.outputs.iter().for_each(|&value| outside[value as usize] = true);
        let mut last_unit = vec![0; plan.values()];
        for (index, step) in plan.steps.iter().enumerate() {
            for value in step.reads() {
                let unit = unit_of_step[index];
                last_unit[value as usize] = unit.max(last_unit[value as usize]);
                outside[value as usize] |= homes[value as usize].unit() != Some(unit);
            }
        }
        plan.outputs.iter().for_each(|&value| last_unit[value as usize] = usize::MAX);
        let finished = drafts.into_iter().enumerate().filter_map(|(unit, draft)| match draft {
            Draft::Gone => None,
            Draft::Single(step) => Some(Unit::Single(step)),
            // One operation alone is run as without a plan.
            Draft::Group(draft) if draft.group.steps.len() == 1 => {
                Some(Unit::Single(draft.group.steps[0]))
            }
            Draft::Group(draft) => {
                let GroupDraft { mut group, values, .. } = *draft;
                let mut kept: Vec<(u32, u16)> =
                    values.into_iter().filter(|(value, _)| outside[*value as usize]).collect();
                kept.sort_unstable();
                let dies = |value: u32| last_unit[value as usize] == unit;
                for (value, node) in kept {
                    let meta = plan.meta(value).tensor().copied().expect("nodes make tensors");
                    let replaces = replaced(plan, &group, node, meta, &dies);
                    group.outputs.push(Output { node, value, meta, replaces });
                }
                Some(Unit::Group(Box::new(Sound::new(group))))
            }
        });
        finished.collect()
    }
}

/// The shape of one element for each row, with the axes of rows kept as ones.
fn kept(shape: Shape, split: usize) -> Shape {
    (split..shape.rank()).fold(shape, |shape, axis| shape.with(axis, 1))
}

fn is_number(plan: &Plan, source: Source) -> bool {
    match source {
        Operand::Scalar(_) => true,
        Operand::Tensor(value) => {
            matches!(plan.inputs.get(value as usize), Some(Input::Number(_)))
        }
    }
}

/// The inputs whose memory a node's result may take: it is written only where all have been read.
fn replaced(
    plan: &Plan,
    group: &Group,
    node: u16,
    meta: Meta,
    dies: &dyn Fn(u32) -> bool,
) -> Vec<u16> {
    let writer = &group.nodes[node as usize];
    let Kind::Map(micro) = writer.kind else { return Vec::new() };
    let may = |(index, input): (usize, &GroupInput)| {
        let Operand::Tensor(value) = input.source else { return None };
        let alike = group.inputs.iter().filter(|other| other.source == input.source).count();
        let fits = plan.meta(value) == Operand::Tensor(meta)
            && input.space == Space::Full
            && alike == 1
            && dies(value);
        let here = From::Input(index as u16);
        let read_later = group.nodes[node as usize + 1..].iter().any(|later| later.reads(here))
            || group.ends.iter().any(|end| end.from == here);
        let reads_it = writer.inputs[..writer.arity].iter().filter(|&&from| from == here).count();
        let in_place = reads_it == 0
            || reads_it == 1 && writer.inputs[0] == here && micro.kernel.is_in_place_on(meta.dtype);
        (fits && !read_later && in_place).then_some(index as u16)
    };
    group.inputs.iter().enumerate().filter_map(may).collect()
}

impl Node {
    fn reads(&self, from: From) -> bool {
        self.inputs[..self.arity].contains(&from)
    }
}

impl GroupDraft {
    fn push(&mut self, node: Node) -> u16 {
        self.group.nodes.push(node);
        self.group.nodes.len() as u16 - 1
    }

    /// A value in the dtype and space in which it is read.
    fn read(
        &mut self,
        plan: &Plan,
        homes: &[Home],
        unit: usize,
        source: Source,
        wanted: DType,
        space: Space,
    ) -> From {
        if let Operand::Tensor(value) = source
            && let Home::Node { unit: home, node } = homes[value as usize]
            && home == unit
        {
            let Node { dtype, space: there, .. } = self.group.nodes[node as usize];
            let mut from = From::Node(node);
            if dtype != wanted {
                from = From::Node(self.cast(from, dtype, wanted, there));
            }
            if (there, space) == (Space::Rows, Space::Full) {
                from = From::Node(self.spread(from, wanted));
            }
            return from;
        }
        let number = is_number(plan, source);
        let given = match source {
            Operand::Tensor(value) if !number => {
                plan.meta(value).tensor().expect("not a number").dtype
            }
            _ => wanted,
        };
        let input = GroupInput { source, dtype: given, space };
        let from = From::Input(self.group.input(input));
        if given == wanted { from } else { From::Node(self.cast(from, given, wanted, space)) }
    }

    fn cast(&mut self, from: From, given: DType, wanted: DType, space: Space) -> u16 {
        let cast = Micro::cast(given, wanted);
        let kind = Kind::Map(cast);
        let same = |node: &Node| {
            matches!(node.kind, Kind::Map(micro) if micro.kernel.is(&cast.kernel))
                && node.inputs[0] == from
                && node.space == space
        };
        if let Some(known) = self.group.nodes.iter().position(same) {
            return known as u16;
        }
        self.push(Node { kind, inputs: [from; 3], arity: 1, space, dtype: wanted })
    }

    fn spread(&mut self, from: From, dtype: DType) -> u16 {
        let same = |node: &Node| matches!(node.kind, Kind::Spread) && node.inputs[0] == from;
        if let Some(known) = self.group.nodes.iter().position(same) {
            return known as u16;
        }
        let (kind, space) = (Kind::Spread, Space::Full);
        self.push(Node { kind, inputs: [from; 3], arity: 1, space, dtype })
    }
}
