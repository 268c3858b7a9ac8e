//! Derives a world from a seed: its size, links, sessions and faults.

use std::time::Duration;

use crate::Delays;
use crate::chance::Chance;
use crate::faults::{Fault, NoticeDelay};

/// The parameters of a world.
#[derive(Debug)]
pub struct Schedule {
    pub workers: usize,
    pub delays: Delays,
    /// Whether engines have a fabric.
    pub joins: bool,
    /// Whether engines have long calls that can be paused.
    pub pauses: bool,
    /// Whether the worker connects only as the first sessions begin.
    pub late: bool,
    /// The weight that may be in flight to a lane.
    pub lane_window: u64,
    /// The bytes of memory of each worker; tensors beyond spill to disk.
    pub memory: Option<u64>,
    /// The limit of a session's log, in bytes.
    pub lineage: Option<u64>,
    /// Whether the dispatcher keeps a journal.
    pub journal: bool,
    /// The workers that each session uses.
    pub sessions: Vec<Vec<u32>>,
    /// The number of steps of all programs together.
    pub steps: u64,
    /// Faults, each after a number of messages.
    pub faults: Vec<(u64, Fault)>,
    /// Whether each session is unaffected by all faults.
    pub calm: Vec<bool>,
}

impl Schedule {
    pub fn new(seed: u64) -> Schedule {
        let mut chance = Chance::new(seed ^ 0xC4A0_5000_0000_0000);
        let workers = 1 + chance.below(4) as usize;
        let most = [1, 100, 20_000][chance.below(3) as usize];
        // Faults hit workers from this index on only, so sessions that use others are unaffected.
        let spared = if chance.below(2) == 0 { chance.below(workers as u64) as usize } else { 0 };
        let count = 1 + chance.below(3) as usize;
        let mut sessions = Vec::new();
        for _ in 0..count {
            let all: Vec<u32> = (0..workers as u32).collect();
            let (low, high) = all.split_at(spared);
            sessions.push(match chance.below(3) {
                0 if !low.is_empty() => low.to_vec(),
                1 if !low.is_empty() => high.to_vec(),
                _ => all,
            });
        }
        let mut schedule = Schedule {
            workers,
            delays: Delays { least: 1, most },
            joins: chance.below(4) == 0,
            pauses: false,
            late: workers == 1 && chance.below(4) == 0,
            lane_window: [4, 64, 2 << 10][chance.below(3) as usize],
            memory: None,
            lineage: None,
            journal: false,
            sessions,
            steps: 20 + chance.below(40),
            faults: Vec::new(),
            calm: Vec::new(),
        };
        let (mut client_hit, mut others_hit) = (vec![false; count], false);
        for _ in 0..chance.below(4) {
            let fault = schedule.fault(&mut chance, spared);
            match fault {
                Fault::CutClient { client, .. } => client_hit[client] = true,
                Fault::Start => {}
                _ => others_hit = true,
            }
            schedule.faults.push((chance.below(200), fault));
        }
        schedule.faults.sort_by_key(|(at, _)| *at);
        let is_calm = |(index, workers): (usize, &Vec<u32>)| {
            let is_spared = workers.iter().all(|worker| (*worker as usize) < spared);
            !client_hit[index] && (is_spared || !others_hit)
        };
        schedule.memory = seed.is_multiple_of(4).then(|| 512 << chance.below(4));
        schedule.lineage =
            (seed % 4 >= 2 || seed.is_multiple_of(8)).then(|| 4096 << (3 * chance.below(4)));
        schedule.journal = schedule.lineage.is_some() && !schedule.joins && chance.below(2) == 0;
        if schedule.journal {
            for _ in 0..1 + chance.below(3) {
                schedule.faults.push((chance.below(200), Fault::Restart));
            }
            schedule.faults.sort_by_key(|(at, _)| *at);
        }
        schedule.pauses = seed % 3 == 1 && !schedule.joins;
        schedule.calm = schedule.sessions.iter().enumerate().map(is_calm).collect();
        schedule
    }

    fn fault(&self, chance: &mut Chance, spared: usize) -> Fault {
        let among = (self.workers - spared) as u64;
        let worker = spared + chance.below(among) as usize;
        let other = spared + chance.below(among) as usize;
        let client = chance.below(self.sessions.len() as u64) as usize;
        let notice = if chance.below(2) == 0 { NoticeDelay::Soon } else { NoticeDelay::Late };
        let late = Duration::from_micros(chance.below(20_000_000));
        let short = Duration::from_micros(chance.below(200_000));
        let length = if chance.below(2) == 0 { late } else { short };
        match chance.below(10) {
            0 => Fault::Crash { worker, notice, restart: None },
            1 => Fault::Crash { worker, notice, restart: Some(short) },
            2 => Fault::Crash { worker, notice, restart: Some(late) },
            3 => Fault::Leave { worker },
            4 => Fault::CutWorker { worker, notice },
            5 => Fault::CutClient { client, notice },
            6 => Fault::CutPeers { from: worker, to: other, notice },
            7 => {
                let mut workers = [false; 4];
                (workers[worker], workers[other]) = (true, true);
                Fault::Partition { workers, length }
            }
            8 if worker != other => Fault::SlowPeers { from: worker, to: other, length },
            8 => Fault::SlowWorker { worker, length: short },
            _ => Fault::Start,
        }
    }
}
