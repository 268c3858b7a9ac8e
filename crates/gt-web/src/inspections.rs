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

/// The answers that are fresh, by session and by whether a step was to be explained.
#[derive(Default)]
pub struct Answers(HashMap<(SessionId, bool), (Instant, Inspected)>);

impl Answers {
    /// Answers the questions that wait by asking a dispatcher: of several about one session, only one
    /// is asked.
    pub fn answer_all(
        &mut self,
        questions: &Questions,
        mut ask: impl FnMut(SessionId, bool) -> Result<Result<Inspection, String>, String>,
    ) {
        let waiting = std::mem::take(&mut *questions.lock());
        let mut lost: Option<Inspected> = None;
        for Question { session, explain, answer } in waiting {
            // A reader who has gone needs none, and a dispatcher that does not answer one question
            // is not asked the others.
            if answer.is_closed() {
                continue;
            }
            if let Some(lost) = &lost {
                let _ = answer.send(lost.clone());
                continue;
            }
            self.0.retain(|_, (at, _)| at.elapsed() < FRESH);
            let known = self.0.get(&(session, explain));
            let inspected = known.map(|(_, inspected)| inspected.clone());
            let inspected = inspected.unwrap_or_else(|| {
                let inspected = match ask(session, explain) {
                    Ok(Ok(details)) => {
                        Inspected::Details(Bytes::from(inspection::json(&details).to_string()))
                    }
                    Ok(Err(reason)) => Inspected::Refused(reason),
                    Err(reason) => Inspected::Lost(reason),
                };
                self.0.insert((session, explain), (Instant::now(), inspected.clone()));
                inspected
            });
            lost = Some(&inspected).filter(|of| matches!(of, Inspected::Lost(_))).cloned();
            let _ = answer.send(inspected);
        }
    }
}
