//! The lines of users' programs, by number, each with the function that is called there.
//!
//! Instructions carry a line's number; its text stays in this process. The lowest bit of the number
//! marks instructions that compute gradients of the line's results.

use std::sync::{LazyLock, Mutex, MutexGuard};

use gt_ir::SourceId;
use rustc_hash::FxHashMap;

/// A function that users call and that consists of several instructions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UserCall {
    pub name: String,
    /// The users' name of the operand whose values may be out of range: "target", "index".
    pub operand: String,
}

/// The number of a [`UserCall`]; 0 for none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct CallId(u32);

impl CallId {
    /// No call.
    pub const NONE: CallId = CallId(0);
}

#[derive(Default)]
struct LineInterner {
    /// The lines, each with the function that is called there.
    texts: Vec<(String, CallId)>,
    numbers: FxHashMap<(String, CallId), u32>,
    calls: Vec<UserCall>,
}

static LINES: LazyLock<Mutex<LineInterner>> = LazyLock::new(Mutex::default);

fn lines() -> MutexGuard<'static, LineInterner> {
    LINES.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Returns the number of a function that users call.
pub fn intern_call(call: UserCall) -> CallId {
    let mut lines = lines();
    let known = lines.calls.iter().position(|known| *known == call);
    let index = known.unwrap_or_else(|| {
        lines.calls.push(call);
        lines.calls.len() - 1
    });
    CallId(index as u32 + 1)
}

/// Returns the number of a line, given as `file:line`; equal texts have equal numbers.
pub fn intern(text: &str) -> SourceId {
    intern_within(text, CallId::default())
}

/// Returns the number of a line in which a function is called.
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

/// Returns the text of a line's number.
pub fn text(source: SourceId) -> Option<String> {
    let lines = lines();
    let (text, _) = lines.texts.get(((source.0 >> 1) as usize).checked_sub(1)?)?;
    Some(text.clone())
}

/// Returns the lines from an index on, in the order of their numbers, each with the function that is
/// called there. The line at index `i` has the numbers `2 * (i + 1)` and, for gradients, one more.
pub fn lines_from(index: usize) -> Vec<(String, Option<UserCall>)> {
    let lines = lines();
    let called = |call: CallId| lines.calls.get((call.0 as usize).checked_sub(1)?).cloned();
    let texts = lines.texts.get(index..).unwrap_or_default();
    texts.iter().map(|(text, call)| (text.clone(), called(*call))).collect()
}

/// Returns the text of a line's number without its folders: `train.py:12`.
pub fn short(source: SourceId) -> Option<String> {
    let text = text(source)?;
    Some(text.rsplit(['/', '\\']).next().unwrap_or_default().to_string())
}

/// Returns the function that is called in a line, if it consists of several instructions.
pub fn call(source: SourceId) -> Option<UserCall> {
    let lines = lines();
    let (_, call) = lines.texts.get(((source.0 >> 1) as usize).checked_sub(1)?)?;
    lines.calls.get((call.0 as usize).checked_sub(1)?).cloned()
}

/// Returns the number under which gradients of a line's results are issued.
pub fn of_gradient(source: SourceId) -> SourceId {
    SourceId(source.0 | u32::from(source.0 != 0))
}

/// Returns whether a number marks gradients of a line's results.
pub fn is_of_gradient(source: SourceId) -> bool {
    source.0 & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_call_and_a_number_for_its_gradients() {
        let call_of = |name: &str| UserCall { name: name.into(), operand: "target".into() };
        let loss = intern_call(call_of("cross_entropy"));
        assert_eq!(loss, intern_call(call_of("cross_entropy")));
        let (plain, within) = (intern("a.py:3"), intern_within("a.py:3", loss));
        assert_ne!(plain, within);
        assert_eq!(text(of_gradient(within)).as_deref(), Some("a.py:3"));
        assert_eq!(short(intern("/home/ada/b.py:4")).as_deref(), Some("b.py:4"));
        assert_eq!(call(of_gradient(within)), Some(call_of("cross_entropy")));
        assert_eq!(call(plain), None);
        let at = (within.0 >> 1) as usize - 1;
        let found = (String::from("a.py:3"), Some(call_of("cross_entropy")));
        assert_eq!(lines_from(at).first(), Some(&found));
        assert!(lines_from(usize::MAX).is_empty());
        assert!(is_of_gradient(of_gradient(plain)) && !is_of_gradient(plain));
        assert_eq!(of_gradient(SourceId(0)), SourceId(0));
    }
}
