//! A recording as a program of Python that uses `gt` and `numpy` alone.
//!
//! - [`python`]: numbers, texts, instructions and values in Python's notation.
//!
//! Iterations of hot paths are written as plain instructions. Signals are left out: they decide where
//! instructions run, and change no number.

mod python;

use std::fmt::Write;

use gt_ir::{ClientCommand, Content, Create, SourceId, TensorData};
use rustc_hash::FxHashMap;

use crate::content::ContentHash;
use crate::error::RecordingError;
use crate::event::SessionEvent;
use crate::reading::Recording;
use crate::replay::describe;
use crate::replay::{StreamExpansion, submitted};

/// The most elements of data that are written into the program; larger data is in the file beside it.
const INLINE: usize = 16;

/// A program, and the data that it reads from the file beside it.
pub struct PythonScript {
    pub text: String,
    pub data: Vec<(String, TensorData)>,
}

/// Returns the program of a recording, up to the instruction `until`.
///
/// # Errors
/// The recording is not valid, or has data in files.
pub fn script(recording: &Recording, until: Option<u64>) -> Result<PythonScript, RecordingError> {
    let mut writer = ScriptWriter {
        recording,
        text: String::new(),
        data: Vec::new(),
        names: FxHashMap::default(),
        number: 0,
        until: until.unwrap_or(u64::MAX),
        line: SourceId::default(),
    };
    let mut expansion = StreamExpansion::default();
    let mut plain = Vec::new();
    'events: for event in recording.events() {
        match event? {
            SessionEvent::Batch { commands, .. } => {
                for command in &commands {
                    expansion
                        .expand(command, &mut plain)
                        .map_err(|error| recording.broken(&error))?;
                    for command in plain.drain(..) {
                        if writer.number == writer.until {
                            break 'events;
                        }
                        writer.command(command)?;
                    }
                }
            }
            SessionEvent::Read { tensor, .. } => writer.show(tensor.0, SourceId::default()),
            SessionEvent::Answered { .. } | SessionEvent::Published { .. } => {}
        }
    }
    let ScriptWriter { text, data, .. } = writer;
    let text = format!("{}{text}", begin(recording, !data.is_empty()));
    Ok(PythonScript { text, data })
}

/// Returns the beginning of the program.
fn begin(recording: &Recording, has_data: bool) -> String {
    let header = &recording.header;
    let program = header.program.join(" ").replace(['\\', '"'], "'");
    let of = if program.is_empty() { String::new() } else { format!(" of {program}") };
    let mut text =
        format!("\"\"\"The instructions{of}, recorded by gt {}.\"\"\"\n\n", header.version);
    if has_data {
        text.push_str("from pathlib import Path\n\n");
    }
    text.push_str("import gt\nimport numpy as np\nfrom gt._gt import from_bytes\n");
    text.push_str("from gt._gt import primitives as op\n\n");
    if has_data {
        text.push_str("data = np.load(Path(__file__).with_suffix(\".npz\"))\n\n");
    }
    text.push_str(SHOW);
    text
}

/// The function by which the program prints a value that was read.
const SHOW: &str = r#"
def show(name, tensor):
    """Print a value, or why it cannot be computed."""
    try:
        print(name, tensor.tolist() if tensor.numel() <= 64 else tensor.numpy())
    except gt.WorkerError as error:
        print(name, "failed:", str(error).splitlines()[0])


"#;

struct ScriptWriter<'a> {
    recording: &'a Recording,
    text: String,
    data: Vec<(String, TensorData)>,
    /// The names of data in the file, by content, dtype and shape.
    names: FxHashMap<(ContentHash, String), String>,
    number: u64,
    until: u64,
    /// The line of the last instruction.
    line: SourceId,
}

impl ScriptWriter<'_> {
    fn command(&mut self, command: ClientCommand) -> Result<(), RecordingError> {
        let Some(command) = submitted(self.recording, command) else { return Ok(()) };
        match command {
            ClientCommand::Run(instruction) => {
                self.number += 1;
                let call = python::call(&instruction);
                self.statement(&call, instruction.source);
            }
            ClientCommand::Create(create) => self.create(&create)?,
            ClientCommand::Free(tensor) => {
                let _ = writeln!(self.text, "del t{tensor}");
            }
            ClientCommand::Fetch { tensor, line, .. } => self.show(tensor.0, line),
            _ => {}
        }
        Ok(())
    }

    /// Writes a statement, with its line of the recorded program where that changes.
    fn statement(&mut self, statement: &str, line: SourceId) {
        self.text.push_str(statement);
        if line != self.line
            && let Some(shown) = describe::line(self.recording, line)
        {
            let _ = write!(self.text, "  # {}", shown.replace(['\n', '\r'], " "));
        }
        self.line = line;
        self.text.push('\n');
    }

    fn show(&mut self, tensor: u64, line: SourceId) {
        self.statement(&format!("show(\"t{tensor}\", t{tensor})"), line);
    }

    fn create(&mut self, create: &Create) -> Result<(), RecordingError> {
        let Content::Data(data) = &create.content else {
            return Err(RecordingError::Data {
                path: self.recording.path().into(),
                what: format!("the data of tensor {}, which was read from a file", create.output),
                hint: "record a program that creates the tensor from an array",
            });
        };
        let value = if data.shape.numel() <= INLINE {
            python::inline(data)
        } else {
            let name = format!("t{}", create.output);
            let kind = format!("{} {}", data.dtype, data.shape);
            let known = self.names.entry((ContentHash::of(&data.bytes), kind));
            let name = known.or_insert_with(|| {
                self.data.push((name.clone(), data.clone()));
                name
            });
            python::from_file(name, data)
        };
        self.statement(&format!("t{} = {value}", create.output), create.source);
        Ok(())
    }
}
