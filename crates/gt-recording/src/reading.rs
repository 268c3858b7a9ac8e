//! Reads a recording's file, and checks it before anything runs.

use std::collections::BTreeSet;
use std::path::Path;

use bytes::Bytes;
use gt_ir::template::TemplateError;
use gt_ir::wire::{self, DecodeError};
use gt_ir::{ClientCommand, Content, Operation, RequestId, SourceId};
use gt_journal::segment::{self, Unreadable};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::content::ContentHash;
use crate::error::RecordingError;
use crate::event::{EventReader, SessionEvent};
use crate::format::{LAYOUT, OperationName, RecordedLine, RecordingEntry, RecordingHeader, SCHEMA};
use crate::numbering::InstructionCounter;
use crate::published::PublishedData;

/// A recording that can be replayed.
pub struct Recording {
    path: String,
    pub header: RecordingHeader,
    pub lines: Vec<RecordedLine>,
    pub ending: Ending,
    /// The number of instructions of the stream, those of invocations included.
    pub instructions: u64,
    /// The requests whose answers the program received.
    pub answered: FxHashSet<RequestId>,
    /// The stream has no tensor of this number or a later one.
    pub after_tensors: u64,
    /// The files from which its workers read tensors.
    files: BTreeSet<String>,
    /// What it read of publications.
    published: PublishedData,
    chunks: Vec<EventChunk>,
    operations: Vec<Option<&'static Operation>>,
}

/// How the file ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The session has ended.
    Complete,
    /// The program was killed, or runs still: the file ends before the session, at this byte.
    Cut { at: usize },
    /// The file is damaged at this byte.
    Damaged { at: usize, reason: String },
}

/// Consecutive events, and the data that they refer to.
struct EventChunk {
    events: Bytes,
    data: Vec<Bytes>,
}

impl Recording {
    /// Reads a recording up to the instruction `until`, or to its end. Of a file that is damaged, what
    /// is before the damage can be read by an `until` that is before it.
    ///
    /// # Errors
    /// The file cannot be read, is not a recording, is damaged, uses operations that do not exist
    /// here, or lacks data.
    pub fn open(path: &Path, until: Option<u64>) -> Result<Recording, RecordingError> {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| RecordingError::File {
            action: "reading",
            path: name.clone(),
            error,
            hint: "\n  hint: name a file that `gt record -o FILE -- PROGRAM` has written",
        })?;
        let mut recording = Recording::parse(name, &Bytes::from(bytes))?;
        recording.check(until)?;
        Ok(recording)
    }

    fn parse(path: String, bytes: &Bytes) -> Result<Recording, RecordingError> {
        let segment::Records { records, damage } = read_segment(&path, bytes)?;
        let ending = match damage {
            // Only the last record can be cut: its writer was killed.
            Some(damage) if damage.reason == segment::CUT => Ending::Cut { at: damage.at },
            Some(damage) => Ending::Damaged { at: damage.at, reason: damage.reason.into() },
            None => Ending::Cut { at: bytes.len() },
        };
        let mut records = records.into_iter();
        let Some(first) = records.next() else {
            return Err(match ending {
                Ending::Damaged { at, reason } => {
                    RecordingError::Damaged { path, at, reason, instructions: 0 }
                }
                _ => RecordingError::Empty { path, at: bytes.len() },
            });
        };
        let header = read_header(&path, &first)?;
        let mut recording = Recording {
            operations: operation_table(&header.operations),
            header,
            path,
            lines: Vec::new(),
            ending,
            instructions: 0,
            answered: FxHashSet::default(),
            after_tensors: 0,
            files: BTreeSet::new(),
            published: PublishedData::default(),
            chunks: Vec::new(),
        };
        recording.read_entries(records)?;
        Ok(recording)
    }

    /// Reads the entries after the header.
    fn read_entries(
        &mut self,
        records: impl Iterator<Item = Vec<Bytes>>,
    ) -> Result<(), RecordingError> {
        let mut data: FxHashMap<ContentHash, Bytes> = FxHashMap::default();
        for frames in records {
            match wire::decode(&frames).map_err(|error| self.undecodable(&error))? {
                RecordingEntry::Header(_) => {}
                RecordingEntry::Lines(lines) => self.lines.extend(lines),
                RecordingEntry::Data { hash, bytes } => {
                    data.insert(hash, bytes);
                }
                RecordingEntry::Events { data: hashes, events } => {
                    let find = |hash: &ContentHash| {
                        data.get(hash).cloned().ok_or_else(|| self.lacks_data(*hash))
                    };
                    let data = hashes.iter().map(find).collect::<Result<_, _>>()?;
                    self.chunks.push(EventChunk { events, data });
                }
                RecordingEntry::End => self.ending = Ending::Complete,
            }
        }
        Ok(())
    }

    /// Decodes all events once, and counts the instructions.
    fn check(&mut self, until: Option<u64>) -> Result<(), RecordingError> {
        let (mut counter, mut answered) = (InstructionCounter::default(), FxHashSet::default());
        let (mut files, mut after_tensors) = (BTreeSet::new(), 0);
        let mut published = PublishedData::default();
        for event in self.events() {
            let event = event?;
            published.note(&event);
            match event {
                SessionEvent::Batch { commands, .. } => {
                    commands.iter().for_each(|command| counter.count(command));
                    commands.iter().for_each(|command| note_files(command, &mut files));
                    let numbers = commands.iter().filter_map(ClientCommand::after_made);
                    after_tensors = numbers.fold(after_tensors, u64::max);
                }
                SessionEvent::Answered { request, .. } => {
                    answered.insert(request);
                }
                SessionEvent::Read { .. } | SessionEvent::Published { .. } => {}
            }
        }
        (self.after_tensors, self.published) = (after_tensors, published);
        let instructions = counter.total();
        (self.instructions, self.answered, self.files) = (instructions, answered, files);
        if let Ending::Damaged { at, reason } = &self.ending
            && until.is_none_or(|until| until > instructions)
        {
            let (path, reason) = (self.path.clone(), reason.clone());
            return Err(RecordingError::Damaged { path, at: *at, reason, instructions });
        }
        match until.filter(|&given| given == 0 || given > instructions) {
            Some(given) => Err(RecordingError::Until { given, instructions }),
            None => Ok(()),
        }
    }

    /// Returns the events, in order.
    pub fn events(&self) -> impl Iterator<Item = Result<SessionEvent, RecordingError>> + '_ {
        let read = |chunk: &'_ EventChunk| {
            EventReader::new(&chunk.events, &chunk.data, &self.operations)
                .map(|event| match event {
                    Ok(event) => Ok(self.published.restore(event)),
                    Err(error) => Err(self.undecodable(&error)),
                })
                .collect::<Vec<_>>()
        };
        self.chunks.iter().flat_map(read)
    }

    /// Checks that the files from which its workers read tensors exist on this machine.
    ///
    /// # Errors
    /// One does not exist.
    pub fn check_files(&self) -> Result<(), RecordingError> {
        match self.files.iter().find(|file| !Path::new(file).exists()) {
            None => Ok(()),
            Some(file) => Err(RecordingError::Data {
                path: self.path.clone(),
                what: format!("the values in '{file}', which its program read from there"),
                hint: "copy that file to this place, or replay with --until before it is read",
            }),
        }
    }

    /// Returns the file's name.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the line of a number in the stream.
    pub fn line(&self, source: SourceId) -> Option<&RecordedLine> {
        self.lines.get(((source.0 >> 1) as usize).checked_sub(1)?)
    }

    /// Returns the error of an iteration that does not match its template.
    pub(crate) fn broken(&self, error: &TemplateError) -> RecordingError {
        let (path, reason) = (self.path.clone(), error.to_string());
        RecordingError::Broken { path, reason }
    }

    /// Returns the error of bytes that do not decode: most often an operation that does not exist here.
    fn undecodable(&self, error: &DecodeError) -> RecordingError {
        let path = self.path.clone();
        let code = match error {
            DecodeError::BadCode { what: "an operation", code } => *code,
            _ => {
                return RecordingError::Broken { path, reason: error.to_string() };
            }
        };
        let (recorded, version) = (&self.header.version, env!("CARGO_PKG_VERSION").to_string());
        let hint = format!("gt {recorded} recorded it: replay it with that version or a later one");
        let named = self.header.operations.iter().find(|of| u64::from(of.number) == code);
        let missing = match named {
            None => format!("an operation of number {code}, which its header does not name"),
            Some(of) => match Operation::from_name(&of.name) {
                None => format!("the operation '{}'", of.name),
                Some(_) => {
                    format!("'{}' with the attributes ({})", of.name, of.attributes.join(", "))
                }
            },
        };
        RecordingError::Operation { path, missing, version, hint }
    }

    fn lacks_data(&self, hash: ContentHash) -> RecordingError {
        RecordingError::Data {
            path: self.path.clone(),
            what: format!("the data with the hash {hash}, which its stream uses"),
            hint: "copy the file from its origin again, or record the program again",
        }
    }
}

/// Adds the files from which a command reads a tensor.
fn note_files(command: &ClientCommand, files: &mut BTreeSet<String>) {
    if let ClientCommand::Create(create) = command
        && let Content::Stored(stored) = &create.content
    {
        files.extend(stored.parts.iter().map(|part| part.file.clone()));
    }
}

fn read_segment(path: &str, bytes: &Bytes) -> Result<segment::Records, RecordingError> {
    let path = String::from(path);
    segment::read(bytes, SCHEMA).map_err(|error| {
        let begins = &bytes[..bytes.len().min(segment::MAGIC.len())];
        match error {
            Unreadable::Schema => {
                RecordingError::Foreign { path, found: ": it is a journal of a server" }
            }
            Unreadable::Foreign
                if bytes.len() < segment::HEADER && segment::MAGIC.starts_with(begins) =>
            {
                RecordingError::Empty { path, at: bytes.len() }
            }
            _ => RecordingError::Foreign { path, found: "" },
        }
    })
}

fn read_header(path: &str, frames: &[Bytes]) -> Result<RecordingHeader, RecordingError> {
    let foreign = || RecordingError::Foreign { path: path.into(), found: "" };
    // The layout and the version of GT come first in every layout.
    let head = frames.first().ok_or_else(foreign)?;
    let mut source = wire::Source::new(head, &[]);
    let read = |source: &mut wire::Source| -> wire::Decoded<(u8, u32, String)> {
        use wire::Record;
        Ok((source.byte()?, u32::read(source)?, String::read(source)?))
    };
    let (_, layout, recorded) = read(&mut source).map_err(|_| foreign())?;
    if layout > LAYOUT {
        let (path, version) = (path.into(), env!("CARGO_PKG_VERSION").into());
        return Err(RecordingError::Layout {
            path,
            found: layout,
            known: LAYOUT,
            version,
            recorded,
        });
    }
    match wire::decode(frames) {
        Ok(RecordingEntry::Header(header)) => Ok(*header),
        _ => Err(foreign()),
    }
}

/// Returns the operations of this GT by the numbers that a recording has for them.
fn operation_table(names: &[OperationName]) -> Vec<Option<&'static Operation>> {
    let most = names.iter().map(|of| usize::from(of.number)).max();
    let mut table = vec![None; most.map_or(0, |most| most + 1)];
    for of in names {
        // With other attributes it is another operation.
        table[usize::from(of.number)] = Operation::from_name(&of.name).filter(|operation| {
            operation.attributes().map(|(of, _)| of.name).eq(of.attributes.iter())
        });
    }
    table
}
