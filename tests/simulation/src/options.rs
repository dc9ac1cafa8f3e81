//! The command-line options.

use std::{num::NonZero, path::PathBuf, thread};

use switchboard_simulation::Campaign;

pub(crate) const USAGE: &str = "\
usage: switchboard-simulation [--schedules N] [--seed N] [--threads N]
       switchboard-simulation --seed N [--trace]
       switchboard-simulation --replay FILE [--trace]

Plays random schedules against the connection machine. If one breaks an invariant, prints the
smallest schedule that does so, and exits with 1.

  --schedules N   how many to play (100000, or only one if a seed is given)
  --seed N        the first seed (0)
  --threads N     on how many threads (one a core)
  --replay FILE   play the schedule in this file
  --trace         print every event and action of the one schedule that is played
  --subject NAME  play against machine (the default), or against one with a mistake: answers-twice,
                  acts-on-stale, forgets-deadline, forgets-stream, logs-late, sends-again,
                  overtakes, arms-closed
";

pub(crate) enum Request {
    Run(Options),
    Help,
}

pub(crate) struct Options {
    pub(crate) task: Task,
    pub(crate) trace: bool,
    pub(crate) subject: String,
}

pub(crate) enum Task {
    Campaign(Campaign),
    Seed(u64),
    Replay(PathBuf),
}

impl Options {
    pub(crate) fn read(mut words: impl Iterator<Item = String>) -> Result<Request, String> {
        let (mut schedules, mut seed, mut threads, mut file) = (None, None, None, None);
        let (mut trace, mut subject) = (false, "machine".to_owned());
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} wants a value"));
            match word.as_str() {
                "--schedules" => schedules = Some(number(&value()?)?),
                "--seed" => seed = Some(number(&value()?)?),
                "--threads" => threads = Some(number(&value()?)?),
                "--replay" => file = Some(PathBuf::from(value()?)),
                "--subject" => subject = value()?,
                "--trace" => trace = true,
                "-h" | "--help" => return Ok(Request::Help),
                _ => return Err(format!("what is {word}?")),
            }
        }
        let task = match (file, schedules, seed) {
            (Some(file), None, None) => Task::Replay(file),
            (Some(_), ..) => return Err("a file has its own seed and is one schedule".to_owned()),
            (None, None, Some(seed)) => Task::Seed(seed),
            (None, schedules, seed) => {
                let cores = thread::available_parallelism().map_or(1, NonZero::get);
                Task::Campaign(Campaign {
                    first_seed: seed.unwrap_or(0),
                    schedules: schedules.unwrap_or(100_000),
                    threads: threads
                        .map_or(cores, |threads| usize::try_from(threads).unwrap_or(cores)),
                })
            }
        };
        let one = !matches!(task, Task::Campaign(_));
        if trace && !one {
            return Err("--trace is for one schedule".to_owned());
        }
        Ok(Request::Run(Self {
            task,
            trace,
            subject,
        }))
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.replace('_', "")
        .parse()
        .map_err(|_| format!("not a number: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(line: &str) -> Result<Task, String> {
        match Options::read(line.split_whitespace().map(str::to_owned))? {
            Request::Run(options) => Ok(options.task),
            Request::Help => Err("help".to_owned()),
        }
    }

    #[test]
    fn seed_alone_means_one_schedule() {
        assert!(matches!(task("--seed 7"), Ok(Task::Seed(7))));
        assert!(matches!(task("--replay x"), Ok(Task::Replay(_))));
        let Ok(Task::Campaign(campaign)) = task("--schedules 1_000 --seed 7 --threads 3") else {
            panic!("no campaign");
        };
        let (first, many) = (campaign.first_seed, campaign.schedules);
        assert_eq!((first, many, campaign.threads), (7, 1_000, 3));
    }

    #[test]
    fn invalid_options_are_refused() {
        for line in [
            "--seed",
            "--seed x",
            "--replay x --seed 1",
            "--trace",
            "--what",
        ] {
            assert!(task(line).is_err(), "{line}");
        }
    }
}
