//! The screen.

use std::time::Duration;

use gt_ir::event::Activity;
use gt_ir::status::{SessionStatus, Status, Waits, WorkerStatus};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::keys::{Keys, Order};
use super::model::{Model, Shares};
use crate::timeline::Colour;
use crate::words::{held, number};

/// Below this nothing can be shown.
const LEAST: (u16, u16) = (40, 8);

/// What is shown.
pub struct Shown<'a> {
    pub model: &'a Model,
    pub keys: &'a Keys,
    pub title: &'a str,
    pub trouble: Option<&'a str>,
}

/// Draws the screen.
pub fn draw(frame: &mut Frame, shown: &Shown) {
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

fn header(shown: &Shown, width: u16) -> Vec<Line<'static>> {
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
        if keys.filter.is_empty() { String::new() } else { format!("  filter '{}'", keys.filter) };
    let text = format!(
        "q quit  space pause  s sort by {}  / filter  tab next  ? help{filter}",
        keys.order.name()
    );
    Line::styled(text, dim)
}

fn help() -> Vec<Line<'static>> {
    [
        "A bar is a worker's time, by what it did; the rest it was idle.",
        "queue   instructions sent to a worker and not done yet",
        "share   a session's part of the time of all workers",
        "",
        "q, Esc, Ctrl-C   leave",
        "space, p         pause: the screen stands still, the cluster does not",
        "s                sort sessions by share, rate, memory, name",
        "/                show only names that contain what is typed",
        "Tab              the next dispatcher on this machine",
        "arrows, j, k     scroll the workers",
    ]
    .map(Line::raw)
    .into()
}

fn draw_body(frame: &mut Frame, area: Rect, shown: &Shown, status: &Status) {
    let has_name = |name: &str| name.contains(&shown.keys.filter);
    let workers: Vec<&WorkerStatus> =
        status.workers.iter().filter(|worker| has_name(&worker.name)).collect();
    let mut sessions: Vec<&SessionStatus> =
        status.sessions.iter().filter(|session| has_name(&session.name)).collect();
    sort(&mut sessions, shown.model, shown.keys.order);
    // Sessions get what workers leave, but a third at least.
    let third = (area.height / 3).max(3);
    let wanted = u16::try_from(workers.len()).unwrap_or(u16::MAX).saturating_add(3);
    let upper = wanted.min(area.height.saturating_sub(third));
    let [upper, lower] =
        Layout::vertical([Constraint::Length(upper), Constraint::Min(1)]).areas(area);
    let room = usize::from(upper.height.saturating_sub(2)).max(1);
    let first = shown.keys.scrolled.min(workers.len().saturating_sub(room));
    let mut lines = vec![worker_head(upper.width)];
    for worker in workers.iter().skip(first).take(room) {
        lines.push(worker_line(worker, shown.model.shares(worker), upper.width));
    }
    lines.push(legend(upper.width));
    frame.render_widget(Paragraph::new(lines), upper);
    let mut lines = vec![session_head(lower.width)];
    let room = usize::from(lower.height).saturating_sub(1);
    for session in sessions.iter().take(room) {
        lines.push(session_line(session, shown.model, status.now, lower.width));
    }
    frame.render_widget(Paragraph::new(lines), lower);
}

fn sort(sessions: &mut [&SessionStatus], model: &Model, order: Order) {
    match order {
        Order::Share => {
            sessions.sort_by(|a, b| model.rates(b).share.total_cmp(&model.rates(a).share))
        }
        Order::Rate => sessions
            .sort_by(|a, b| model.rates(b).instructions.total_cmp(&model.rates(a).instructions)),
        Order::Memory => sessions.sort_by_key(|session| std::cmp::Reverse(session.bytes)),
        Order::Name => sessions.sort_by(|a, b| a.name.cmp(&b.name)),
    }
}

/// The columns beside the bar; on a narrow screen some are left out.
struct Columns {
    name: usize,
    engine: usize,
    bar: usize,
    has_memory: bool,
}

impl Columns {
    fn of(width: u16) -> Columns {
        let width = usize::from(width);
        let (name, engine) = match width {
            ..60 => (10, 0),
            60..100 => (14, 0),
            _ => (18, 9),
        };
        let has_memory = width >= 56;
        let beside = name + 1 + engine + 6 + 9 + if has_memory { 10 } else { 0 };
        Columns { name, engine, bar: width.saturating_sub(beside).max(4), has_memory }
    }
}

fn worker_head(width: u16) -> Line<'static> {
    let columns = Columns::of(width);
    let Columns { name, engine, bar, has_memory } = columns;
    let mut text = format!("{:<name$} ", "worker");
    if engine > 0 {
        text += &format!("{:<engine$}", "engine");
    }
    text += &format!("{:<bar$}{:>6}{:>9}", "time", "idle", "queue");
    if has_memory {
        text += &format!("{:>10}", "memory");
    }
    Line::styled(text, Style::new().add_modifier(Modifier::BOLD))
}

fn worker_line(worker: &WorkerStatus, shares: Shares, width: u16) -> Line<'static> {
    let Columns { name, engine, bar, has_memory } = Columns::of(width);
    let mut spans = vec![Span::raw(format!("{:<name$} ", cut(&worker.name, name)))];
    if engine > 0 {
        spans.push(Span::raw(format!("{:<engine$}", cut(&worker.report.engine, engine - 1))));
    }
    spans.extend(bar_of(shares, bar));
    let idle = format!("{:>5.0}%", 100.0 * (1.0 - shares.busy()));
    spans.push(Span::raw(idle));
    spans.push(Span::raw(format!("{:>9}", number(worker.in_flight as f64))));
    if has_memory {
        spans.push(Span::raw(format!(
            "{:>10}",
            held(worker.report.is_there(), worker.report.bytes)
        )));
    }
    Line::from(spans)
}

/// A worker's time as a bar: each activity as wide as its share, what is left as dots.
fn bar_of(shares: Shares, width: usize) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    let (mut done, mut drawn) = (0.0, 0);
    let told = Activity::ALL.into_iter().zip(shares.of);
    let told = told.map(|(activity, share)| (share, "█", colour(activity)));
    for (share, sign, colour) in told.chain([(shares.untold, "▒", Color::Gray)]) {
        done += share;
        let until = ((done * width as f64).round() as usize).min(width);
        if until > drawn {
            let style = Style::new().fg(colour);
            spans.push(Span::styled(sign.repeat(until - drawn), style));
            drawn = until;
        }
    }
    let rest = "·".repeat(width - drawn);
    spans.push(Span::styled(rest, Style::new().fg(Color::DarkGray)));
    spans
}

fn legend(width: u16) -> Line<'static> {
    let mut spans = Vec::new();
    let mut used = 0;
    for activity in Activity::ALL {
        let text = format!("{}  ", activity.name());
        used += text.len() + 2;
        if used > usize::from(width) {
            break;
        }
        spans.push(Span::styled("█ ", Style::new().fg(colour(activity))));
        spans.push(Span::raw(text));
    }
    Line::from(spans)
}

/// The colours of pictures of timelines, too.
fn colour(activity: Activity) -> Color {
    let [red, green, blue] = Colour::of(activity).rgb();
    Color::Rgb(red, green, blue)
}

fn session_head(width: u16) -> Line<'static> {
    let name = name_width(width);
    let text = format!(
        "{:<name$} {:>8} {:>6} {:>9}  {}",
        "session", "rate/s", "share", "memory", "waits for"
    );
    Line::styled(cut(&text, usize::from(width)), Style::new().add_modifier(Modifier::BOLD))
}

fn session_line(
    session: &SessionStatus,
    model: &Model,
    now: Duration,
    width: u16,
) -> Line<'static> {
    let (name, rates) = (name_width(width), model.rates(session));
    let text = format!(
        "{:<name$} {:>8} {:>5.0}% {:>9}  {}",
        cut(&session.name, name),
        number(rates.instructions),
        100.0 * rates.share,
        held(model.status.as_ref().is_some_and(Status::has_reports), session.bytes),
        waits(session, now)
    );
    Line::raw(cut(&text, usize::from(width)))
}

const fn name_width(width: u16) -> usize {
    if width < 60 { 8 } else { 16 }
}

/// What a session waits for, in words.
pub fn waits(session: &SessionStatus, now: Duration) -> String {
    match &session.waits {
        Waits::Nothing => "-".into(),
        Waits::Workers => "a worker to come".into(),
        Waits::Room => format!("room for {} instructions", number(session.queued as f64)),
        Waits::Work if session.open == 1 => "1 instruction to run".into(),
        Waits::Work => format!("{} instructions to run", number(session.open as f64)),
        Waits::Value { tensor, worker, since } => {
            let seconds = now.saturating_sub(*since).as_secs_f64();
            format!("tensor {tensor} of {worker}, {seconds:.1} s")
        }
    }
}

/// As many letters as there is room for.
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
    use gt_ir::status::Report;
    use gt_ir::{TensorId, WorkerId};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::text;
    use super::*;

    fn status(now: u64, busy: u64) -> Status {
        let now = Duration::from_secs(now);
        let mut report = Report { at: now, engine: "native".into(), ..Report::default() };
        report.bytes = 3 << 20;
        report.busy[Activity::Matmul as usize] = Duration::from_millis(busy);
        report.busy[Activity::Elementwise as usize] = Duration::from_millis(busy / 2);
        let worker = |number: u32| WorkerStatus {
            id: WorkerId(number),
            number,
            name: format!("gpu{number}"),
            homes: 1,
            in_flight: 1234,
            batches: 3,
            busy_since: None,
            busy: Duration::ZERO,
            report: report.clone(),
        };
        let value = Waits::Value {
            tensor: TensorId(7),
            worker: "gpu1".into(),
            since: now - Duration::from_millis(1500),
        };
        let session = |number, waits| SessionStatus {
            number,
            name: format!("anna#{number}"),
            since: Duration::ZERO,
            instructions: 5000 * now.as_secs(),
            open: 12,
            queued: 300,
            bytes: 2 << 30,
            busy: Duration::from_millis(busy),
            waits,
        };
        Status {
            asker: None,
            now,
            workers: (0..3).map(worker).collect(),
            sessions: vec![session(1, Waits::Room), session(2, value)],
            dropped: 0,
        }
    }

    fn model() -> Model {
        let mut model = Model::new(1.0);
        model.take(status(3600, 0));
        model.take(status(3601, 500));
        model
    }

    /// What a screen of a size shows.
    fn screen(width: u16, height: u16, keys: &Keys, trouble: Option<&str>) -> String {
        let model = model();
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let shown = Shown { model: &model, keys, title: "server localhost:9000", trouble };
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
        check("help", &screen(80, 16, &Keys { has_help: true, ..Keys::default() }, None));
    }

    #[test]
    fn one_moment_as_text_and_for_programs() {
        check("once", &text::plain(&model(), "server localhost:9000"));
        check("once-json", &text::json(&model(), "server localhost:9000"));
        // Nobody has told of anything yet.
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
