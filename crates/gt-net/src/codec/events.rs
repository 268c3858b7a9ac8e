//! Events and what dispatchers and workers tell of themselves, as bytes.

use std::time::Duration;

use gt_ir::event::{Activity, Event, Kind, Lane, Mix, What};
use gt_ir::exchange::Collective;
use gt_ir::message::Named;
use gt_ir::status::{Report, SessionStatus, Share, Status, Waits, WorkerStatus};
use gt_ir::{Operation, TensorId, TransferId, WorkerId};

use crate::wire::{DecodeError, Reader, Writer};

type Result<T> = std::result::Result<T, DecodeError>;

/// The bytes that an event takes at least.
const EVENT: usize = 11;

/// The entry of a list that a code stands for.
fn pick<T: Copy>(list: &[T], what: &'static str, code: u8) -> Result<T> {
    let entry = list.get(usize::from(code)).copied();
    entry.ok_or(DecodeError::BadCode { what, code: u64::from(code) })
}

pub fn write_time(out: &mut Writer, time: Duration) {
    out.varint(time.as_nanos() as u64);
}

pub fn read_time(from: &mut Reader) -> Result<Duration> {
    Ok(Duration::from_nanos(from.varint()?))
}

fn small(from: &mut Reader) -> Result<u32> {
    u32::try_from(from.varint()?).map_err(|_| DecodeError::BadNumber)
}

/// Reads a list of records of at least `size` bytes each.
fn list<T>(
    from: &mut Reader,
    size: usize,
    item: impl FnMut(&mut Reader) -> Result<T>,
) -> Result<Vec<T>> {
    let count = from.u32()? as usize;
    let count = from.count(count, size)?;
    let mut item = item;
    (0..count).map(|_| item(from)).collect()
}

/// Times stand as differences: from one event to the next, and from its beginning to its end.
pub fn encode_events(out: &mut Writer, events: &[Event]) {
    out.u32(events.len() as u32);
    let mut last = 0;
    for event in events {
        let begin = event.begin.as_nanos() as u64;
        out.near(begin, last);
        last = begin;
        write_time(out, event.end.saturating_sub(event.begin));
        out.u8(event.kind as u8);
        encode_lane(out, event.lane);
        out.varint(u64::from(event.session));
        out.varint(u64::from(event.signal));
        encode_what(out, event.what);
        out.varint(u64::from(event.count));
        out.varint(u64::from(event.failed));
        out.varint(event.tensor.0);
        out.varint(event.bytes);
    }
}

pub fn decode_events(from: &mut Reader) -> Result<Vec<Event>> {
    let mut last = 0;
    list(from, EVENT, |from| {
        last = from.near(last)?;
        let begin = Duration::from_nanos(last);
        Ok(Event {
            begin,
            end: begin + read_time(from)?,
            kind: pick(&Kind::ALL, "a kind of event", from.u8()?)?,
            lane: decode_lane(from)?,
            session: small(from)?,
            signal: small(from)?,
            what: decode_what(from)?,
            count: small(from)?,
            failed: small(from)?,
            tensor: TensorId(from.varint()?),
            bytes: from.varint()?,
        })
    })
}

fn encode_lane(out: &mut Writer, lane: Lane) {
    out.varint(match lane {
        Lane::Client => 0,
        Lane::Dispatcher => 1,
        Lane::Worker(worker) => 2 + u64::from(worker.0),
    });
}

fn decode_lane(from: &mut Reader) -> Result<Lane> {
    Ok(match from.varint()? {
        0 => Lane::Client,
        1 => Lane::Dispatcher,
        worker => {
            Lane::Worker(WorkerId(u32::try_from(worker - 2).map_err(|_| DecodeError::BadNumber)?))
        }
    })
}

fn encode_what(out: &mut Writer, what: What) {
    match what {
        What::Batch { mix } => {
            out.u8(0);
            encode_mix(out, mix);
        }
        What::Operation(operation) => {
            out.u8(1);
            out.u16(operation.id);
        }
        What::Create => out.u8(2),
        What::Fetch => out.u8(3),
        What::Free => out.u8(4),
        What::HotPath { number, mix } => {
            out.u8(5);
            out.varint(u64::from(number));
            encode_mix(out, mix);
        }
        What::Send { collective, transfer, to } => {
            out.u8(6);
            encode_collective(out, collective);
            out.varint(transfer.0);
            out.varint(u64::from(to.0));
        }
        What::Receive { transfer, from } => {
            out.u8(7);
            out.varint(transfer.0);
            out.varint(u64::from(from.0));
        }
        What::Control => out.u8(8),
        What::Join { collective } => {
            out.u8(9);
            encode_collective(out, collective);
        }
    }
}

fn encode_collective(out: &mut Writer, collective: Collective) {
    let code = Collective::ALL.iter().position(|other| *other == collective);
    out.u8(code.unwrap_or(0) as u8);
}

fn decode_collective(from: &mut Reader) -> Result<Collective> {
    pick(&Collective::ALL, "a collective", from.u8()?)
}

/// Most have none.
fn encode_mix(out: &mut Writer, mix: Mix) {
    let parts: Vec<(usize, u8)> =
        mix.0.iter().copied().enumerate().filter(|(_, part)| *part > 0).collect();
    out.u8(parts.len() as u8);
    for (activity, part) in parts {
        out.u8(activity as u8);
        out.u8(part);
    }
}

fn decode_mix(from: &mut Reader) -> Result<Mix> {
    let count = usize::from(from.u8()?);
    let mut mix = Mix::default();
    for _ in 0..from.count(count, 2)? {
        let activity = pick(&Activity::ALL, "an activity", from.u8()?)?;
        mix.0[activity as usize] = from.u8()?;
    }
    Ok(mix)
}

fn decode_what(from: &mut Reader) -> Result<What> {
    Ok(match from.u8()? {
        0 => What::Batch { mix: decode_mix(from)? },
        1 => {
            let id = from.u16()?;
            let unknown = DecodeError::BadCode { what: "an operation", code: u64::from(id) };
            What::Operation(Operation::from_id(id).ok_or(unknown)?)
        }
        2 => What::Create,
        3 => What::Fetch,
        4 => What::Free,
        5 => What::HotPath { number: small(from)?, mix: decode_mix(from)? },
        6 => What::Send {
            collective: decode_collective(from)?,
            transfer: TransferId(from.varint()?),
            to: WorkerId(small(from)?),
        },
        7 => What::Receive { transfer: TransferId(from.varint()?), from: WorkerId(small(from)?) },
        8 => What::Control,
        9 => What::Join { collective: decode_collective(from)? },
        code => return Err(DecodeError::BadCode { what: "an event", code: u64::from(code) }),
    })
}

pub fn encode_names(out: &mut Writer, names: &[(Named, String)]) {
    out.u32(names.len() as u32);
    for (named, name) in names {
        match named {
            Named::Session(session) => {
                out.u8(0);
                out.u32(*session);
            }
            Named::Worker(worker) => {
                out.u8(1);
                out.u32(worker.0);
            }
            Named::Signal { session, number } => {
                out.u8(2);
                out.u32(*session);
                out.u32(*number);
            }
        }
        out.text(name);
    }
}

pub fn decode_names(from: &mut Reader) -> Result<Vec<(Named, String)>> {
    list(from, 9, |from| {
        let named = match from.u8()? {
            0 => Named::Session(from.u32()?),
            1 => Named::Worker(WorkerId(from.u32()?)),
            2 => Named::Signal { session: from.u32()?, number: from.u32()? },
            code => return Err(DecodeError::BadCode { what: "a name", code: u64::from(code) }),
        };
        Ok((named, from.text()?))
    })
}

pub fn encode_report(out: &mut Writer, report: &Report) {
    write_time(out, report.at);
    write_time(out, report.since);
    out.text(&report.engine);
    for number in
        [report.operations, report.failed, report.tensors, report.bytes, report.bytes_peak]
    {
        out.varint(number);
    }
    report.busy.iter().for_each(|busy| write_time(out, *busy));
    out.u32(report.sessions.len() as u32);
    for share in &report.sessions {
        out.u32(share.session);
        out.varint(share.bytes);
        write_time(out, share.busy);
    }
}

pub fn decode_report(from: &mut Reader) -> Result<Report> {
    Ok(Report {
        at: read_time(from)?,
        since: read_time(from)?,
        engine: from.text()?,
        operations: from.varint()?,
        failed: from.varint()?,
        tensors: from.varint()?,
        bytes: from.varint()?,
        bytes_peak: from.varint()?,
        busy: {
            let mut busy = [Duration::ZERO; Activity::ALL.len()];
            busy.iter_mut().try_for_each(|busy| read_time(from).map(|read| *busy = read))?;
            busy
        },
        sessions: list(from, 6, |from| {
            Ok(Share { session: from.u32()?, bytes: from.varint()?, busy: read_time(from)? })
        })?,
    })
}

pub fn encode_status(out: &mut Writer, status: &Status) {
    write_time(out, status.now);
    // Sessions are numbered from 1.
    out.varint(u64::from(status.asker.unwrap_or(0)));
    out.varint(status.dropped);
    out.u32(status.workers.len() as u32);
    for worker in &status.workers {
        out.u32(worker.id.0);
        out.u32(worker.number);
        out.text(&worker.name);
        out.u32(worker.homes);
        out.varint(worker.in_flight);
        out.varint(worker.batches);
        out.u8(u8::from(worker.busy_since.is_some()));
        write_time(out, worker.busy_since.unwrap_or_default());
        write_time(out, worker.busy);
        encode_report(out, &worker.report);
    }
    out.u32(status.sessions.len() as u32);
    for session in &status.sessions {
        out.u32(session.number);
        out.text(&session.name);
        write_time(out, session.since);
        for number in [session.instructions, session.open, session.queued, session.bytes] {
            out.varint(number);
        }
        write_time(out, session.busy);
        encode_waits(out, &session.waits);
    }
}

pub fn decode_status(from: &mut Reader) -> Result<Status> {
    Ok(Status {
        now: read_time(from)?,
        asker: Some(small(from)?).filter(|asker| *asker != 0),
        dropped: from.varint()?,
        workers: list(from, 39, |from| {
            Ok(WorkerStatus {
                id: WorkerId(from.u32()?),
                number: from.u32()?,
                name: from.text()?,
                homes: from.u32()?,
                in_flight: from.varint()?,
                batches: from.varint()?,
                busy_since: {
                    let (is_busy, since) = (from.u8()? != 0, read_time(from)?);
                    is_busy.then_some(since)
                },
                busy: read_time(from)?,
                report: decode_report(from)?,
            })
        })?,
        sessions: list(from, 15, |from| {
            Ok(SessionStatus {
                number: from.u32()?,
                name: from.text()?,
                since: read_time(from)?,
                instructions: from.varint()?,
                open: from.varint()?,
                queued: from.varint()?,
                bytes: from.varint()?,
                busy: read_time(from)?,
                waits: decode_waits(from)?,
            })
        })?,
    })
}

fn encode_waits(out: &mut Writer, waits: &Waits) {
    match waits {
        Waits::Nothing => out.u8(0),
        Waits::Workers => out.u8(1),
        Waits::Room => out.u8(2),
        Waits::Work => out.u8(3),
        Waits::Value { tensor, worker, since } => {
            out.u8(4);
            out.varint(tensor.0);
            out.text(worker);
            write_time(out, *since);
        }
    }
}

fn decode_waits(from: &mut Reader) -> Result<Waits> {
    Ok(match from.u8()? {
        0 => Waits::Nothing,
        1 => Waits::Workers,
        2 => Waits::Room,
        3 => Waits::Work,
        4 => Waits::Value {
            tensor: TensorId(from.varint()?),
            worker: from.text()?,
            since: read_time(from)?,
        },
        code => return Err(DecodeError::BadCode { what: "a wait", code: u64::from(code) }),
    })
}
