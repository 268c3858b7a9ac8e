//! What was compiled, for those who want to know: GT_DEBUG_COMPILE and GT_SAVE_COMPILED_CODE.

use std::hash::Hasher;
use std::path::PathBuf;
use std::time::Duration;

use gt_engine_native::NativeEngine;
use gt_worker::plan::Plan;
use tracing::{info, warn};

use crate::environment;

/// Who is told of compiled plans.
#[derive(Clone, Debug)]
pub struct Reports {
    /// Whether stderr says what was compiled.
    tells: bool,
    /// A folder for the code.
    folder: Option<PathBuf>,
}

impl Reports {
    /// As the environment says.
    pub fn from_env() -> Reports {
        let folder = std::env::var_os("GT_SAVE_COMPILED_CODE").filter(|path| !path.is_empty());
        let tells = environment::switch("GT_DEBUG_COMPILE") == Some(true);
        Reports { tells, folder: folder.map(PathBuf::from) }
    }

    /// Whether anybody is told.
    pub fn are_wanted(&self) -> bool {
        self.tells || self.folder.is_some()
    }

    /// Tells of a plan that an engine has compiled in some time, into code of a kind (`txt`, `py`).
    pub fn tell(&self, engine: &str, plan: &Plan, code: &str, kind: &str, taken: Duration) {
        if self.tells {
            let seconds = taken.as_secs_f64();
            let time = if seconds < 0.1 {
                format!("{:.1} ms", seconds * 1e3)
            } else {
                format!("{seconds:.1} s")
            };
            info!(target: "gt::compile", "compiled {} in {time} ({engine})", plan.summary());
        }
        let Some(folder) = &self.folder else { return };
        // Equal plans have one file, also in another run.
        let mut hasher = rustc_hash::FxHasher::default();
        hasher.write(&plan.key());
        let path = folder.join(format!("{engine}-{:016x}.{kind}", hasher.finish()));
        let comment = if kind == "py" { "# " } else { "" };
        let plan: String = plan.to_string().lines().map(|l| format!("{comment}{l}\n")).collect();
        let text = format!("{plan}\n{code}");
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text));
        if let Err(error) = written {
            warn!(
                "compiled code is not saved: {}: {error}; GT_SAVE_COMPILED_CODE is to \
                 name a folder that can be written",
                path.display()
            );
        }
    }

    /// Has a native engine tell of what it makes ready.
    pub(crate) fn listen(self, engine: NativeEngine) -> NativeEngine {
        if !self.are_wanted() {
            return engine;
        }
        engine.when_prepared(move |plan, program, taken| {
            self.tell("native", plan, &program.to_string(), "txt", taken);
        })
    }
}
