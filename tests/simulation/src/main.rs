//! `switchboard-simulation`: plays random schedules against the connection machine until one fails or all
//! have passed. Data goes to stdout, messages to stderr.

mod options;

use std::{
    fs,
    io::{self, IsTerminal, Write},
    process::ExitCode,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use options::{Options, Request, Task, USAGE};
use switchboard_machine::Machine;
use switchboard_simulation::{
    Broken, Campaign, Coverage, Failure, Outcome, Progress, Schedule, Subject, broken, schedule,
    trace, try_run,
};

fn main() -> ExitCode {
    let options = match Options::read(std::env::args().skip(1)) {
        Ok(Request::Run(options)) => options,
        Ok(Request::Help) => return say(&mut io::stdout(), USAGE),
        Err(error) => {
            let _ = write!(io::stderr(), "error: {error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    // A panic of the machine is reported like every other failure, with its schedule. Hundreds of panic
    // messages during shrinking would only hide it.
    std::panic::set_hook(Box::new(|_| {}));
    let done = match options.subject.as_str() {
        "machine" => perform::<Machine>(&options),
        "answers-twice" => perform::<broken::With<broken::AnswersTwice>>(&options),
        "acts-on-stale" => perform::<broken::With<broken::ActsOnStale>>(&options),
        "forgets-deadline" => perform::<broken::With<broken::ForgetsDeadline>>(&options),
        "forgets-stream" => perform::<broken::With<broken::ForgetsStream>>(&options),
        "logs-late" => perform::<broken::With<broken::LogsLate>>(&options),
        "sends-again" => perform::<broken::With<broken::SendsAgain>>(&options),
        "overtakes" => perform::<broken::With<broken::Overtakes>>(&options),
        "arms-closed" => perform::<broken::With<broken::ArmsClosed>>(&options),
        other => Err(format!("no such subject: {other}").into()),
    };
    done.unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "error: {error}");
        ExitCode::FAILURE
    })
}

type Done = Result<ExitCode, Box<dyn std::error::Error>>;

fn perform<S: Subject>(options: &Options) -> Done {
    match &options.task {
        Task::Campaign(campaign) => run_campaign::<S>(campaign),
        Task::Seed(seed) => replay::<S>(&schedule(*seed), options.trace),
        Task::Replay(file) => {
            let text = fs::read_to_string(file)
                .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
            let schedule: Schedule = text.parse()?;
            replay::<S>(&schedule, options.trace)
        }
    }
}

fn replay<S: Subject>(schedule: &Schedule, with_trace: bool) -> Done {
    let mut out = io::stdout().lock();
    if with_trace {
        let (_, lines) = trace::<S>(schedule);
        for line in lines {
            writeln!(out, "{line}")?;
        }
    }
    match try_run::<S>(schedule, &mut Coverage::default()) {
        Ok(summary) => {
            writeln!(
                io::stderr(),
                "passed: {} steps, {} events",
                summary.steps,
                summary.events
            )?;
            Ok(ExitCode::SUCCESS)
        }
        Err(broken) => {
            let shrunk = switchboard_simulation::shrink::<S>(schedule);
            let smallest = shrunk.as_ref().map_or(schedule, |shrunk| &shrunk.schedule);
            let why = shrunk.as_ref().map_or(&broken, |shrunk| &shrunk.broken);
            report(smallest, schedule.steps.len(), why)?;
            Ok(ExitCode::FAILURE)
        }
    }
}

fn run_campaign<S: Subject>(campaign: &Campaign) -> Done {
    let progress = Progress::default();
    let start = Instant::now();
    let outcome = thread::scope(|scope| {
        let (done, finished) = mpsc::channel();
        let (campaign, progress) = (*campaign, &progress);
        scope.spawn(move || {
            // The receiver lives until the result arrives.
            let _ = done.send(campaign.run::<S>(progress));
        });
        wait_for(&finished, campaign.schedules, progress, start)
    });
    let outcome = outcome.ok_or("the simulation itself failed")?;
    if let Some(Failure { schedule, shrunk }) = &outcome.failure {
        report(&shrunk.schedule, schedule.steps.len(), &shrunk.broken)?;
        return Ok(ExitCode::FAILURE);
    }
    summarize(&outcome, campaign, start.elapsed())
}

/// Waits for the end, and shows progress if stderr is a terminal.
fn wait_for(
    finished: &mpsc::Receiver<Outcome>,
    schedules: u64,
    progress: &Progress,
    start: Instant,
) -> Option<Outcome> {
    let shown = io::stderr().is_terminal();
    loop {
        match finished.recv_timeout(Duration::from_secs(2)) {
            Ok(outcome) => return Some(outcome),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) if shown => {
                let (done, seconds) = (progress.schedules(), start.elapsed().as_secs().max(1));
                let percent = done * 100 / schedules.max(1);
                let rate = done / seconds;
                let _ = writeln!(
                    io::stderr(),
                    "{done} of {schedules} schedules ({percent} %), {rate} a second"
                );
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn summarize(outcome: &Outcome, campaign: &Campaign, took: Duration) -> Done {
    /// Fewer schedules than this cannot be expected to cover everything.
    const ENOUGH: u64 = 20_000;
    let mut out = io::stdout().lock();
    let (totals, seconds) = (&outcome.totals, took.as_secs_f64());
    #[expect(clippy::cast_precision_loss, reason = "a rate for a person")]
    let rate = outcome.schedules as f64 / seconds;
    writeln!(
        out,
        "schedules  {} from seed {}",
        outcome.schedules, campaign.first_seed
    )?;
    writeln!(out, "steps      {}", totals.steps)?;
    writeln!(out, "events     {}", totals.events)?;
    writeln!(out, "actions    {}", totals.actions)?;
    writeln!(
        out,
        "calls      {}, of which {} answered",
        totals.calls, totals.answered
    )?;
    writeln!(out, "ready      {} times", totals.ready)?;
    writeln!(
        out,
        "time       {seconds:.1} s, {rate:.0} schedules a second on {} threads",
        campaign.threads
    )?;
    let (hit, all) = outcome.coverage.totals();
    writeln!(
        out,
        "coverage   {hit} of {all} pairs of state and event\n\n{}",
        outcome.coverage
    )?;
    let mut code = ExitCode::SUCCESS;
    for (phase, happening) in outcome.coverage.missing() {
        if outcome.schedules >= ENOUGH {
            writeln!(
                io::stderr(),
                "error: never met: {} while {}",
                happening.word(),
                phase.word()
            )?;
            code = ExitCode::FAILURE;
        }
    }
    for (phase, happening) in outcome.coverage.impossible() {
        writeln!(
            io::stderr(),
            "error: out of reach, and met: {} while {}",
            happening.word(),
            phase.word()
        )?;
        code = ExitCode::FAILURE;
    }
    Ok(code)
}

fn report(smallest: &Schedule, steps: usize, why: &Broken) -> io::Result<()> {
    let mut talk = io::stderr().lock();
    writeln!(talk, "error: {why}")?;
    let (seed, left) = (smallest.seed, smallest.steps.len());
    writeln!(
        talk,
        "  seed {seed}, shrunk from {steps} steps to {left}:\n"
    )?;
    write!(io::stdout(), "# {why}\n{smallest}")?;
    io::stdout().flush()?;
    writeln!(
        talk,
        "\nhint: save that as FILE and run `switchboard-simulation --replay FILE --trace`"
    )
}

fn say(out: &mut impl Write, text: &str) -> ExitCode {
    match out.write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
