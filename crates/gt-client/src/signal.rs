//! Signals: named scopes, to which a configuration assigns placements.
//!
//! Each thread has its own stack. A scope may name another signal for the gradients of what it
//! computes; otherwise the gradients run under the signal `backward` of its configuration. A scope
//! without a placement inherits that of the enclosing scope.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard};

use rustc_hash::FxHashMap;
use tracing::{Level, enabled, info};

use crate::config::registry;
use crate::environment;
use crate::error::{ClientError, Result};
use crate::nearest::nearest;

/// A scope: the numbers of its signal and of the signal for its gradients; 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Scope {
    pub signal: u32,
    pub backward: u32,
    /// The innermost scope with `compile`, by its serial number.
    pub compiled: u32,
}

impl Scope {
    /// Returns the signal for gradients of this scope's results.
    pub fn of_gradients(self) -> u32 {
        match self {
            Scope { backward, .. } if backward != 0 => backward,
            Scope { signal: 0, .. } => 0,
            Scope { signal, .. } => of_gradients(signal),
        }
    }
}

/// A scope on a thread's stack.
struct StackScope {
    scope: Scope,
    /// It inherits nothing from enclosing scopes.
    isolated: bool,
    /// Its serial number.
    entry: u32,
    /// The resolved placement and gradient signal, for a version of the configurations.
    effective: (Scope, u64),
}

thread_local! {
    static STACK: RefCell<Vec<StackScope>> = const { RefCell::new(Vec::new()) };
}

/// The bit that distinguishes scopes of gradients.
const GRADIENTS: u32 = 1 << 31;

/// The number of scopes entered in this process.
static ENTERED: AtomicU32 = AtomicU32::new(0);

/// Names by number, for the whole process; number 0 has none.
#[derive(Default)]
struct NameInterner {
    list: Vec<String>,
    numbers: FxHashMap<String, u32>,
}

static NAMES: LazyLock<Mutex<NameInterner>> = LazyLock::new(Mutex::default);

fn names() -> MutexGuard<'static, NameInterner> {
    NAMES.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Returns the number of a signal's name.
pub fn number(name: &str) -> u32 {
    let mut names = names();
    if let Some(number) = names.numbers.get(name) {
        return *number;
    }
    names.list.push(name.to_string());
    let number = names.list.len() as u32;
    names.numbers.insert(name.to_string(), number);
    number
}

/// Returns the name of a signal's number.
pub fn name(number: u32) -> Option<String> {
    names().list.get((number as usize).checked_sub(1)?).cloned()
}

/// Returns the signal of gradients of what was computed under `signal`: the one that its
/// configuration names, or itself.
fn of_gradients(signal: u32) -> u32 {
    let config = name(signal).and_then(|name| registry::get(&name));
    config.and_then(|config| config.backward).map_or(signal, |name| number(&name))
}

/// The value of `GT_STRICT`.
static STRICT: LazyLock<bool> = LazyLock::new(|| environment::is_set("GT_STRICT"));

/// Opens a scope on this thread; returns the number of scopes that were open. A signal without a
/// configuration changes nothing; `GT_VERBOSE` reports it once.
///
/// # Errors
/// With `GT_STRICT`, a signal that has no configuration.
pub fn enter(signal: &str, backward: Option<&str>) -> Result<usize> {
    let configured = registry::get(signal).and_then(|config| config.backward);
    for name in [Some(signal), backward, configured.as_deref()].into_iter().flatten() {
        check_known(name)?;
    }
    let backward = backward.map_or(0, number);
    let scope = Scope { signal: number(signal), backward, compiled: 0 };
    Ok(STACK.with_borrow_mut(|stack| {
        push(stack, scope, false);
        stack.len() - 1
    }))
}

/// A scope that is closed when this is dropped, with those that were opened in it.
///
/// ```
/// # fn steps() -> gt_client::Result<()> {
/// let _scope = gt_client::signal::scope("rows")?;
/// // Results of this scope are placed by "rows"; an early `?` also closes the scope.
/// # Ok(())
/// # }
/// ```
#[must_use = "the scope is closed when this is dropped"]
pub struct ScopeGuard {
    depth: usize,
    /// Not `Send`: a scope belongs to its thread.
    thread: PhantomData<*const ()>,
}

/// Opens a scope on this thread, as [`enter`] does, until the result is dropped.
///
/// # Errors
/// As for [`enter`].
pub fn scope(signal: &str) -> Result<ScopeGuard> {
    enter(signal, None).map(|depth| ScopeGuard { depth, thread: PhantomData })
}

impl Drop for ScopeGuard {
    fn drop(&mut self) {
        unwind(self.depth);
    }
}

fn push(stack: &mut Vec<StackScope>, scope: Scope, isolated: bool) {
    // 0 means none. All gradients of a signal share one serial number.
    let entry = match isolated {
        true => GRADIENTS | scope.signal,
        false => (ENTERED.fetch_add(1, Ordering::Relaxed) % (GRADIENTS - 1)) + 1,
    };
    stack.push(StackScope { scope, isolated, entry, effective: (scope, 0) });
    let effective = Scope { compiled: compiled(stack), ..effective(stack) };
    stack.last_mut().expect("pushed above").effective = (effective, registry::version());
}

/// Resolves the innermost scope: the placement of the first scope, from inside out, that has one,
/// and the gradient signal of the first that names one.
fn effective(stack: &[StackScope]) -> Scope {
    let Some(innermost) = stack.last() else { return Scope::default() };
    let mut backward = 0;
    for open in stack.iter().rev() {
        if backward == 0 {
            backward = open.scope.backward;
        }
        if open.isolated {
            return Scope { signal: open.scope.signal, backward, compiled: 0 };
        }
        let Some(config) = name(open.scope.signal).and_then(|name| registry::get(&name)) else {
            continue;
        };
        if config.shard.is_some() {
            return Scope { signal: open.scope.signal, backward, compiled: 0 };
        }
        if backward == 0 {
            backward = config.backward.map_or(0, |name| number(&name));
        }
    }
    Scope { signal: innermost.scope.signal, backward, compiled: 0 }
}

/// Returns the innermost scope whose configuration requests compilation. Gradients that are
/// computed in one belong to it.
fn compiled(stack: &[StackScope]) -> u32 {
    for open in stack.iter().rev() {
        let config = name(open.scope.signal).and_then(|name| registry::get(&name));
        if config.is_some_and(|config| config.compile) {
            return open.entry;
        }
    }
    0
}

/// Unknown signals that have been reported.
static REPORTED: LazyLock<Mutex<Vec<String>>> = LazyLock::new(Mutex::default);

fn check_known(name: &str) -> Result<()> {
    if !(*STRICT || enabled!(Level::INFO)) || registry::get(name).is_some() {
        return Ok(());
    }
    let known = registry::names();
    let hint = match nearest(name, &known.iter().map(String::as_str).collect::<Vec<_>>()) {
        Some(nearest) => format!("did you mean '{nearest}'?"),
        None if known.is_empty() => "load a configuration with gt.load_config".to_string(),
        None => format!("the known ones are {}", known.join(", ")),
    };
    let text = format!("signal '{name}' has no configuration\n  hint: {hint}");
    if *STRICT {
        return Err(ClientError::usage(text));
    }
    let mut reported = REPORTED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !reported.iter().any(|other| other == name) {
        reported.push(name.to_string());
        info!("{text}");
    }
    Ok(())
}

/// Has this thread, on which no scope is open, compute the gradients of a scope until it is set to
/// another one.
pub fn follow(scope: Scope) {
    thread_local! {
        /// The scope in force, for a version of the configurations.
        static FOLLOWED: Cell<(Scope, u64)> = const {
            Cell::new((Scope { signal: 0, backward: 0, compiled: 0 }, 0))
        };
    }
    let now = (scope, registry::version());
    if FOLLOWED.replace(now) == now {
        return;
    }
    let signal = scope.of_gradients();
    STACK.with_borrow_mut(|stack| {
        stack.clear();
        if signal != 0 {
            push(stack, Scope { signal, ..Scope::default() }, true);
        }
    });
}

/// Closes the innermost scope of this thread.
///
/// # Errors
/// No scope is open, or the innermost is another.
pub fn exit(signal: &str) -> Result<()> {
    STACK.with_borrow_mut(|stack| {
        let Some(innermost) = stack.last() else {
            return Err(ClientError::usage(format!(
                "signal.exit('{signal}'): no signal scope is open on this thread"
            )));
        };
        if innermost.scope.signal != number(signal) {
            let open = name(innermost.scope.signal).unwrap_or_default();
            return Err(ClientError::usage(format!(
                "signal.exit('{signal}'): the innermost open scope is '{open}'\n  hint: scopes close in the reverse of the order they were entered; `with gt.signal.context(...)` does so by itself"
            )));
        }
        stack.pop();
        Ok(())
    })
}

/// Closes the innermost scopes of this thread until `depth` are left.
pub fn unwind(depth: usize) {
    STACK.with_borrow_mut(|stack| stack.truncate(depth));
}

/// Returns the innermost scope of this thread, as it was opened.
pub fn innermost() -> Scope {
    STACK.with_borrow(|stack| stack.last().map(|open| open.scope).unwrap_or_default())
}

/// Returns the scope in force on this thread.
pub fn current() -> Scope {
    STACK.with_borrow_mut(|stack| {
        let Some(open) = stack.last() else { return Scope::default() };
        let (scope, version) = open.effective;
        if version == registry::version() {
            return scope;
        }
        let scope = Scope { compiled: compiled(stack), ..effective(stack) };
        stack.last_mut().expect("looked at above").effective = (scope, registry::version());
        scope
    })
}

/// Runs `body` inside `scope` and no other, as the gradients of a scope do.
pub(crate) fn within<T>(scope: Scope, body: impl FnOnce() -> T) -> T {
    /// Also closes scopes that `body` left open.
    struct Unwind(usize);
    impl Drop for Unwind {
        fn drop(&mut self) {
            unwind(self.0);
        }
    }
    let _unwind = Unwind(STACK.with_borrow(Vec::len));
    STACK.with_borrow_mut(|stack| push(stack, scope, true));
    body()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SignalConfig;
    use gt_ir::signal::Shard;

    #[test]
    fn scopes_nest_and_close_in_order() {
        enter("outer", Some("back")).unwrap();
        enter("inner", None).unwrap();
        assert_eq!(name(current().signal).as_deref(), Some("inner"));
        assert!(exit("outer").unwrap_err().to_string().contains("'inner'"));
        exit("inner").unwrap();
        assert_eq!(name(current().backward).as_deref(), Some("back"));
        exit("outer").unwrap();
        assert_eq!(current(), Scope::default());
        assert!(exit("outer").is_err());
    }

    #[test]
    fn a_scope_without_a_placement_inherits_the_enclosing_one() {
        let shard = || Some(Shard::row(None, Some(0)));
        let placed = SignalConfig { shard: shard(), backward: None, compile: false };
        let compiled = SignalConfig { shard: None, backward: Some("b".into()), compile: true };
        registry::register("test placed", placed.clone());
        registry::register("test compiled", compiled);
        enter("test placed", Some("a")).unwrap();
        enter("test unknown", None).unwrap();
        let name_of = |scope: Scope| (name(scope.signal).unwrap(), name(scope.backward));
        assert_eq!(name_of(current()), ("test placed".into(), Some("a".into())));
        assert_eq!(name(innermost().signal).as_deref(), Some("test unknown"));
        enter("test compiled", None).unwrap();
        assert_eq!(name_of(current()), ("test placed".into(), Some("b".into())));
        let around = Scope { compiled: current().compiled, ..Scope::default() };
        within(Scope::default(), || assert_eq!(current(), around));
        registry::register("test unknown", placed);
        assert_eq!(name_of(current()), ("test unknown".into(), Some("b".into())));
        unwind(0);
        assert_eq!(current(), Scope::default());
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "it is about threads")]
    fn threads_have_their_own_scopes() {
        enter("here", None).unwrap();
        std::thread::spawn(|| assert_eq!(current(), Scope::default())).join().unwrap();
        exit("here").unwrap();
    }
}
