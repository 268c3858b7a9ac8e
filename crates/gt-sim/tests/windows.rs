//! Device time over windows, in virtual time: sums hold, and a seed gives the same windows again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gt_client::Tensor;
use gt_dispatcher::Limits;
use gt_dispatcher::rules::{PolicyRule, Rules};
use gt_ir::status::{Status, WindowUse};
use gt_sim::{Delays, World, driver};

const WILD: Delays = Delays { least: 1, most: 50_000 };

/// Runs sessions of two users on workers, of which one session ends early; returns the status.
fn run(seed: u64, workers: usize) -> Status {
    let world = Arc::new(Mutex::new(World::new(seed, workers, WILD, Limits::default())));
    let share = |share| PolicyRule { share: Some(share), ..PolicyRule::default() };
    let users = [("ada".into(), share(1)), ("eve".into(), share(3))].into();
    world.lock().unwrap().set_rules(Rules { users, ..Rules::default() });
    let (ends, client) = driver::connect_as(&world, "ada");
    let stay: Vec<_> =
        ["ada", "eve"].iter().map(|user| driver::connect_as(&world, user).0).collect();
    let work = |session| {
        let x = Tensor::ones(session, &[8, 8]).unwrap();
        (0..20).fold(x, |x, _| x.matmul(&x).unwrap().mul(0.1).unwrap())
    };
    for round in 0..10 {
        let last: Vec<Tensor> = stay.iter().map(work).collect();
        if round == 3 {
            let unread = work(&ends);
            unread.fetch().unwrap();
            work(&ends);
            world.lock().unwrap().kill_client(client);
        }
        last.iter().for_each(|tensor| drop(tensor.fetch().unwrap()));
    }
    stay[0].ask_status().unwrap().wait(&mut || false).unwrap()
}

fn sum(windows: impl Iterator<Item = WindowUse>) -> WindowUse {
    windows.fold(WindowUse::default(), |mut sum, window| {
        sum += window;
        sum
    })
}

#[test]
fn all_entitlements_are_the_time_in_which_workers_had_commands() {
    for seed in 0..30 {
        let status = run(seed, 1 + seed as usize % 3);
        assert!(status.now < Duration::from_secs(600), "all is in the longest window");
        let busy: Duration = status.workers.iter().map(|worker| worker.busy).sum();
        let used: Duration = status.users.iter().map(|user| user.busy).sum();
        let of_users = sum(status.users.iter().map(|user| user.windows[2]));
        let of_teams = sum(status.teams.iter().map(|team| team.windows[2]));
        assert_eq!(of_users, of_teams);
        assert_eq!(of_users.used, used, "seed {seed}");
        assert!(busy > Duration::ZERO && used > Duration::ZERO, "seed {seed}");
        // Each session loses less than a nanosecond at a time.
        let missing = busy.abs_diff(of_users.entitled);
        assert!(missing < Duration::from_micros(1), "seed {seed}: {missing:?} of {busy:?}");
    }
}

#[test]
fn a_seed_gives_the_same_windows_again() {
    for seed in 0..5 {
        let windows = |status: Status| -> Vec<_> {
            status.sessions.into_iter().map(|session| session.windows).collect()
        };
        assert_eq!(windows(run(seed, 2)), windows(run(seed, 2)), "seed {seed}");
    }
}
