//! Reports of compiled plans: GT_DEBUG_COMPILE logs them, GT_SAVE_COMPILED_CODE saves their code.

use std::hash::Hasher;
use std::path::PathBuf;
use std::time::Duration;

use gt_engine_native::NativeEngine;
use gt_worker::plan::Plan;
use tracing::{info, warn};

use crate::environment;

/// Where compiled plans are reported.
#[derive(Clone, Debug)]
pub struct Reports {
    /// Whether they are logged to stderr.
    tells: bool,
    /// The folder that code is saved in.
    folder: Option<PathBuf>,
}

impl Reports {
    /// Reads the environment.
    pub fn from_env() -> Reports {
        let folder = std::env::var_os("GT_SAVE_COMPILED_CODE").filter(|path| !path.is_empty());
        let tells = environment::switch("GT_DEBUG_COMPILE") == Some(true);
        Reports { tells, folder: folder.map(PathBuf::from) }
    }

    /// Returns whether plans are logged or saved.
    pub fn are_wanted(&self) -> bool {
        self.tells || self.folder.is_some()
    }

    /// Reports a plan that an engine has compiled; `kind` is the code's file extension (`txt`,
    /// `py`).
    pub fn tell(&self, engine: &str, plan: &Plan, code: &str, kind: &str, taken: Duration) {
        if self.tells {
            let seconds = taken.as_secs_f64();
            let time = if seconds < 0.1 {
                format!("{:.1} ms", seconds * 1e3)
            } else {
                format!("{seconds:.1} s")
            };
            info!(target: "gt::compile", "compiled {} in {time} ({engine})", plan.trace.summary());
        }
        let Some(folder) = &self.folder else { return };
        // Named by a hash of the plan: equal plans share a file, also across runs.
        let mut hasher = rustc_hash::FxHasher::default();
        hasher.write(&plan.key());
        let path = folder.join(format!("{engine}-{:016x}.{kind}", hasher.finish()));
        let comment = if kind == "py" { "# " } else { "" };
        let listing: String = plan.to_string().lines().map(|l| format!("{comment}{l}\n")).collect();
        let text = format!("{listing}\n{code}");
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text));
        if let Err(error) = written {
            warn!(
                "compiled code is not saved: {}: {error}; GT_SAVE_COMPILED_CODE is to \
                 name a folder that can be written",
                path.display()
            );
        }
    }

    /// Has a native engine report the plans that it prepares.
    pub(crate) fn listen(self, engine: NativeEngine) -> NativeEngine {
        if !self.are_wanted() {
            return engine;
        }
        engine.when_prepared(move |plan, program, taken| {
            self.tell("native", plan, &program.to_string(), "txt", taken);
        })
    }
}
