//! `gt top`: the live view of a cluster in a terminal.
//!
//! - [`model`]: smoothed rates and shares, from successive statuses.
//! - [`view`]: the screen; [`keys`]: the view that the user has chosen by keys.
//! - [`text`]: the same as text, and [`json`]: as JSON, for scripts and the web page, with the past
//!   ([`history`]).

mod history;
pub mod json;
mod keys;
mod model;
mod text;
pub(crate) mod view;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use gt::drivers::watch::Watcher;
use gt_net::registry::{Found, running};
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};

use crate::error::ToolError;
use crate::find::WatchTarget;
use keys::{Action, Keys};
pub use model::Model;

/// How often the dispatcher is polled.
const EVERY: Duration = Duration::from_millis(500);
/// How often keys are polled.
const LOOK: Duration = Duration::from_millis(50);
/// The pause before a failed connection is retried.
const AGAIN: Duration = Duration::from_secs(2);
/// How long the error of a key's command is shown.
const TROUBLE: Duration = Duration::from_secs(4);

/// Options of `gt top`.
#[derive(Clone, Debug)]
pub struct TopOptions {
    pub target: WatchTarget,
    /// The weight of the newest measurement in averages; 1 disables smoothing.
    pub alpha: f64,
    /// Print one status as text and exit.
    pub once: bool,
    /// As JSON.
    pub json: bool,
}

/// Runs until the user quits or `stop` returns true; returns the text to print afterwards.
///
/// # Errors
/// No dispatcher is found, or there is no terminal to draw on.
pub fn run(options: &TopOptions, stop: &mut dyn FnMut() -> bool) -> Result<String, ToolError> {
    if !(options.alpha > 0.0 && options.alpha <= 1.0) {
        let text =
            format!("--ema-alpha is {}, expected a number above 0, 1 at most", options.alpha);
        return Err(ToolError::BadOption(text));
    }
    let watcher = watch_first(&options.target)?;
    if options.once || options.json {
        return once(watcher, options, stop);
    }
    if !std::io::stdout().is_terminal() {
        let text = "the output is no terminal\n  hint: --once shows one moment as text, --once --json for scripts";
        return Err(ToolError::BadOption(text.into()));
    }
    let mut terminal = ratatui::try_init().map_err(terminal_error)?;
    let result = live(&mut terminal, watcher, options, stop);
    ratatui::restore();
    result.map(|()| String::new())
}

/// Of several dispatchers on this machine the first is shown; Tab switches to the next.
fn watch_first(target: &WatchTarget) -> Result<Watcher, ToolError> {
    match target.watch() {
        Err(ToolError::Several { .. }) => {
            let found = running()?;
            let (key_file, insecure) = (target.key_file.as_deref(), target.insecure);
            let attached = found.iter().map(|found| Watcher::attach(found, key_file, insecure));
            let mut failed = None;
            for watcher in attached {
                match watcher {
                    Ok(watcher) => return Ok(watcher),
                    Err(error) => failed = Some(error),
                }
            }
            Err(failed.map_or(ToolError::NobodyHere, ToolError::Link))
        }
        other => other,
    }
}

fn once(
    mut watcher: Watcher,
    options: &TopOptions,
    stop: &mut dyn FnMut() -> bool,
) -> Result<String, ToolError> {
    let mut model = Model::new(1.0);
    model.take(watcher.status()?);
    let until = Instant::now() + EVERY;
    while Instant::now() < until && !stop() {
        std::thread::sleep(LOOK);
    }
    model.take(watcher.status()?);
    Ok(if options.json {
        format!("{:#}\n", json::status(&model, watcher.title()))
    } else {
        text::plain(&model, watcher.title())
    })
}

/// The state of the screen.
struct Screen {
    watcher: Option<Watcher>,
    model: Model,
    keys: Keys,
    title: String,
    /// Why the status is out of date, if it is.
    trouble: Option<String>,
    /// Until when this is shown at least.
    trouble_until: Instant,
}

fn live(
    terminal: &mut ratatui::DefaultTerminal,
    watcher: Watcher,
    options: &TopOptions,
    stop: &mut dyn FnMut() -> bool,
) -> Result<(), ToolError> {
    let title = watcher.title().to_string();
    let mut screen = Screen {
        watcher: Some(watcher),
        model: Model::new(options.alpha),
        keys: Keys::default(),
        title,
        trouble: None,
        trouble_until: Instant::now(),
    };
    let mut due = Instant::now();
    while !stop() {
        if Instant::now() >= due {
            due = Instant::now() + screen.refresh(options);
            screen.draw(terminal)?;
        }
        let mut wait = LOOK;
        while Instant::now() < due && event::poll(wait).map_err(terminal_error)? {
            wait = Duration::ZERO;
            let action = match event::read().map_err(terminal_error)? {
                Event::Key(key) if key.kind != KeyEventKind::Release => screen.press(key),
                Event::Resize(..) => Action::Draw,
                _ => Action::None,
            };
            match action {
                Action::Leave => return Ok(()),
                Action::Next => {
                    screen.next(options);
                    due = Instant::now();
                }
                Action::Draw => screen.draw(terminal)?,
                Action::None => {}
            }
        }
    }
    Ok(())
}

impl Screen {
    /// Handles a key. Scrolling ends at the last worker.
    fn press(&mut self, key: KeyEvent) -> Action {
        let action = self.keys.press(key);
        let workers = self.model.status.as_ref().map_or(0, |status| status.workers.len());
        self.keys.scrolled = self.keys.scrolled.min(workers.saturating_sub(1));
        action
    }

    /// Requests the newest status; returns when to do so again.
    fn refresh(&mut self, options: &TopOptions) -> Duration {
        let Some(watcher) = &mut self.watcher else {
            match watch_first(&options.target) {
                Ok(watcher) => self.show(options, watcher),
                Err(error) => self.trouble = Some(error.to_string()),
            }
            return AGAIN;
        };
        match watcher.status() {
            Ok(status) => {
                // A pause stops the screen only: the dispatcher disconnects a watcher that is
                // silent for long.
                if !self.keys.is_paused {
                    self.model.take(status);
                }
                if Instant::now() >= self.trouble_until {
                    self.trouble = None;
                }
                EVERY
            }
            Err(error) => {
                self.trouble = Some(error.to_string());
                self.watcher = None;
                AGAIN
            }
        }
    }

    fn show(&mut self, options: &TopOptions, watcher: Watcher) {
        self.title = watcher.title().to_string();
        self.watcher = Some(watcher);
        self.model = Model::new(options.alpha);
        self.trouble = None;
    }

    /// Switches to the next dispatcher on this machine.
    fn next(&mut self, options: &TopOptions) {
        let found: Vec<Found> = running().unwrap_or_default();
        if found.is_empty() {
            return;
        }
        let shown = found.iter().position(|found| is_titled(found, &self.title));
        let next = &found[shown.map_or(0, |place| (place + 1) % found.len())];
        let WatchTarget { key_file, insecure, .. } = &options.target;
        match Watcher::attach(next, key_file.as_deref(), *insecure) {
            Ok(watcher) => self.show(options, watcher),
            Err(error) => {
                self.trouble = Some(error.to_string());
                self.trouble_until = Instant::now() + TROUBLE;
            }
        }
    }

    fn draw(&self, terminal: &mut ratatui::DefaultTerminal) -> Result<(), ToolError> {
        let shown = view::View {
            model: &self.model,
            keys: &self.keys,
            title: &self.title,
            trouble: self.trouble.as_deref(),
        };
        terminal.draw(|frame| view::draw(frame, &shown)).map(|_| ()).map_err(terminal_error)
    }
}

/// Returns whether a title is that of a dispatcher.
fn is_titled(found: &Found, title: &str) -> bool {
    match found {
        Found::Server { address, .. } => title == format!("server {address}"),
        Found::Embedded { process, .. } => title
            .strip_prefix(&format!("process {process}"))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')),
    }
}

fn terminal_error(error: std::io::Error) -> ToolError {
    ToolError::BadOption(format!("the terminal cannot be used: {error}"))
}
