//! Answers that no thread has taken yet.

use gt_ir::RequestId;
use gt_ir::message::Answer;
use rustc_hash::{FxHashMap, FxHashSet};

/// The answers of a session by request. The answer to an interrupted request is dropped on arrival:
/// it may have been in flight when the request was cancelled.
#[derive(Default)]
pub struct SessionAnswers {
    arrived: FxHashMap<RequestId, Answer>,
    abandoned: FxHashSet<RequestId>,
}

impl SessionAnswers {
    pub fn put(&mut self, answer: Answer) {
        if !self.abandoned.remove(&answer.request) {
            self.arrived.insert(answer.request, answer);
        }
    }

    pub fn take(&mut self, request: RequestId) -> Option<Answer> {
        self.arrived.remove(&request)
    }

    /// Marks an answer that no thread waits for any more.
    pub fn abandon(&mut self, request: RequestId) {
        if self.arrived.remove(&request).is_none() {
            self.abandoned.insert(request);
        }
    }
}

#[cfg(test)]
mod tests {
    use gt_ir::message::{Answer, Reply};

    use super::*;

    #[test]
    fn an_answer_that_no_thread_waits_for_is_dropped() {
        let answer = |request| Answer::new(request, Reply::Statistics(Vec::new()));
        let (one, two, three) = (RequestId(1), RequestId(2), RequestId(3));
        let mut answers = SessionAnswers::default();
        answers.put(answer(one));
        answers.abandon(one);
        answers.abandon(two);
        answers.put(answer(two));
        answers.put(answer(three));
        assert!(answers.take(one).is_none() && answers.take(two).is_none());
        assert_eq!(answers.take(three), Some(answer(three)));
        assert!(answers.arrived.is_empty() && answers.abandoned.is_empty());
    }
}
