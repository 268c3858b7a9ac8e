//! The encoding of messages as frames.
//!
//! The first frame has a magic number, the layout version, the message's [`Kind`] and its record
//! ([`crate::wire`]); a hello's record follows its [`Protocol`]. Large tensor data follows in
//! separate frames. Decoding checks everything: any bytes decode to a message or an error.

use crate::message::{
    Acknowledge, ClientToServer, Frame, Goodbye, Hello, Kind, Message, OperatorToServer, Protocol,
    Role, ServerToClient, ServerToOperator, ServerToWatcher, ServerToWorker, Stranger,
    WatcherToServer, Welcome, WorkerToServer, WorkerToWorker,
};
use crate::wire::{Frames, Record, Sink, Source};
use bytes::Bytes;

pub use crate::wire::DecodeError;

const MAGIC: [u8; 2] = *b"GT";
/// The version of this layout.
const LAYOUT: u8 = 4;
/// The first layout whose hellos begin with a [`Protocol`].
const FIRST_WITH_PROTOCOL: u8 = 4;

/// The most frames of a message.
pub const MAX_FRAMES: usize = 4096;

/// Encodes a message as frames.
pub fn encode<M: Message>(message: &M) -> Vec<Bytes> {
    let mut frames = Frames::default();
    frames.bytes(&MAGIC);
    frames.byte(LAYOUT);
    frames.byte(M::KIND as u8);
    if M::KIND == Kind::Hello {
        Protocol::current().write(&mut frames);
    }
    message.write(&mut frames);
    let mut all = vec![Bytes::from(frames.head)];
    all.append(&mut frames.data);
    all
}

/// Decodes a message from its frames.
///
/// # Errors
/// The frames are not what [`encode`] produces, or of another kind.
pub fn decode<M: Message>(frames: &[Bytes]) -> Result<M, DecodeError> {
    let (kind, source) = open(frames)?;
    read(kind, source)
}

/// Decodes what arrives on a link after its handshake: a message, or the end of the link.
///
/// # Errors
/// As for [`decode`].
pub fn decode_frame<M: Message>(frames: &[Bytes]) -> Result<Frame<M>, DecodeError> {
    let (kind, source) = open(frames)?;
    match kind {
        Kind::Goodbye => read(kind, source).map(Frame::Goodbye),
        kind => read(kind, source).map(Frame::Message),
    }
}

/// Returns the acknowledgement that the frames are, if they are one.
///
/// # Errors
/// As for [`decode`].
pub fn decode_acknowledgement(frames: &[Bytes]) -> Result<Option<Acknowledge>, DecodeError> {
    match open(frames)? {
        (kind @ Kind::Acknowledge, source) => read(kind, source).map(Some),
        _ => Ok(None),
    }
}

/// Decodes a message of any kind and encodes it again, for tests of the encoding.
///
/// # Errors
/// As for [`decode`].
pub fn recode(frames: &[Bytes]) -> Result<Vec<Bytes>, DecodeError> {
    let (kind, source) = open(frames)?;
    Ok(match kind {
        Kind::Hello => encode(&read::<Hello>(kind, source)?),
        Kind::Welcome => encode(&read::<Welcome>(kind, source)?),
        Kind::Acknowledge => encode(&read::<Acknowledge>(kind, source)?),
        Kind::Goodbye => encode(&read::<Goodbye>(kind, source)?),
        Kind::ClientToServer => encode(&read::<ClientToServer>(kind, source)?),
        Kind::ServerToClient => encode(&read::<ServerToClient>(kind, source)?),
        Kind::WorkerToServer => encode(&read::<WorkerToServer>(kind, source)?),
        Kind::ServerToWorker => encode(&read::<ServerToWorker>(kind, source)?),
        Kind::WorkerToWorker => encode(&read::<WorkerToWorker>(kind, source)?),
        Kind::WatcherToServer => encode(&read::<WatcherToServer>(kind, source)?),
        Kind::ServerToWatcher => encode(&read::<ServerToWatcher>(kind, source)?),
        Kind::OperatorToServer => encode(&read::<OperatorToServer>(kind, source)?),
        Kind::ServerToOperator => encode(&read::<ServerToOperator>(kind, source)?),
    })
}

/// Returns the kind of a message, and the source of its record.
fn open(frames: &[Bytes]) -> Result<(Kind, Source<'_>), DecodeError> {
    let (head, data) = frames.split_first().ok_or(DecodeError::BadMagic)?;
    let mut source = Source::new(head, data);
    if source.array()? != MAGIC {
        return Err(DecodeError::BadMagic);
    }
    let layout = source.byte()?;
    if layout < FIRST_WITH_PROTOCOL {
        return Err(DecodeError::BadLayout(layout));
    }
    let number = source.byte()?;
    let kind = Kind::of(number);
    if kind == Some(Kind::Hello) {
        check_protocol(&mut source)?;
    }
    // Every version can read a goodbye.
    if layout != LAYOUT && kind != Some(Kind::Goodbye) {
        return Err(DecodeError::BadLayout(layout));
    }
    let unknown = || DecodeError::BadCode { what: "a message", code: u64::from(number) };
    Ok((kind.ok_or_else(unknown)?, source))
}

/// Reads the protocol of a hello.
///
/// # Errors
/// It is not the protocol of this build.
fn check_protocol(source: &mut Source) -> Result<(), DecodeError> {
    let protocol = Protocol::read(source)?;
    if protocol.matches(&Protocol::current()) {
        return Ok(());
    }
    let role = source.byte().ok().and_then(Role::of);
    Err(DecodeError::OtherProtocol(Box::new(Stranger { protocol, role })))
}

fn read<M: Message>(kind: Kind, mut source: Source) -> Result<M, DecodeError> {
    if kind != M::KIND {
        return Err(DecodeError::WrongKind { wanted: M::KIND, got: kind });
    }
    let message = M::read(&mut source)?;
    source.finish()?;
    Ok(message)
}
