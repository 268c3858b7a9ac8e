//! One watcher for all readers: it asks a dispatcher while anybody reads, and not at all otherwise.
//!
//! Each answer is encoded once. Readers share its bytes, and a reader that is slow misses answers;
//! nothing waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use bytes::Bytes;
use gt_ir::SessionId;
use gt_ir::status::Status;
use gt_ir::status::inspection::Inspection;
use gt_tools::top::{Model, json};
use tokio::sync::watch;

use crate::inspections::{Answers, Inspected, Questions};
use crate::recordings::recorder::EventRecorder;

/// How often a dispatcher is asked while there are readers, and how often where that takes long.
const EVERY: Duration = Duration::from_millis(500);
const SELDOM: Duration = Duration::from_secs(2);
/// The time between two answers is at least this multiple of what one takes. Sending and encrypting
/// them takes about as much again, so that all of it takes less than a hundredth of a core.
const TIMES: u32 = 250;
/// How long it is asked after the last reader has gone: one who comes back continues, and rates
/// need two answers.
const LINGER: Duration = Duration::from_secs(8);
/// The pause before it is asked again after an error.
const AGAIN: Duration = Duration::from_secs(2);
/// The longest sleep without readers, who wake the watcher.
const SLEEP: Duration = Duration::from_secs(60);
/// The weight of the newest measurement in rates.
const ALPHA: f64 = 0.3;
/// How long the end of the watcher is awaited: it may wait for an answer.
const END: Duration = Duration::from_secs(1);

/// What a feed watches. Its functions may wait, for limited times.
pub trait StatusSource: Send + 'static {
    /// Returns the status, after connecting if need be.
    ///
    /// # Errors
    /// The dispatcher cannot be reached; the next call connects again.
    fn status(&mut self) -> Result<Status, String>;

    /// Returns the details of a session, after connecting if need be. With `explain`, what it
    /// computes next is explained. The inner error says why the session is not shown.
    ///
    /// # Errors
    /// As of [`StatusSource::status`].
    fn inspect(
        &mut self,
        session: SessionId,
        explain: bool,
    ) -> Result<Result<Inspection, String>, String>;

    /// Ends the connection: no status is needed for a while.
    fn rest(&mut self);

    /// What is watched, for display.
    fn title(&self) -> String;

    /// Returns what records it.
    fn recorder(&self) -> Arc<dyn EventRecorder>;

    /// The user whose sessions are shown first: by a key, empty for none, and by an account.
    fn reader(&self) -> (String, String);
}

/// An answer of the dispatcher, or the error instead of it.
#[derive(Debug)]
pub struct Update {
    /// As a server-sent event.
    pub event: Bytes,
    pub status: Option<Status>,
}

/// The newest update; none without readers.
pub type Latest = Option<Arc<Update>>;

/// The watcher's thread.
#[derive(Debug)]
pub struct Feed {
    latest: Arc<watch::Sender<Latest>>,
    questions: Questions,
    is_stopping: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// By which readers subscribe.
#[derive(Clone, Debug)]
pub struct Subscription {
    latest: Arc<watch::Sender<Latest>>,
    questions: Questions,
    thread: Thread,
}

impl Feed {
    /// Starts a watcher of a source, which sleeps until there is a reader.
    ///
    /// # Errors
    /// The system starts no thread.
    pub fn start(source: impl StatusSource) -> std::io::Result<Feed> {
        let latest = Arc::new(watch::Sender::new(None));
        let is_stopping = Arc::new(AtomicBool::new(false));
        let questions = Questions::default();
        let mut watcher = FeedThread {
            source,
            questions: questions.clone(),
            answers: Answers::default(),
            model: Model::new(ALPHA),
            latest: latest.clone(),
            is_stopping: is_stopping.clone(),
        };
        let builder = std::thread::Builder::new().name("gt-web-feed".into());
        let thread = builder.spawn(move || watcher.run())?;
        Ok(Feed { latest, questions, is_stopping, thread })
    }

    /// Returns that by which readers subscribe.
    pub fn subscription(&self) -> Subscription {
        let (latest, questions) = (self.latest.clone(), self.questions.clone());
        Subscription { latest, questions, thread: self.thread.thread().clone() }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::Release);
        self.thread.thread().unpark();
        let until = Instant::now() + END;
        while !self.thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Subscription {
    /// Adds a reader, who also gets the newest update if there is one.
    pub fn subscribe(&self) -> watch::Receiver<Latest> {
        let mut receiver = self.latest.subscribe();
        if receiver.borrow().is_some() {
            receiver.mark_changed();
        }
        self.thread.unpark();
        receiver
    }

    /// Returns the details of a session, within a time; `None` if there are too many questions.
    pub async fn inspect(
        &self,
        session: SessionId,
        explain: bool,
        within: Duration,
    ) -> Option<Inspected> {
        let answer = self.questions.ask(session, explain)?;
        self.thread.unpark();
        let late = || Inspected::Lost("it does not answer".into());
        match tokio::time::timeout(within, answer).await {
            Ok(Ok(inspected)) => Some(inspected),
            Ok(Err(_)) | Err(_) => Some(late()),
        }
    }

    /// Returns the next update, within a time.
    pub async fn next(&self, within: Duration) -> Latest {
        let mut receiver = self.subscribe();
        let found = receiver.wait_for(Option::is_some);
        let found = tokio::time::timeout(within, found).await.ok()?.ok()?;
        found.clone()
    }
}

struct FeedThread<S> {
    source: S,
    questions: Questions,
    answers: Answers,
    model: Model,
    latest: Arc<watch::Sender<Latest>>,
    is_stopping: Arc<AtomicBool>,
}

impl<S: StatusSource> FeedThread<S> {
    fn run(&mut self) {
        let mut last_reader: Option<Instant> = None;
        while !self.is_stopping() {
            if self.latest.receiver_count() > 0 || self.questions.are_waiting() {
                last_reader = Some(Instant::now());
            }
            if last_reader.is_none_or(|last| last.elapsed() > LINGER) {
                self.rest();
                std::thread::park_timeout(SLEEP);
                continue;
            }
            let begin = Instant::now();
            let pause = self.ask();
            self.sleep_until(begin + pause);
        }
    }

    /// Asks once, and returns when to do so again.
    fn ask(&mut self) -> Duration {
        let begin = Instant::now();
        // The first answer takes a connection, too.
        let is_first = self.model.status.is_none();
        match self.source.status() {
            Ok(status) => {
                self.model.take(status.clone());
                let event = self.status_event();
                self.latest.send_replace(Some(Arc::new(Update { event, status: Some(status) })));
                if is_first { EVERY } else { (begin.elapsed() * TIMES).clamp(EVERY, SELDOM) }
            }
            Err(error) => {
                self.model = Model::new(ALPHA);
                let lost = serde_json::json!({"dispatcher": self.source.title(), "error": error});
                let event = event("lost", &lost);
                self.latest.send_replace(Some(Arc::new(Update { event, status: None })));
                AGAIN
            }
        }
    }

    fn status_event(&self) -> Bytes {
        let mut status = json::status(&self.model, &self.source.title());
        let (user, login) = self.source.reader();
        status["reader"] = serde_json::json!({"user": user, "login": login});
        event("status", &status)
    }

    /// Readers that come later do not get what is old by then.
    fn rest(&mut self) {
        if self.latest.send_replace(None).is_some() {
            self.source.rest();
            self.model = Model::new(ALPHA);
        }
    }

    /// New readers wake the thread, but do not have it ask earlier. Questions about sessions are
    /// answered meanwhile.
    fn sleep_until(&mut self, due: Instant) {
        loop {
            let source = &mut self.source;
            let ask = |session, explain| source.inspect(session, explain);
            self.answers.answer_all(&self.questions, ask);
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_stopping() {
                return;
            }
            std::thread::park_timeout(left);
        }
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }
}

/// Returns a server-sent event. JSON has no line breaks, which would end its data.
fn event(name: &str, data: &serde_json::Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}
