//! Every schedule that once found a bug, as a regression test.

use std::fs;

use switchboard_machine::Machine;
use switchboard_simulation::{Coverage, Schedule, try_run};

#[test]
fn regressions_do_not_fail_again() {
    let mut played = 0;
    for file in fs::read_dir("tests/schedules").unwrap() {
        let path = file.unwrap().path();
        let schedule: Schedule = fs::read_to_string(&path).unwrap().parse().unwrap();
        if let Err(broken) = try_run::<Machine>(&schedule, &mut Coverage::default()) {
            panic!("{}: {broken}", path.display());
        }
        played += 1;
    }
    assert!(played > 0, "the schedules are not where they should be");
}
