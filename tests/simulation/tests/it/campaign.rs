//! Random schedules.

use switchboard_machine::Machine;
use switchboard_simulation::{Campaign, Progress, schedule, trace};

#[test]
fn thirty_thousand_schedules_pass_with_full_coverage() {
    let campaign = Campaign {
        first_seed: 0,
        schedules: 30_000,
        threads: 2,
    };
    let outcome = campaign.run::<Machine>(&Progress::default());
    if let Some(failure) = outcome.failure {
        panic!("{}\n{}", failure.shrunk.broken, failure.shrunk.schedule);
    }
    assert_eq!(outcome.schedules, 30_000);
    assert_eq!(outcome.coverage.missing(), []);
    assert_eq!(outcome.coverage.impossible(), []);
}

#[test]
fn same_schedule_has_the_same_trace() {
    for seed in 0..500 {
        let schedule = schedule(seed);
        let (first, again) = (trace::<Machine>(&schedule), trace::<Machine>(&schedule));
        assert_eq!(first.0, again.0, "seed {seed}");
        for (line, other) in first.1.iter().zip(&again.1) {
            assert_eq!(line, other, "seed {seed}");
        }
    }
}
