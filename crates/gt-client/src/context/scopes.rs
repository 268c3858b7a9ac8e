//! The signal scopes that are open, and the one in force.

use std::sync::atomic::{AtomicU32, Ordering};

use super::names::{name, number};
use crate::config::registry;

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

/// An open scope.
struct OpenScope {
    scope: Scope,
    /// It inherits nothing from enclosing scopes.
    isolated: bool,
    /// Its serial number.
    entry: u32,
    /// The resolved placement and gradient signal, for a version of the configurations.
    effective: (Scope, u64),
}

/// The scopes that are open, innermost last.
pub(crate) struct ScopeStack {
    open: Vec<OpenScope>,
    /// The scope whose gradients the thread computes, for a version of the configurations; see
    /// [`ScopeStack::follow`].
    followed: (Scope, u64),
}

/// The bit that distinguishes scopes of gradients.
const GRADIENTS: u32 = 1 << 31;

/// The number of scopes entered in this process.
static ENTERED: AtomicU32 = AtomicU32::new(0);

/// Returns the signal of gradients of what was computed under `signal`: the one that its
/// configuration names, or itself.
fn of_gradients(signal: u32) -> u32 {
    let config = name(signal).and_then(|name| registry::get(&name));
    config.and_then(|config| config.backward).map_or(signal, |name| number(&name))
}

impl ScopeStack {
    pub const fn new() -> ScopeStack {
        let none = Scope { signal: 0, backward: 0, compiled: 0 };
        ScopeStack { open: Vec::new(), followed: (none, 0) }
    }

    /// Opens a scope; returns the number of scopes that were open.
    pub fn enter(&mut self, scope: Scope) -> usize {
        self.push(scope, false)
    }

    /// Opens a scope that inherits nothing; returns the number of scopes that were open.
    pub fn isolate(&mut self, scope: Scope) -> usize {
        self.push(scope, true)
    }

    fn push(&mut self, scope: Scope, isolated: bool) -> usize {
        // 0 means none. All gradients of a signal share one serial number.
        let entry = match isolated {
            true => GRADIENTS | scope.signal,
            false => (ENTERED.fetch_add(1, Ordering::Relaxed) % (GRADIENTS - 1)) + 1,
        };
        self.open.push(OpenScope { scope, isolated, entry, effective: (scope, 0) });
        self.resolve();
        self.open.len() - 1
    }

    /// Resolves the innermost scope, and returns what is in force in it.
    fn resolve(&mut self) -> Scope {
        let scope = Scope { compiled: self.compiled(), ..self.effective() };
        if let Some(innermost) = self.open.last_mut() {
            innermost.effective = (scope, registry::version());
        }
        scope
    }

    /// Returns the placement of the first scope, from inside out, that has one, and the gradient
    /// signal of the first that names one.
    fn effective(&self) -> Scope {
        let Some(innermost) = self.open.last() else { return Scope::default() };
        let mut backward = 0;
        for open in self.open.iter().rev() {
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
    fn compiled(&self) -> u32 {
        for open in self.open.iter().rev() {
            let config = name(open.scope.signal).and_then(|name| registry::get(&name));
            if config.is_some_and(|config| config.compile) {
                return open.entry;
            }
        }
        0
    }

    /// Has the thread, on which no scope is open, compute the gradients of a scope until it is set
    /// to another one.
    pub fn follow(&mut self, scope: Scope) {
        let now = (scope, registry::version());
        if std::mem::replace(&mut self.followed, now) == now {
            return;
        }
        let signal = scope.of_gradients();
        self.open.clear();
        if signal != 0 {
            self.isolate(Scope { signal, ..Scope::default() });
        }
    }

    /// Closes the innermost scopes until `depth` are left.
    pub fn unwind(&mut self, depth: usize) {
        self.open.truncate(depth);
    }

    /// Returns the innermost scope, as it was opened; `None` if no scope is open.
    pub fn innermost(&self) -> Option<Scope> {
        self.open.last().map(|open| open.scope)
    }

    /// Closes the innermost scope.
    pub fn exit(&mut self) {
        self.open.pop();
    }

    /// Returns the scope in force.
    #[inline]
    pub fn current(&mut self) -> Scope {
        let Some(open) = self.open.last() else { return Scope::default() };
        let (scope, version) = open.effective;
        if version == registry::version() { scope } else { self.resolve() }
    }
}
