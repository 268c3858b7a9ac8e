//! Model-checks the hand-over of work between the threads of an embedded runtime, over random
//! schedules: `cargo test -p gt --features model --test handover`.
#![cfg(feature = "model")]

use std::sync::Arc;
use std::time::Duration;

use gt::drivers::embedded::handover::{Mailbox, Parker};
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use shuttle::thread;

const SCHEDULES: usize = 5_000;

/// Not reached: a model has no time.
const LIMIT: Duration = Duration::from_secs(3600);

#[test]
fn each_message_is_worked_on_once_and_those_of_a_thread_in_order() {
    shuttle::check_random(
        || {
            let mailbox = Arc::new(Mailbox::new(Vec::<(usize, usize)>::new()));
            let threads: Vec<_> = (0..3)
                .map(|thread| {
                    let mailbox = Arc::clone(&mailbox);
                    thread::spawn(move || {
                        for message in 0..3 {
                            mailbox.put((thread, message));
                            mailbox.work(|done, messages| done.extend(messages));
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            // Threads that found another one at work have left their messages to it.
            assert!(mailbox.is_empty());
            let done = mailbox.state();
            assert_eq!(done.len(), 9);
            for thread in 0..3 {
                let of_thread = done.iter().filter(|(of, _)| *of == thread);
                assert!(of_thread.map(|(_, message)| *message).eq(0..3), "{done:?}");
            }
        },
        SCHEDULES,
    );
}

#[test]
fn only_one_thread_at_a_time_works_on_the_state() {
    shuttle::check_random(
        || {
            let mailbox = Arc::new(Mailbox::<(), usize>::new(()));
            let at_work = Arc::new(AtomicBool::new(false));
            let threads: Vec<_> = (0..3)
                .map(|thread| {
                    let (mailbox, at_work) = (Arc::clone(&mailbox), Arc::clone(&at_work));
                    thread::spawn(move || {
                        let guarded = || {
                            assert!(!at_work.swap(true, Ordering::SeqCst));
                            thread::yield_now();
                            at_work.store(false, Ordering::SeqCst);
                        };
                        mailbox.put(thread);
                        mailbox.work(|(), _| guarded());
                        mailbox.try_state(|()| guarded());
                        mailbox.try_work(|(), _| guarded());
                        // Messages that arrived meanwhile are left to the next `work`.
                        mailbox.work(|(), _| guarded());
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert!(mailbox.is_empty());
        },
        SCHEDULES,
    );
}

#[test]
fn a_parked_thread_misses_no_work() {
    shuttle::check_random(
        || {
            const MESSAGES: usize = 4;
            let mailbox = Arc::new(Mailbox::<usize, ()>::new(0));
            let parker = Arc::new(Parker::default());
            let worker = {
                let (mailbox, parker) = (Arc::clone(&mailbox), Arc::clone(&parker));
                thread::spawn(move || {
                    parker.register();
                    // The checker detects a lost wakeup: the thread would sleep forever.
                    while *mailbox.state() < MESSAGES {
                        if !mailbox.work(|count, messages| *count += messages.len()) {
                            parker.park(LIMIT, || !mailbox.is_empty());
                        }
                    }
                })
            };
            let issuers: Vec<_> = (0..2)
                .map(|_| {
                    let (mailbox, parker) = (Arc::clone(&mailbox), Arc::clone(&parker));
                    thread::spawn(move || {
                        for _ in 0..MESSAGES / 2 {
                            mailbox.put(());
                            parker.unpark();
                        }
                    })
                })
                .collect();
            issuers.into_iter().for_each(|thread| thread.join().unwrap());
            worker.join().unwrap();
            assert_eq!(*mailbox.state(), MESSAGES);
        },
        SCHEDULES,
    );
}

/// Threads that wait for their own answers and do the work themselves, beside a worker's thread.
#[test]
fn threads_that_wait_do_not_starve_one_another() {
    shuttle::check_random(
        || {
            const ASKERS: usize = 2;
            let answers = Arc::new(Mutex::new([false; ASKERS]));
            let mailbox = Arc::new(Mailbox::<(), usize>::new(()));
            let parker = Arc::new(Parker::default());
            let left = Arc::new(AtomicUsize::new(ASKERS));
            let answer = |answers: &Mutex<[bool; ASKERS]>, questions: Vec<usize>| {
                for question in questions {
                    answers.lock().unwrap()[question] = true;
                }
            };
            let worker = {
                let (mailbox, parker) = (Arc::clone(&mailbox), Arc::clone(&parker));
                let (answers, left) = (Arc::clone(&answers), Arc::clone(&left));
                thread::spawn(move || {
                    parker.register();
                    while left.load(Ordering::SeqCst) > 0 {
                        if !mailbox.work(|(), questions| answer(&answers, questions)) {
                            parker.park(LIMIT, || {
                                !mailbox.is_empty() || left.load(Ordering::SeqCst) == 0
                            });
                        }
                    }
                })
            };
            let askers: Vec<_> = (0..ASKERS)
                .map(|asker| {
                    let (mailbox, parker) = (Arc::clone(&mailbox), Arc::clone(&parker));
                    let (answers, left) = (Arc::clone(&answers), Arc::clone(&left));
                    thread::spawn(move || {
                        mailbox.put(asker);
                        while !answers.lock().unwrap()[asker] {
                            mailbox.work(|(), questions| answer(&answers, questions));
                            thread::yield_now();
                        }
                        left.fetch_sub(1, Ordering::SeqCst);
                        parker.unpark();
                    })
                })
                .collect();
            askers.into_iter().for_each(|thread| thread.join().unwrap());
            worker.join().unwrap();
        },
        SCHEDULES,
    );
}
