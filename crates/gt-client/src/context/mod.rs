//! What a thread's instructions are issued under: the line of the user's program, the signal scopes,
//! whether gradients are recorded, the dtype of autocast, the running `vmap`s, and the recorder of a
//! program.
//!
//! - [`lines`]: the lines of programs, by number. [`names`], [`scopes`]: signals by number, and the
//!   scopes that are open.
//! - [`level`]: a running `vmap`. [`recorder`]: the instructions of a program that is being recorded.
//!
//! Each thread has one [`Context`]. Public functions look it up ([`with`]) and pass it on, so that
//! what is below them takes it as an argument.

pub(crate) mod level;
pub(crate) mod lines;
pub(crate) mod names;
pub(crate) mod recorder;
pub(crate) mod scopes;

use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::sync::Arc;

use gt_ir::{DType, Instruction, SourceId};
use rustc_hash::{FxBuildHasher, FxHashMap};

use level::Level;
use recorder::Recorder;
use scopes::{Scope, ScopeStack};

/// What this thread's instructions are issued under.
pub struct Context {
    /// The line of the user's program; number 0 for that of the Rust caller.
    line: Cell<SourceId>,
    /// The lines of Rust callers, by the addresses of their locations.
    callers: RefCell<FxHashMap<usize, SourceId>>,
    pub(crate) scopes: RefCell<ScopeStack>,
    records_gradients: Cell<bool>,
    /// The dtype of products; `None` while autocast is off.
    autocast: Cell<Option<DType>>,
    /// The running `vmap`s, outermost first.
    levels: RefCell<Vec<Arc<Level>>>,
    recorder: RefCell<Option<Recorder>>,
}

thread_local! {
    static CURRENT: Context = const { Context::new() };
}

/// Calls a function with the context of this thread.
#[inline]
pub fn with<T>(body: impl FnOnce(&Context) -> T) -> T {
    CURRENT.with(body)
}

/// Calls a function with the site of an instruction on this thread: the line that was set, or else
/// that of a Rust caller.
#[inline]
pub(crate) fn at<T>(caller: &'static Location<'static>, body: impl FnOnce(CallSite<'_>) -> T) -> T {
    with(|context| body(context.site(caller)))
}

/// Marks this thread's recording as not replayable, if there is one.
pub(crate) fn invalidate_recording() {
    with(Context::invalidate_recording);
}

/// Returns whether this thread records operations on the tape.
pub(crate) fn records_gradients() -> bool {
    with(Context::records_gradients)
}

/// Runs `body` without recording on the tape.
pub(crate) fn no_grad<T>(body: impl FnOnce() -> T) -> T {
    with(|context| context.with_gradients(false, body))
}

/// Where an instruction is issued: the line, and everything else that it is issued under.
#[derive(Clone, Copy)]
pub(crate) struct CallSite<'a> {
    pub context: &'a Context,
    pub source: SourceId,
}

/// Restores a setting when it is dropped.
struct Restore<'a, T: Copy>(&'a Cell<T>, T);

impl<T: Copy> Drop for Restore<'_, T> {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

impl Context {
    const fn new() -> Context {
        Context {
            line: Cell::new(SourceId(0)),
            callers: RefCell::new(FxHashMap::with_hasher(FxBuildHasher)),
            scopes: RefCell::new(ScopeStack::new()),
            records_gradients: Cell::new(true),
            autocast: Cell::new(None),
            levels: RefCell::new(Vec::new()),
            recorder: RefCell::new(None),
        }
    }

    /// Returns the line that was set, or else that of a Rust caller.
    #[inline]
    pub(crate) fn line(&self, caller: &'static Location<'static>) -> SourceId {
        let set = self.line.get();
        if set.0 != 0 { set } else { self.line_of(caller) }
    }

    fn line_of(&self, caller: &'static Location<'static>) -> SourceId {
        let address = std::ptr::from_ref(caller) as usize;
        let intern = || lines::intern(&format!("{}:{}", caller.file(), caller.line()));
        *self.callers.borrow_mut().entry(address).or_insert_with(intern)
    }

    /// Sets the line of the following instructions; returns the previous one.
    pub(crate) fn set_line(&self, line: SourceId) -> SourceId {
        self.line.replace(line)
    }

    /// Returns the site of an instruction: the line that was set, or else that of a Rust caller.
    #[inline]
    pub(crate) fn site(&self, caller: &'static Location<'static>) -> CallSite<'_> {
        CallSite { context: self, source: self.line(caller) }
    }

    /// Runs `body` with instructions issued for a line; an unknown line (0) changes nothing.
    pub(crate) fn within_line<T>(&self, line: SourceId, body: impl FnOnce() -> T) -> T {
        let before = self.line.get();
        let _restore = Restore(&self.line, before);
        self.line.set(if line.0 == 0 { before } else { line });
        body()
    }

    /// Returns the scope in force.
    #[inline]
    pub(crate) fn scope(&self) -> Scope {
        self.scopes.borrow_mut().current()
    }

    /// Runs `body` inside `scope` and no other, as the gradients of a scope do.
    pub(crate) fn within_scope<T>(&self, scope: Scope, body: impl FnOnce() -> T) -> T {
        /// Also closes scopes that `body` left open.
        struct Unwind<'a>(&'a RefCell<ScopeStack>, usize);
        impl Drop for Unwind<'_> {
            fn drop(&mut self) {
                self.0.borrow_mut().unwind(self.1);
            }
        }
        let depth = self.scopes.borrow_mut().isolate(scope);
        let _unwind = Unwind(&self.scopes, depth);
        body()
    }

    /// Returns whether operations are recorded on the tape.
    #[inline]
    pub(crate) fn records_gradients(&self) -> bool {
        self.records_gradients.get()
    }

    /// Turns recording on the tape on or off; returns the previous setting.
    pub(crate) fn record_gradients(&self, is_on: bool) -> bool {
        self.records_gradients.replace(is_on)
    }

    /// Runs `body` with recording on the tape on or off.
    pub(crate) fn with_gradients<T>(&self, is_on: bool, body: impl FnOnce() -> T) -> T {
        let _restore = Restore(&self.records_gradients, self.records_gradients.replace(is_on));
        body()
    }

    /// Returns the dtype of products; `None` while autocast is off.
    #[inline]
    pub(crate) fn autocast(&self) -> Option<DType> {
        self.autocast.get()
    }

    /// Sets the dtype of products; returns the previous one.
    pub(crate) fn set_autocast(&self, dtype: Option<DType>) -> Option<DType> {
        self.autocast.replace(dtype)
    }

    /// Runs `body` with autocast off.
    pub(crate) fn without_autocast<T>(&self, body: impl FnOnce() -> T) -> T {
        let _restore = Restore(&self.autocast, self.autocast.replace(None));
        body()
    }

    /// Returns whether a `vmap` is running.
    #[inline]
    pub(crate) fn is_in_vmap(&self) -> bool {
        !self.levels.borrow().is_empty()
    }

    /// Returns the running `vmap`s, outermost first.
    pub(crate) fn levels(&self) -> Vec<Arc<Level>> {
        self.levels.borrow().clone()
    }

    /// Starts a `vmap` inside the running ones.
    pub(crate) fn enter_level(&self, level: Arc<Level>) {
        self.levels.borrow_mut().push(level);
    }

    /// Ends a `vmap`, and those within it.
    pub(crate) fn exit_level(&self, level: &Level) {
        let mut levels = self.levels.borrow_mut();
        while let Some(last) = levels.last()
            && last.number >= level.number
        {
            last.end();
            levels.pop();
        }
    }

    /// Returns whether instructions are being recorded.
    #[inline]
    pub(crate) fn is_recording(&self) -> bool {
        self.recorder.borrow().is_some()
    }

    /// Adds an instruction of a session to the program that is being recorded, if any.
    #[inline]
    pub(crate) fn record(&self, session: u64, instruction: &Instruction, work: u64) {
        if let Some(recorder) = &mut *self.recorder.borrow_mut() {
            recorder.record(session, instruction, work);
        }
    }

    /// Marks the recording as not replayable: something happened that is not an instruction.
    #[inline]
    pub(crate) fn invalidate_recording(&self) {
        if let Some(recorder) = &mut *self.recorder.borrow_mut() {
            recorder.invalidate();
        }
    }

    /// Starts to record instructions.
    pub(crate) fn begin_recording(&self, recorder: Recorder) {
        *self.recorder.borrow_mut() = Some(recorder);
    }

    /// Stops recording.
    pub(crate) fn end_recording(&self) -> Option<Recorder> {
        self.recorder.borrow_mut().take()
    }
}
