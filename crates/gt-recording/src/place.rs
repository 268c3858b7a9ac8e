//! Where a session is computed, as far as a replay must know it.

use std::time::{Duration, Instant};

use gt_client::Driver;
use gt_ir::message::Reply;
use gt_ir::{ClientCommand, RequestId, record};

/// The request for the workers of a server, which no client reaches by counting.
const REQUEST: RequestId = RequestId((1 << 48) - 1);

/// How long a session waits for the workers' answer when it begins to record.
const LIMIT: Duration = Duration::from_secs(2);

/// Where a session was computed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecordedPlace {
    /// A description for people.
    pub description: String,
    /// The engine of the workers; empty if it is not known.
    pub engine: String,
    /// The number of workers when the session began; 0 if it is not known.
    pub workers: u32,
    /// Whether they were a server's, rather than in the program's process.
    pub is_remote: bool,
}

record!(struct RecordedPlace { description, engine, workers, is_remote });

impl RecordedPlace {
    /// Returns the place of a session on a server, which is asked for its workers.
    pub fn of_server(driver: &dyn Driver) -> RecordedPlace {
        let begun = Instant::now();
        driver.submit(&mut vec![ClientCommand::Statistics { request: REQUEST }], 0);
        let answer = driver.wait(REQUEST, &mut || begun.elapsed() > LIMIT);
        let workers = match answer.map(|answer| answer.result) {
            Ok(Ok(Reply::Statistics(workers))) => workers,
            _ => Vec::new(),
        };
        let engine = workers.first().map(|worker| worker.engine.clone()).unwrap_or_default();
        RecordedPlace {
            description: driver.describe(),
            // Of workers with several engines, none is that of all values.
            engine: match workers.iter().all(|worker| worker.engine == engine) {
                true => engine,
                false => String::new(),
            },
            workers: workers.len() as u32,
            is_remote: true,
        }
    }
}
