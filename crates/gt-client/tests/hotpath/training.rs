//! The share of a training loop that is sent by invocations.

use crate::hotpath::issuer::{Issuer, Receiver, number, tensor};

/// Issues a training step: replaces the parameters, and returns the loss.
fn training_step(issuer: &mut Issuer, parameters: &mut [u64], data: u64, rate: f64) -> u64 {
    let mut x = data;
    let mut hidden = Vec::new();
    for (layer, &parameter) in parameters.iter().enumerate() {
        x = issuer.add(layer as u32, x, tensor(parameter));
        hidden.push(x);
    }
    let loss = issuer.add(50, x, number(1.0));
    for (layer, parameter) in parameters.iter_mut().enumerate() {
        let gradient = issuer.add(60, hidden[layer], tensor(loss));
        let step = issuer.add(61, gradient, number(rate));
        let new = issuer.add(62, *parameter, tensor(step));
        issuer.free(gradient);
        issuer.free(step);
        issuer.free(std::mem::replace(parameter, new));
    }
    hidden.into_iter().for_each(|id| issuer.free(id));
    loss
}

/// Runs training steps; returns the share of instructions sent by invocations, from the tenth step
/// on, and the receiver. `between` runs after each step, with its number and loss.
fn share_of_hot(steps: usize, mut between: impl FnMut(&mut Issuer, usize, u64)) -> (f64, Receiver) {
    let mut issuer = Issuer::new();
    let data = issuer.create(8);
    let mut parameters: Vec<u64> = (0..4).map(|_| issuer.create(8)).collect();
    let mut last = None;
    let mut before = issuer.detector.get_stats();
    for step in 0..steps {
        if step == 9 {
            before = issuer.detector.get_stats();
        }
        let rate = 0.1 / (1.0 + step as f64);
        let loss = training_step(&mut issuer, &mut parameters, data, rate);
        if let Some(last) = last.replace(loss) {
            issuer.free(last);
        }
        between(&mut issuer, step, loss);
    }
    let after = issuer.detector.get_stats();
    let hot = after.hot_instructions - before.hot_instructions;
    let all = after.total_instructions - before.total_instructions;
    (hot as f64 / all as f64, issuer.finish())
}

#[test]
fn a_training_loop_is_hot_by_its_tenth_step() {
    let (share, receiver) = share_of_hot(40, |_, _, _| {});
    assert_eq!(share, 1.0);
    // One message for each step.
    assert!(receiver.invocations <= 36, "{}", receiver.invocations);
}

#[test]
fn fetching_the_loss_leaves_it_hot() {
    let (share, _) = share_of_hot(40, |issuer, _, loss| issuer.fetch(loss));
    assert_eq!(share, 1.0);
    let (share, _) = share_of_hot(40, |issuer, step, loss| {
        if step % 3 == 0 {
            issuer.fetch(loss);
        }
    });
    assert_eq!(share, 1.0);
}

#[test]
fn occasional_evaluation_leaves_it_hot() {
    let mut others = Vec::new();
    let (share, _) = share_of_hot(60, |issuer, step, loss| {
        if step % 5 == 4 {
            let a = issuer.add(70, loss, number(1.0));
            let b = issuer.add(71, a, number(2.0));
            issuer.fetch(b);
            others.extend([a, b]);
            if others.len() > 8 {
                others.drain(..).for_each(|id| issuer.free(id));
            }
        }
    });
    assert!(share > 0.95, "{share}");
}

#[test]
fn occasional_steps_of_another_kind_leave_it_hot() {
    // A smaller last batch, once an epoch.
    let mut issuer = Issuer::new();
    let (data, small) = (issuer.create(8), issuer.create(6));
    let mut parameters: Vec<u64> = (0..4).map(|_| issuer.create(8)).collect();
    let mut others: Vec<u64> = (0..4).map(|_| issuer.create(6)).collect();
    for step in 0..120 {
        let loss = if step % 12 == 11 {
            training_step(&mut issuer, &mut others, small, 0.1)
        } else {
            training_step(&mut issuer, &mut parameters, data, 0.1)
        };
        issuer.free(loss);
    }
    let stats = issuer.detector.get_stats();
    let share = stats.hot_instructions as f64 / stats.total_instructions as f64;
    assert!(share > 0.85, "{share}");
    issuer.finish();
}

#[test]
fn metrics_after_the_loss_leave_it_hot() {
    let (share, receiver) = share_of_hot(60, |issuer, _, loss| {
        issuer.fetch(loss);
        let a = issuer.add(70, loss, number(1.0));
        let b = issuer.add(71, a, number(2.0));
        issuer.fetch(b);
        [a, b].into_iter().for_each(|id| issuer.free(id));
    });
    assert!(share > 0.95, "{share}");
    assert!(receiver.templates.len() <= 4, "{} templates", receiver.templates.len());
}

#[test]
fn a_wait_after_every_two_commands_prevents_templates() {
    let mut issuer = Issuer::new();
    let x = issuer.create(8);
    for _ in 0..200 {
        let a = issuer.add(1, x, number(1.0));
        let b = issuer.add(2, a, number(2.0));
        issuer.fetch(b);
        [a, b].into_iter().for_each(|id| issuer.free(id));
    }
    let stats = issuer.detector.get_stats();
    assert!(stats.hot_instructions < 40, "{stats:?}");
    issuer.finish();
}

#[test]
fn most_instructions_of_a_training_loop_repeat_the_previous_step() {
    let mut issuer = Issuer::new();
    let data = issuer.create(8);
    let mut parameters: Vec<u64> = (0..4).map(|_| issuer.create(8)).collect();
    for _ in 0..40 {
        let loss = training_step(&mut issuer, &mut parameters, data, 0.1);
        issuer.free(loss);
    }
    let all = issuer.detector.get_stats().total_instructions as usize;
    assert!(issuer.repeated > all / 2, "{} of {all}", issuer.repeated);
    issuer.finish();
}
