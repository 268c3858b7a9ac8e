//! Numbers and waits as readable text.

use std::time::Duration;

use gt_ir::status::{Status, WINDOWS, Waits, WindowUse};

/// `1.5 MB`
pub fn bytes(count: u64) -> String {
    let units = ["B", "KB", "MB", "GB", "TB", "PB"];
    let (mut value, mut unit) = (count as f64, 0);
    // A value that would print as 1000.0 uses the next unit.
    while value >= 999.95 && unit + 1 < units.len() {
        (value, unit) = (value / 1000.0, unit + 1);
    }
    if unit == 0 { format!("{count} B") } else { format!("{value:.1} {}", units[unit]) }
}

/// The text for an unknown value.
pub const UNKNOWN: &str = "-";

/// `1.5 MB`, if it is known.
pub fn held(is_known: bool, count: u64) -> String {
    if is_known { bytes(count) } else { UNKNOWN.into() }
}

/// `12.3k`
pub fn number(value: f64) -> String {
    let units = ["", "k", "M", "G", "T"];
    let (mut value, mut unit) = (value, 0);
    while value >= 999.5 && unit + 1 < units.len() {
        (value, unit) = (value / 1000.0, unit + 1);
    }
    if unit == 0 { format!("{value:.0}") } else { format!("{value:.1}{}", units[unit]) }
}

/// `1,234,567`
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `12.30 ms`
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.1} us", s * 1e6),
    }
}

/// `3 min`
pub fn age(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 172_800.. => format!("{} days", seconds / 86_400),
        seconds @ 7200.. => format!("{} h", seconds / 3600),
        seconds @ 120.. => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

/// `4.8/5.0 s`: the device time that was used in a window, and the time entitled to.
pub fn used_of(window: &WindowUse) -> String {
    let [used, entitled] = [window.used, window.entitled].map(|time| time.as_secs_f64());
    let digits = usize::from(used.max(entitled) < 99.95);
    format!("{used:.digits$}/{entitled:.digits$} s")
}

/// `4.8 s of 5.0 s in 10s, ...`: the same for all windows.
pub fn windows(of: &[WindowUse; WINDOWS.len()]) -> String {
    let each = WINDOWS.iter().zip(of).map(|((name, _), window)| {
        let [used, entitled] = [window.used, window.entitled].map(|time| time.as_secs_f64());
        format!("{used:.1} of {entitled:.1} s in {name}")
    });
    each.collect::<Vec<_>>().join(", ")
}

/// Describes what a session waits for.
pub fn asker_waits(status: &Status) -> String {
    let mine = status.sessions.iter().find(|session| Some(session.number) == status.asker);
    let Some(mine) = mine else { return "the session is not known any more".into() };
    let others = status.sessions.len() - 1;
    let others = match others {
        0 => String::new(),
        1 => "; one other session is connected".to_string(),
        count => format!("; {count} other sessions are connected"),
    };
    let to_run = format!("{} of this session's instructions are not done", mine.open);
    match &mine.waits {
        Waits::Nothing => "the answer is on its way".into(),
        Waits::Operator => "the session is paused: it continues when it is resumed".into(),
        Waits::Workers => {
            "no worker is connected\n  hint: start one with `gt worker --address HOST:PORT`".into()
        }
        Waits::Room => format!("the workers have enough to do; {to_run}{others}"),
        Waits::Reader => "the client has not read what was sent to it".into(),
        Waits::Copies => "copies of the session's tensors are written".into(),
        Waits::Work => format!("{to_run}{others}"),
        Waits::Value { tensor, worker, .. } => {
            let behind = status.workers.iter().find(|other| other.name == *worker);
            let behind = behind.map_or(0, |worker| worker.in_flight);
            let of = match tensor.is_known() {
                true => format!(" ({tensor})"),
                false => String::new(),
            };
            format!("a value of {worker}{of}, which has {behind} instructions to run{others}")
        }
        Waits::Memory { worker, bytes: need, holder, .. } => {
            let of = if holder.is_empty() { "it" } else { holder };
            format!("{} of memory on {worker}, of which {of} has no more{others}", bytes(*need))
        }
    }
}

/// Aligns the columns of rows.
pub fn table(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use gt_ir::SessionId;
    use gt_ir::TensorId;
    use gt_ir::status::{AwaitedTensor, SessionStatus};

    use super::*;

    #[test]
    fn numbers_are_short() {
        let cases = [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (1_500_000, "1.5 MB")];
        cases.iter().for_each(|(count, text)| assert_eq!(bytes(*count), *text));
        assert_eq!(bytes(999_960), "1.0 MB");
        assert_eq!([0.0, 999.4, 1234.0, 2e6].map(number), ["0", "999", "1.2k", "2.0M"]);
        assert_eq!([1, 999, 1000, 1_234_567].map(grouped), ["1", "999", "1,000", "1,234,567"]);
        let window = |used, entitled| WindowUse {
            used: Duration::from_millis(used),
            entitled: Duration::from_millis(entitled),
        };
        assert_eq!(used_of(&window(4_810, 5_000)), "4.8/5.0 s");
        assert_eq!(used_of(&window(600_400, 90)), "600/0 s");
        assert_eq!([2.5, 0.0123, 1.5e-6].map(duration), ["2.50 s", "12.30 ms", "1.5 us"]);
    }

    fn status(waits: Waits) -> Status {
        let session = |number, waits| SessionStatus {
            number,
            name: format!("s #{number}"),
            origin: gt_ir::SessionOrigin::default(),
            slots: vec![(0, "gpu0".into()), (1, "gpu0".into())],
            entitlement: gt_ir::entitlement::Entitlement::default(),
            share: 0.5,
            since: Duration::ZERO,
            instructions: 9,
            hot_instructions: 0,
            open: 5,
            queued: 0,
            bytes: 0,
            spilled: 0,
            busy: Duration::ZERO,
            anticipated: Duration::ZERO,
            anticipations: 0,
            windows: Default::default(),
            recoveries: 0,
            unkept: String::new(),
            tensors: 0,
            named: None,
            waits,
            last_error: None,
            behind: Vec::new(),
        };
        let sessions = vec![session(SessionId(1), Waits::Nothing), session(SessionId(2), waits)];
        Status { asker: Some(SessionId(2)), sessions, ..Status::default() }
    }

    #[test]
    fn it_says_what_the_asker_waits_for() {
        let since = Duration::ZERO;
        let tensor =
            AwaitedTensor { id: TensorId(3), operation: "mean".into(), line: "a.py:3".into() };
        let value = Waits::Value { tensor, worker: "gpu1".into(), since };
        assert!(
            asker_waits(&status(value))
                .starts_with("a value of gpu1 (mean at a.py:3), which has 0")
        );
        assert!(asker_waits(&status(Waits::Workers)).contains("gt worker"));
        let room = asker_waits(&status(Waits::Room));
        assert!(
            room.contains("5 of this session's")
                && room.ends_with("one other session is connected")
        );
    }
}
