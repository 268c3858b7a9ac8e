//! Requests about publications.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gt_ir::message::{FoundPublication, Reply};
use gt_ir::{ClientCommand, Publish, SessionId, SourceId, TensorData, TensorId};

use super::Session;
use super::request::error_in;
use crate::driver::Interrupt;
use crate::error::{ClientError, Result};

/// How many publications may be unfinished, as far as the client knows: before the next one it waits
/// for the oldest.
const MOST_UNFINISHED: usize = 64;

impl Session {
    /// Publishes tensors; returns the name with user and version, which can be found once the server
    /// has stored them.
    ///
    /// # Errors
    /// The name or the audience is not valid, a quota is exceeded, the connection was lost, or
    /// `interrupt` ended the wait.
    pub(crate) fn publish_values(&self, publish: Publish, interrupt: Interrupt) -> Result<String> {
        loop {
            let names = lock(&self.0.unfinished);
            let Some(oldest) = names.front().filter(|_| names.len() >= MOST_UNFINISHED) else {
                break;
            };
            let oldest = oldest.clone();
            drop(names);
            self.finish(&oldest, &mut *interrupt)?;
        }
        let publish = |request| Box::new(Publish { request, ..publish });
        let request = self.request(|request| ClientCommand::Publish(publish(request)))?;
        match self.0.wait(request, interrupt)?.result {
            Ok(Reply::Published { name }) => {
                lock(&self.0.unfinished).push_back(name.clone());
                Ok(name)
            }
            Err(failure) => Err(ClientError::Usage(format!("publish: {}", failure.reason))),
            other => Err(error_in(other, SourceId::default())),
        }
    }

    /// Finds a publication; waits until it can be read.
    ///
    /// # Errors
    /// There is none of this name that the user may read, the connection was lost, or `interrupt`
    /// ended the wait.
    pub(crate) fn find(&self, name: &str, interrupt: Interrupt) -> Result<FoundPublication> {
        let name = name.to_string();
        let request = self.request(|request| ClientCommand::Find { request, name })?;
        match self.0.wait(request, interrupt)?.result {
            Ok(Reply::Found(found)) => Ok(*found),
            Err(failure) => Err(ClientError::Usage(format!("shared: {}", failure.reason))),
            other => Err(error_in(other, SourceId::default())),
        }
    }

    /// Returns whether the values of publications that it reads are recorded.
    pub(crate) fn records_published(&self) -> bool {
        self.0.driver.records_published()
    }

    /// Records the values of a tensor of a publication.
    pub(crate) fn record_published(&self, of: SessionId, index: TensorId, values: TensorData) {
        self.0.driver.record_published(of, index, values);
    }

    /// Withdraws a publication of the user's, or all of its versions. Returns how many.
    ///
    /// # Errors
    /// There is none of this name, the connection was lost, or `interrupt` ended the wait.
    pub fn unpublish(&self, name: &str, interrupt: Interrupt) -> Result<u32> {
        let name = name.to_string();
        let request = self.request(|request| ClientCommand::Withdraw { request, name })?;
        match self.0.wait(request, interrupt)?.result {
            Ok(Reply::Withdrawn { versions }) => Ok(versions),
            Err(failure) => Err(ClientError::Usage(format!("unpublish: {}", failure.reason))),
            other => Err(error_in(other, SourceId::default())),
        }
    }

    /// Waits until the server has stored what the session has published: it would be given up when
    /// the session ends.
    ///
    /// # Errors
    /// The connection was lost, or `interrupt` ended the wait.
    pub fn finish_publications(&self, interrupt: Interrupt) -> Result<()> {
        loop {
            let Some(name) = lock(&self.0.unfinished).front().cloned() else { return Ok(()) };
            self.finish(&name, &mut *interrupt)?;
        }
    }

    /// Waits until the server has stored a publication; one that was withdrawn, or could not be
    /// stored, is not awaited.
    fn finish(&self, name: &str, interrupt: Interrupt) -> Result<()> {
        match self.find(name, interrupt) {
            Ok(_) | Err(ClientError::Usage(_)) => {
                lock(&self.0.unfinished).retain(|other| other != name);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

fn lock(names: &Mutex<VecDeque<String>>) -> MutexGuard<'_, VecDeque<String>> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}
