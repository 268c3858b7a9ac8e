//! The screen: a header, the tables of workers and sessions, and a footer.
//!
//! - [`workers`]: a worker's line with the bar of its time; [`sessions`]: a session's line;
//!   [`users`]: a user's.

mod sessions;
pub(super) mod users;
mod workers;

use std::time::Duration;

use gt_ir::status::{SessionStatus, Status, WorkerStatus};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::keys::Keys;
use super::model::Model;
use crate::words::number;
pub(crate) use sessions::waits;

/// The smallest screen on which the tables fit.
const LEAST: (u16, u16) = (40, 8);

/// The contents of the screen.
pub(super) struct View<'a> {
    pub model: &'a Model,
    pub keys: &'a Keys,
    pub title: &'a str,
    /// Why the status is not up to date, if it is not.
    pub trouble: Option<&'a str>,
}

/// Draws the screen.
pub(super) fn draw(frame: &mut Frame, shown: &View) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!(
            "gt top: the terminal is {} x {}, at least {} x {} are needed",
            area.width, area.height, LEAST.0, LEAST.1
        );
        let text = Paragraph::new(text).wrap(ratatui::widgets::Wrap { trim: true });
        return frame.render_widget(text, area);
    }
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(2), Constraint::Min(1), Constraint::Length(1)])
            .areas(area);
    frame.render_widget(Paragraph::new(header(shown, head.width)), head);
    frame.render_widget(Paragraph::new(footer(shown.keys)), foot);
    if shown.keys.has_help {
        return frame.render_widget(Paragraph::new(help()), body);
    }
    match &shown.model.status {
        Some(status) => draw_body(frame, body, shown, status),
        None => frame.render_widget(Paragraph::new("waiting for the dispatcher"), body),
    }
}

fn header(shown: &View, width: u16) -> Vec<Line<'static>> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut first = vec![Span::styled("gt top  ", bold), Span::raw(shown.title.to_string())];
    if shown.keys.is_paused {
        first.push(Span::styled("  paused", Style::new().fg(Color::Yellow)));
    }
    let second = match (shown.trouble, &shown.model.status) {
        (Some(trouble), _) => {
            let line = trouble.lines().next().unwrap_or_default().to_string();
            Line::styled(line, Style::new().fg(Color::Red))
        }
        (None, Some(status)) => {
            let mut text = format!(
                "up {}  workers {}  sessions {}  {}/s",
                age(status.now),
                status.workers.len(),
                status.sessions.len(),
                number(shown.model.rate())
            );
            if status.dropped > 0 {
                text += &format!("  events dropped {}", number(status.dropped as f64));
            }
            text.truncate(usize::from(width));
            Line::raw(text)
        }
        (None, None) => Line::raw(""),
    };
    vec![Line::from(first), second]
}

fn footer(keys: &Keys) -> Line<'static> {
    let dim = Style::new().fg(Color::DarkGray);
    if keys.is_typing {
        return Line::raw(format!("filter: {}_   (Enter keeps it, Esc clears it)", keys.filter));
    }
    let filter =
        if keys.filter.is_empty() { String::new() } else { format!("filter '{}'  ", keys.filter) };
    let text = format!(
        "{filter}q quit  space pause  s sort by {}  u users  / filter  tab next  ? help",
        keys.order.name()
    );
    Line::styled(text, dim)
}

fn help() -> Vec<Line<'static>> {
    [
        "A bar is a worker's time, by what it did; the rest it was idle.",
        "queue   instructions sent to a worker and not done yet",
        "used    the part of the time of all workers that a session uses",
        "share   the part that it is entitled to, by the weights of the policy",
        "in 10s  the device time that it used, and was entitled to while it had work",
        "gpu     how busy a worker's GPU is, with all programs on it, on a wide screen",
        "",
        "q, Esc, Ctrl-C   leave",
        "space, p         pause: the screen stands still, the cluster does not",
        "s                sort sessions by used, rate, memory, name",
        "u                users and teams, with all of their sessions, or each session",
        "w                device time in the last 10 s, 1 min or 10 min, on a wide screen",
        "/                show only names that contain what is typed",
        "Tab              the next dispatcher on this machine",
        "arrows, j, k     scroll the workers",
    ]
    .map(Line::raw)
    .into()
}

fn draw_body(frame: &mut Frame, area: Rect, shown: &View, status: &Status) {
    let has_name = |name: &str| name.contains(&shown.keys.filter);
    let workers: Vec<&WorkerStatus> =
        status.workers.iter().filter(|worker| has_name(&worker.name)).collect();
    let mut sessions: Vec<&SessionStatus> =
        status.sessions.iter().filter(|session| has_name(&session.name)).collect();
    sessions::sort(&mut sessions, shown.model, shown.keys.order);
    // The sessions get the rows that the workers leave, but at least a third.
    let third = (area.height / 3).max(3);
    let wanted = u16::try_from(workers.len()).unwrap_or(u16::MAX).saturating_add(3);
    let upper = wanted.min(area.height.saturating_sub(third));
    let [upper, lower] =
        Layout::vertical([Constraint::Length(upper), Constraint::Min(1)]).areas(area);
    let room = usize::from(upper.height.saturating_sub(2)).max(1);
    let first = shown.keys.scrolled.min(workers.len().saturating_sub(room));
    let has_gpus = status.workers.iter().any(|worker| worker.report.gpu.is_some());
    let mut lines = vec![workers::head(upper.width, has_gpus)];
    for worker in workers.iter().skip(first).take(room) {
        lines.push(workers::line(worker, shown.model.shares(worker), upper.width, has_gpus));
    }
    lines.push(workers::legend(upper.width));
    frame.render_widget(Paragraph::new(lines), upper);
    let room = usize::from(lower.height).saturating_sub(1);
    let window = shown.keys.window;
    let mut lines = Vec::new();
    if shown.keys.shows_users {
        lines.push(users::head(window, lower.width));
        let named = status.users.iter().filter(|user| has_name(users::name(user)));
        let users = named.map(|user| users::line(user, window, lower.width));
        let has_teams = status.teams.iter().any(|team| !team.name.is_empty());
        let teams = status.teams.iter().filter(|team| has_teams && has_name(&team.name));
        let teams = teams.map(|team| users::team(team, window, lower.width));
        lines.extend(users.chain(teams).take(room));
    } else {
        lines.push(sessions::head(window, lower.width));
        let of = |session| sessions::line(session, shown.model, status.now, window, lower.width);
        lines.extend(sessions.into_iter().take(room).map(of));
    }
    frame.render_widget(Paragraph::new(lines), lower);
}

/// The first `width` characters.
fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

/// `3:07:12`
fn age(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use gt_ir::SessionId;
    use gt_ir::entitlement::{Entitlement, MemoryQuota};
    use gt_ir::event::Activity;
    use gt_ir::gpu::{GpuMemory, GpuReading, GpuStatus};
    use gt_ir::status::{AwaitedTensor, Report, TeamStatus, UserStatus, WINDOWS, Waits, WindowUse};
    use gt_ir::{SessionOrigin, TensorId, WorkerId};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::{json, text};
    use super::*;

    /// Three quarters of the entitlement are used.
    fn windows(busy: u64) -> [WindowUse; WINDOWS.len()] {
        WINDOWS.map(|(_, length)| {
            let used = Duration::from_millis(busy).min(length);
            WindowUse { used, entitled: used * 4 / 3 }
        })
    }

    fn status(now: u64, busy: u64) -> Status {
        let now = Duration::from_secs(now);
        let mut report = Report { at: now, engine: "native".into(), ..Report::default() };
        report.bytes = 3 << 20;
        (report.spilled_bytes, report.snapshot_disk_bytes) = (1 << 20, 1 << 30);
        report.busy[Activity::Matmul as usize] = Duration::from_millis(busy);
        report.busy[Activity::Elementwise as usize] = Duration::from_millis(busy / 2);
        let worker = |number: u32| WorkerStatus {
            id: WorkerId(number),
            number,
            name: format!("gpu{number}"),
            host: "node7".into(),
            rack: String::new(),
            is_draining: number == 2,
            homes: 1,
            in_flight: 1234,
            batches: 3,
            busy_since: None,
            busy: Duration::ZERO,
            report: report.clone(),
        };
        let value = Waits::Value {
            tensor: AwaitedTensor {
                id: TensorId(7),
                operation: "mean".into(),
                line: "train.py:31".into(),
            },
            worker: "gpu1".into(),
            since: now - Duration::from_millis(1500),
        };
        let session = |number, waits| SessionStatus {
            number,
            name: format!("train.py anna@box #{number}"),
            origin: SessionOrigin {
                program: "train.py".into(),
                user: "anna".into(),
                host: "box".into(),
            },
            slots: vec![(0, "gpu0".into()), (1, "gpu0".into())],
            entitlement: Entitlement::default(),
            share: 0.5,
            since: Duration::ZERO,
            instructions: 5000 * now.as_secs(),
            hot_instructions: 0,
            open: 12,
            queued: 300,
            bytes: 2 << 30,
            spilled: 0,
            busy: Duration::from_millis(busy),
            anticipated: Duration::ZERO,
            anticipations: 0,
            windows: windows(busy),
            recoveries: 0,
            unkept: String::new(),
            tensors: 0,
            named: None,
            waits,
            last_error: None,
            behind: vec!["run-12 eve@box #9".into()],
        };
        let nobody = UserStatus {
            sessions: 2,
            share: 1.0,
            bytes: 4 << 30,
            busy: Duration::from_millis(2 * busy),
            windows: windows(2 * busy),
            ..UserStatus::default()
        };
        let quota = MemoryQuota { holder: "team vision".into(), bytes: 1 << 30 };
        let (user, team) = ("ada".into(), "vision".into());
        let memory = vec![quota];
        let entitlement =
            Entitlement { user, team, user_weight: 3, memory, ..Entitlement::default() };
        let ada =
            UserStatus { entitlement, busy: Duration::from_secs(5000), ..UserStatus::default() };
        let none = TeamStatus { weight: 1, sessions: 2, share: 1.0, ..TeamStatus::default() };
        let vision = TeamStatus {
            name: "vision".into(),
            weight: 1,
            busy: Duration::from_secs(5000),
            windows: windows(5_000_000),
            ..TeamStatus::default()
        };
        let asks_soon = SessionStatus {
            anticipated: Duration::from_millis(2),
            anticipations: 5,
            behind: Vec::new(),
            ..session(SessionId(3), Waits::Nothing)
        };
        let [first, second] =
            [(1, Waits::Room), (2, value)].map(|(number, waits)| session(SessionId(number), waits));
        Status {
            now,
            workers: (0..3).map(worker).collect(),
            sessions: vec![first, second, asks_soon],
            users: vec![nobody, ada],
            teams: vec![none, vision],
            ..Status::default()
        }
    }

    fn model() -> Model {
        let mut model = Model::new(1.0);
        model.take(status(3600, 0));
        model.take(status(3601, 500));
        model
    }

    /// Returns the model with a GPU for each worker: one that is used, a MIG instance, whose use
    /// cannot be measured, and one that does not answer.
    fn model_with_gpus() -> Model {
        let mut model = model();
        let workers = &mut model.status.as_mut().unwrap().workers;
        let memory = Some(GpuMemory { used: 12 << 30, total: 140 << 30 });
        let readings = [
            Some(GpuReading { percent: Some(87), memory }),
            Some(GpuReading { percent: None, memory }),
            None,
        ];
        for (worker, reading) in workers.iter_mut().zip(readings) {
            let index = Some(worker.number);
            let (name, uuid) = ("NVIDIA H200".into(), format!("GPU-0-{}", worker.number));
            worker.report.gpu = Some(GpuStatus { name, index, uuid, reading });
        }
        model
    }

    /// Returns what a screen of a size shows.
    fn screen(width: u16, height: u16, keys: &Keys, trouble: Option<&str>) -> String {
        screen_of(&model(), width, height, keys, trouble)
    }

    fn screen_of(
        model: &Model,
        width: u16,
        height: u16,
        keys: &Keys,
        trouble: Option<&str>,
    ) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let shown = View { model, keys, title: "server localhost:9000", trouble };
        terminal.draw(|frame| draw(frame, &shown)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(|y| row(y).trim_end().to_string() + "\n").collect()
    }

    fn check(name: &str, text: &str) {
        let path = format!("{}/tests/screens/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("GT_WRITE_SCREENS").is_some() {
            std::fs::write(&path, text).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, expected, "{path}; GT_WRITE_SCREENS=1 writes it anew");
    }

    #[test]
    fn screens_of_several_sizes() {
        let keys = Keys::default();
        check("wide", &screen(120, 16, &keys, None));
        check("usual", &screen(80, 24, &keys, None));
        check("narrow", &screen(44, 9, &keys, None));
        check("too-small", &screen(30, 5, &keys, None));
        check("lost", &screen(80, 12, &keys, Some("the connection was lost")));
        let typing = Keys { is_typing: true, filter: "gpu1".into(), ..Keys::default() };
        check("filtered", &screen(80, 12, &typing, None));
        let users = Keys { shows_users: true, ..Keys::default() };
        check("users", &screen(110, 14, &users, None));
        check("gpus", &screen_of(&model_with_gpus(), 120, 10, &keys, None));
        check("help", &screen(80, 18, &Keys { has_help: true, ..Keys::default() }, None));
    }

    #[test]
    fn one_moment_as_text_and_for_programs() {
        check("once", &text::plain(&model(), "server localhost:9000"));
        let shown = json::status(&model(), "server localhost:9000");
        check("once-json", &format!("{shown:#}\n"));
        check("once-gpus", &text::plain(&model_with_gpus(), "server localhost:9000"));
        let shown = json::status(&model_with_gpus(), "server localhost:9000");
        check("once-gpus-json", &format!("{shown:#}\n"));
        // No worker has reported yet.
        let mut model = Model::new(1.0);
        let mut quiet = status(3600, 0);
        quiet.workers.iter_mut().for_each(|worker| worker.report = Report::default());
        model.take(quiet);
        check("once-quiet", &text::plain(&model, "server localhost:9000"));
    }

    #[test]
    fn no_size_is_a_trouble() {
        for width in (1..140).step_by(7) {
            for height in (1..40).step_by(3) {
                screen(width, height, &Keys::default(), None);
            }
        }
    }
}
