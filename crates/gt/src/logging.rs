//! Messages on stderr, emitted through [`tracing`] so that a program can redirect them.
//!
//! Warnings are always shown, others on request: `GT_VERBOSE` (connections, refusals, unknown
//! signals), `GT_DEBUG_CLIENT`, `GT_DEBUG_WORKER` and `GT_DEBUG_DISPATCHER` (commands),
//! `GT_DEBUG_COMPILE`. A Rust program calls [`start`], or sets a subscriber of its own; the targets
//! are `gt::client`, `gt::worker` and `gt::compile`.

use std::fmt;
use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;

use crate::environment;

/// Installs a subscriber that writes to stderr, unless the program has set one. The Python package does so
/// when it is imported. In Rust the subscriber is the program's: sessions install none.
pub fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let lines =
            tracing_subscriber::fmt::layer().with_writer(std::io::stderr).event_format(EventFormat);
        let subscriber = tracing_subscriber::registry().with(wanted()).with(lines);
        // An error means that the program has set its own.
        let _ = tracing::subscriber::set_global_default(subscriber);
    });
}

/// The filter that the environment configures.
fn wanted() -> Targets {
    let set = |name| environment::is_set(name);
    let mut wanted = Targets::new().with_default(LevelFilter::WARN);
    if set("GT_VERBOSE") {
        wanted = wanted.with_target("gt", LevelFilter::INFO);
        // These are enabled by GT_DEBUG_COMPILE only.
        wanted = wanted.with_target("gt::compile", LevelFilter::WARN);
    }
    if set("GT_DEBUG_COMPILE") {
        wanted = wanted.with_target("gt::compile", LevelFilter::INFO);
    }
    let everything = set("GT_DEBUG_DISPATCHER");
    for (target, name) in [("gt::client", "GT_DEBUG_CLIENT"), ("gt::worker", "GT_DEBUG_WORKER")] {
        if everything || set(name) {
            wanted = wanted.with_target(target, LevelFilter::DEBUG);
        }
    }
    wanted
}

/// Formats an event as `gt: warning: message`. Lines of the instruction log have no prefix.
struct EventFormat;

impl<S, N> FormatEvent<S, N> for EventFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut message = MessageText(String::new());
        event.record(&mut message);
        let is_line = matches!(event.metadata().target(), "gt::client" | "gt::worker");
        let head = match *event.metadata().level() {
            _ if is_line => "",
            Level::ERROR | Level::WARN => "gt: warning: ",
            _ => "gt: ",
        };
        writeln!(writer, "{head}{}", message.0)
    }
}

/// An event's text.
struct MessageText(String);

impl Visit for MessageText {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
