//! Readers' questions about single sessions, which the watcher's thread passes on to the dispatcher.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use gt_ir::SessionId;
use gt_ir::status::inspection::Inspection;
use gt_tools::inspection;
use tokio::sync::oneshot;

/// For how long an answer is given to further readers.
const FRESH: Duration = Duration::from_millis(400);
/// The number of questions that wait; others are refused.
const WAITING: usize = 64;

/// What is known of a session.
#[derive(Clone, Debug)]
pub enum Inspected {
    /// Its details, as JSON.
    Details(Bytes),
    /// Why the dispatcher does not show it.
    Refused(String),
    /// Why the dispatcher does not answer.
    Lost(String),
}

/// The questions that wait for the watcher's thread.
#[derive(Clone, Debug, Default)]
pub struct Questions(Arc<Mutex<Vec<Question>>>);

#[derive(Debug)]
struct Question {
    session: SessionId,
    explain: bool,
    answer: oneshot::Sender<Inspected>,
}

impl Questions {
    /// Adds a question; `None` if too many wait.
    pub fn ask(&self, session: SessionId, explain: bool) -> Option<oneshot::Receiver<Inspected>> {
        let mut waiting = self.lock();
        waiting.retain(|question| !question.answer.is_closed());
        if waiting.len() >= WAITING {
            return None;
        }
        let (answer, receiver) = oneshot::channel();
        waiting.push(Question { session, explain, answer });
        Some(receiver)
    }

    /// Returns whether any waits.
    pub fn are_waiting(&self) -> bool {
        !self.lock().is_empty()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Question>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answers that are fresh, by session.
#[derive(Default)]
pub struct Answers(HashMap<SessionId, (Instant, Inspected)>);

impl Answers {
    /// Answers the questions that wait by asking a dispatcher: of several about one session, only one
    /// is asked.
    pub fn answer_all(
        &mut self,
        questions: &Questions,
        mut ask: impl FnMut(SessionId, bool) -> Result<Result<Inspection, String>, String>,
    ) {
        let waiting = std::mem::take(&mut *questions.lock());
        for Question { session, explain, answer } in waiting {
            self.0.retain(|_, (at, _)| at.elapsed() < FRESH);
            let known = self.0.get(&session).filter(|_| !explain);
            let inspected = known.map(|(_, inspected)| inspected.clone());
            let inspected = inspected.unwrap_or_else(|| {
                let inspected = match ask(session, explain) {
                    Ok(Ok(details)) => {
                        Inspected::Details(Bytes::from(inspection::json(&details).to_string()))
                    }
                    Ok(Err(reason)) => Inspected::Refused(reason),
                    Err(reason) => Inspected::Lost(reason),
                };
                self.0.insert(session, (Instant::now(), inspected.clone()));
                inspected
            });
            // A reader who has gone needs none.
            let _ = answer.send(inspected);
        }
    }
}
