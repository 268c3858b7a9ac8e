//! The table of workers: a line for each, with its time as a bar.

use gt_ir::event::Activity;
use gt_ir::gpu::GpuStatus;
use gt_ir::status::WorkerStatus;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::super::model::Shares;
use super::cut;
use crate::timeline::Colour;
use crate::words::{UNKNOWN, bytes, held, number};

/// The widths of the columns; a narrow screen omits some.
struct ColumnWidths {
    name: usize,
    engine: usize,
    bar: usize,
    has_memory: bool,
    /// Whether the column of bytes on disk fits.
    has_disk: bool,
    /// Whether there are GPUs, and their columns fit.
    has_gpu: bool,
}

/// The widths of the columns of a GPU's use, and of its memory.
const GPU: (usize, usize) = (6, 19);

impl ColumnWidths {
    fn of(width: u16, has_gpus: bool) -> ColumnWidths {
        let width = usize::from(width);
        let (name, engine) = match width {
            ..60 => (10, 0),
            60..100 => (14, 0),
            _ => (18, 9),
        };
        let has_memory = width >= 56;
        let has_disk = width >= 76;
        let has_gpu = has_gpus && width >= 100;
        let beside = name
            + 1
            + engine
            + 6
            + 9
            + 10 * [has_memory, has_disk].map(usize::from).iter().sum::<usize>()
            + usize::from(has_gpu) * (GPU.0 + GPU.1);
        ColumnWidths {
            name,
            engine,
            bar: width.saturating_sub(beside).max(4),
            has_memory,
            has_disk,
            has_gpu,
        }
    }
}

/// The names of the columns.
pub(super) fn head(width: u16, has_gpus: bool) -> Line<'static> {
    let columns = ColumnWidths::of(width, has_gpus);
    let ColumnWidths { name, engine, bar, has_memory, has_disk, has_gpu } = columns;
    let mut text = format!("{:<name$} ", "worker");
    if engine > 0 {
        text += &format!("{:<engine$}", "engine");
    }
    text += &format!("{:<bar$}{:>6}{:>9}", "time", "idle", "queue");
    if has_memory {
        text += &format!("{:>10}", "memory");
    }
    if has_disk {
        text += &format!("{:>10}", "disk");
    }
    if has_gpu {
        let (wide, wider) = GPU;
        text += &format!("{:>wide$}{:>wider$}", "gpu", "gpu memory");
    }
    Line::styled(text, Style::new().add_modifier(Modifier::BOLD))
}

pub(super) fn line(
    worker: &WorkerStatus,
    shares: Shares,
    width: u16,
    has_gpus: bool,
) -> Line<'static> {
    let columns = ColumnWidths::of(width, has_gpus);
    let ColumnWidths { name, engine, bar, has_memory, has_disk, has_gpu } = columns;
    let mut spans = vec![match worker.is_draining {
        false => Span::raw(format!("{:<name$} ", cut(&worker.name, name))),
        true => {
            let text = format!("{} (draining)", worker.name);
            Span::styled(format!("{:<name$} ", cut(&text, name)), Style::new().fg(Color::Yellow))
        }
    }];
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
            held(worker.report.is_received(), worker.report.bytes)
        )));
    }
    if has_disk {
        let on_disk = worker.report.spilled_bytes + worker.report.snapshot_disk_bytes;
        spans.push(Span::raw(format!("{:>10}", held(worker.report.is_received(), on_disk))));
    }
    if has_gpu {
        spans.push(Span::raw(gpu(worker.report.gpu.as_ref())));
    }
    Line::from(spans)
}

/// The use of a worker's GPU, and of its memory.
fn gpu(gpu: Option<&GpuStatus>) -> String {
    let (wide, wider) = GPU;
    let reading = gpu.and_then(|gpu| gpu.reading).unwrap_or_default();
    let percent = reading.percent.map_or(UNKNOWN.into(), |percent| format!("{percent}%"));
    let memory = reading.memory;
    let memory = memory
        .map_or(UNKNOWN.into(), |memory| format!("{}/{}", bytes(memory.used), bytes(memory.total)));
    format!("{percent:>wide$}{memory:>wider$}")
}

/// A worker's time as a bar: each activity as wide as its share, idle time as dots.
fn bar_of(shares: Shares, width: usize) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    let (mut done, mut drawn) = (0.0, 0);
    let reported = Activity::ALL.into_iter().zip(shares.of);
    let reported = reported.map(|(activity, share)| (share, "█", colour(activity)));
    for (share, sign, colour) in reported.chain([(shares.untold, "▒", Color::Gray)]) {
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

/// The colours of the bars.
pub(super) fn legend(width: u16) -> Line<'static> {
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

/// The same colour as in pictures of timelines.
fn colour(activity: Activity) -> Color {
    let [red, green, blue] = Colour::of(activity).rgb();
    Color::Rgb(red, green, blue)
}
