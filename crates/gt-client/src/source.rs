//! Which line of the user's program issued an instruction, and which function it called there.
//!
//! Instructions carry a number; its text stays in this process. The lowest bit of the number marks
//! gradients of what the line has computed.

use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::{LazyLock, Mutex, MutexGuard};

use gt_ir::SourceId;
use rustc_hash::FxHashMap;

thread_local! {
    static CURRENT: Cell<SourceId> = const { Cell::new(SourceId(0)) };
}

/// A function that users call and that consists of several instructions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    pub name: String,
    /// The users' name of the operand whose values may be out of range: "target", "index".
    pub operand: String,
}

/// The number of a [`Call`]; 0 for none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct CallId(u32);

impl CallId {
    pub const NONE: CallId = CallId(0);
}

#[derive(Default)]
struct LineInterner {
    /// Each with the function called there.
    texts: Vec<(String, CallId)>,
    numbers: FxHashMap<(String, CallId), u32>,
    calls: Vec<Call>,
}

static LINES: LazyLock<Mutex<LineInterner>> = LazyLock::new(Mutex::default);

fn lines() -> MutexGuard<'static, LineInterner> {
    LINES.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The number for a function that users call.
pub fn intern_call(call: Call) -> CallId {
    let mut lines = lines();
    let known = lines.calls.iter().position(|known| *known == call);
    let index = known.unwrap_or_else(|| {
        lines.calls.push(call);
        lines.calls.len() - 1
    });
    CallId(index as u32 + 1)
}

/// The number for a line given as `file:line`; the same text always gets the same number.
pub fn intern(text: &str) -> SourceId {
    intern_within(text, CallId::default())
}

/// The number for a line in which a function is called.
pub fn intern_within(text: &str, call: CallId) -> SourceId {
    let mut lines = lines();
    let key = (text.to_string(), call);
    if let Some(&number) = lines.numbers.get(&key) {
        return SourceId(number << 1);
    }
    lines.texts.push(key.clone());
    let number = lines.texts.len() as u32;
    lines.numbers.insert(key, number);
    SourceId(number << 1)
}

/// The text of a line's number.
pub fn text(source: SourceId) -> Option<String> {
    let lines = lines();
    let (text, _) = lines.texts.get(((source.0 >> 1) as usize).checked_sub(1)?)?;
    Some(text.clone())
}

/// The function that was called in a line, if it is one of several instructions.
pub fn call(source: SourceId) -> Option<Call> {
    let lines = lines();
    let (_, call) = lines.texts.get(((source.0 >> 1) as usize).checked_sub(1)?)?;
    lines.calls.get((call.0 as usize).checked_sub(1)?).cloned()
}

/// The number under which gradients of what a line has computed are issued.
pub fn of_gradient(source: SourceId) -> SourceId {
    SourceId(source.0 | u32::from(source.0 != 0))
}

/// Whether a number is that of gradients of what a line has computed.
pub fn is_of_gradient(source: SourceId) -> bool {
    source.0 & 1 == 1
}

/// Sets the line of this thread's instructions from now on.
pub fn set(source: SourceId) {
    CURRENT.with(|current| current.set(source));
}

/// Issues instructions of this thread for a line until it is dropped.
pub struct LineScope {
    before: SourceId,
    /// It belongs to the thread that started it.
    _thread: PhantomData<*const ()>,
}

/// Issues instructions of this thread for a line, unless that is unknown.
pub fn line_scope(source: SourceId) -> LineScope {
    let before = CURRENT.with(|current| {
        let before = current.get();
        current.set(if source.0 == 0 { before } else { source });
        before
    });
    LineScope { before, _thread: PhantomData }
}

impl Drop for LineScope {
    fn drop(&mut self) {
        set(self.before);
    }
}

/// The line set last on this thread, or else the caller's of a Rust program.
#[track_caller]
pub fn current() -> SourceId {
    let set = CURRENT.get();
    if set.0 != 0 { set } else { of_caller() }
}

/// The number of the Rust caller's line, looked up by the address of its location.
#[track_caller]
fn of_caller() -> SourceId {
    thread_local! {
        static KNOWN: std::cell::RefCell<FxHashMap<usize, SourceId>> = Default::default();
    }
    let location = Location::caller();
    KNOWN.with_borrow_mut(|known| {
        *known
            .entry(std::ptr::from_ref(location) as usize)
            .or_insert_with(|| intern(&format!("{}:{}", location.file(), location.line())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_known_with_its_call_and_for_its_gradients() {
        let call_of = |name: &str| Call { name: name.into(), operand: "target".into() };
        let loss = intern_call(call_of("cross_entropy"));
        assert_eq!(loss, intern_call(call_of("cross_entropy")));
        let (plain, within) = (intern("a.py:3"), intern_within("a.py:3", loss));
        assert_ne!(plain, within);
        assert_eq!(text(of_gradient(within)).as_deref(), Some("a.py:3"));
        assert_eq!(call(of_gradient(within)), Some(call_of("cross_entropy")));
        assert_eq!(call(plain), None);
        assert!(is_of_gradient(of_gradient(plain)) && !is_of_gradient(plain));
        assert_eq!(of_gradient(SourceId(0)), SourceId(0));
    }

    #[test]
    fn a_line_is_issued_for_during_a_while() {
        set(SourceId(8));
        {
            let _scope = line_scope(SourceId(4));
            let _unknown = line_scope(SourceId(0));
            assert_eq!(current(), SourceId(4));
        }
        assert_eq!(current(), SourceId(8));
        set(SourceId(0));
    }
}
