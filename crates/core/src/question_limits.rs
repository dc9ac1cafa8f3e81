//! Limits on the questions of servers: per call and per minute, and budgets for sampling that a
//! rule allows without a person.
//!
//! A server asks inside the calls of clients, as often as it likes, and each question costs a
//! client, a person, the disk or money. The counts are kept in memory: a restart of the gateway
//! resets the budgets.

use std::{
    collections::HashMap,
    fmt::Write as _,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::json;
use switchboard_approvals::Usage;
use switchboard_base::{
    audit::{Audit, Event},
    error::codes,
    events::Events,
    metrics::label,
    scrub,
};
use switchboard_client::{ErrorObject, throttle::Limited};
use switchboard_config::{Approvals, Budget};
use switchboard_outbound::questions::{CallCount, Exceeded};
use switchboard_rest::events::QuestionEvent;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
const MINUTE: Duration = Duration::from_mins(1);
/// The most servers with an account of their own. Further servers share one.
const ACCOUNTS_MAX: usize = 1_000;

/// The accounts of all servers.
#[derive(Debug)]
pub struct QuestionLimits {
    accounts: Mutex<HashMap<Arc<str>, Account>>,
    events: Events,
    audit: Arc<Audit>,
    told: Limited,
}

/// The usage of one server. The current time is an argument.
#[derive(Debug, Default)]
struct Account {
    /// Time when the token bucket for questions is full again.
    rested_at: Option<Instant>,
    hour: Window,
    day: Window,
    places: Option<(usize, Arc<Semaphore>)>,
    questions: u64,
    refused: u64,
    sampled: u64,
    tokens: u64,
}

/// The most that a request to a model may cost.
#[derive(Debug)]
pub(crate) struct Charge {
    at: Instant,
    /// Estimated tokens of the request.
    input: u64,
    output: u64,
    cost: f64,
}

impl Charge {
    pub(crate) fn new(input: u64, output: u64, cost: f64) -> Self {
        Self {
            at: Instant::now(),
            input,
            output,
            cost,
        }
    }

    fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// The usage since a window began.
#[derive(Debug, Default)]
struct Window {
    began: Option<Instant>,
    requests: u64,
    tokens: u64,
    cost: f64,
}

impl Window {
    /// The window at this time; a new one if the last has ended.
    fn at(&mut self, now: Instant, length: Duration) -> &mut Self {
        if self.began.is_none_or(|began| now >= began + length) {
            *self = Self {
                began: Some(now),
                ..Self::default()
            };
        }
        self
    }
}

impl Account {
    /// Counts a question; an error if there were too many in the last minute.
    fn question(&mut self, now: Instant, per_minute: u64) -> Result<(), Exceeded> {
        let cost = MINUTE / u32::try_from(per_minute.max(1)).unwrap_or(u32::MAX);
        let rested_at = self.rested_at.unwrap_or(now).max(now) + cost;
        if rested_at.duration_since(now) > MINUTE {
            return Err(Exceeded::new("approvals.questionsPerMinute", per_minute));
        }
        self.rested_at = Some(rested_at);
        self.questions += 1;
        Ok(())
    }

    /// Counts a sampling request; an error if a budget is used up.
    fn sample(&mut self, now: Instant, budget: &Budget) -> Result<(), Exceeded> {
        let hour = self.hour.at(now, HOUR);
        let day = self.day.at(now, DAY);
        let most = [
            (
                hour.requests,
                budget.requests_per_hour,
                "sampling.budget.requestsPerHour",
            ),
            (
                day.requests,
                budget.requests_per_day,
                "sampling.budget.requestsPerDay",
            ),
            (
                hour.tokens,
                budget.tokens_per_hour,
                "sampling.budget.tokensPerHour",
            ),
            (
                day.tokens,
                budget.tokens_per_day,
                "sampling.budget.tokensPerDay",
            ),
        ];
        for (spent, most, key) in most {
            if spent >= most {
                return Err(Exceeded::new(key, most));
            }
        }
        if let Some(most) = budget.cost_per_day
            && day.cost >= most
        {
            let key = "sampling.budget.costPerDay";
            return Err(Exceeded { key, most });
        }
        self.count_sample(now);
        Ok(())
    }

    fn count_sample(&mut self, now: Instant) {
        self.sampled += 1;
        self.hour.at(now, HOUR).requests += 1;
        self.day.at(now, DAY).requests += 1;
    }

    fn spend(&mut self, now: Instant, tokens: u64, cost: f64) {
        for window in [self.hour.at(now, HOUR), self.day.at(now, DAY)] {
            window.tokens = window.tokens.saturating_add(tokens);
            window.cost += cost;
        }
    }

    /// Takes back a charge from the windows that contain it.
    fn refund(&mut self, now: Instant, charge: &Charge) {
        for window in [self.hour.at(now, HOUR), self.day.at(now, DAY)] {
            if window.began.is_some_and(|began| began <= charge.at) {
                window.tokens = window.tokens.saturating_sub(charge.tokens());
                window.cost = (window.cost - charge.cost).max(0.0);
            }
        }
    }

    /// The semaphore for requests that no person approves.
    fn places(&mut self, concurrent: usize) -> Arc<Semaphore> {
        match &self.places {
            Some((size, places)) if *size == concurrent => Arc::clone(places),
            _ => {
                let places = Arc::new(Semaphore::new(concurrent));
                self.places = Some((concurrent, Arc::clone(&places)));
                places
            }
        }
    }
}

impl QuestionLimits {
    /// Limits without any usage. Refusals are published as events and recorded in the audit log.
    pub(crate) fn new(events: Events, audit: Arc<Audit>) -> Self {
        Self {
            accounts: Mutex::default(),
            events,
            audit,
            told: Limited::default(),
        }
    }

    /// Counts a question of a server that a person or a model is to answer, because each is
    /// recorded durably, or that belongs to no call. Questions that a client answers during a call
    /// are limited per call.
    pub(crate) fn question(&self, server: &Arc<str>, settings: &Approvals) -> Result<(), Exceeded> {
        let per_minute = settings.questions_per_minute;
        self.with(server, |account| {
            account.question(Instant::now(), per_minute)
        })
    }

    /// Counts a sampling request that no person approves. Waits for a slot, which is free again
    /// when the permit is dropped.
    pub(crate) async fn sample(
        &self,
        server: &Arc<str>,
        budget: &Budget,
        call: &CallCount,
        prompt_bytes: usize,
    ) -> Result<Option<OwnedSemaphorePermit>, Exceeded> {
        if prompt_bytes as u64 > budget.prompt_bytes {
            return Err(Exceeded::new(
                "sampling.budget.promptBytes",
                budget.prompt_bytes,
            ));
        }
        let per_call = budget.requests_per_call;
        if call.sampled.fetch_add(1, Relaxed) >= per_call {
            return Err(Exceeded::new("sampling.budget.requestsPerCall", per_call));
        }
        let places = self.with(server, |account| account.places(budget.concurrent));
        // The semaphore is never closed.
        let place = places.acquire_owned().await.ok();
        self.with(server, |account| account.sample(Instant::now(), budget))?;
        Ok(place)
    }

    /// Counts a request that a person approved.
    pub(crate) fn approved(&self, server: &Arc<str>) {
        self.with(server, |account| account.count_sample(Instant::now()));
    }

    /// Counts the highest possible cost of a request to a model before it is sent: a request that
    /// is withdrawn later has been sent all the same.
    pub(crate) fn charge(&self, server: &Arc<str>, charge: &Charge) {
        self.with(server, |account| {
            account.spend(charge.at, charge.tokens(), charge.cost);
        });
    }

    /// Replaces the estimate by the actual cost of a request that was answered. Where the model
    /// does not report it, the estimate stays.
    pub(crate) fn settle(&self, server: &Arc<str>, charge: &Charge, usage: &Usage) {
        let input = usage.input_tokens.unwrap_or(charge.input);
        let tokens = input.saturating_add(usage.output_tokens.unwrap_or(charge.output));
        let cost = usage.cost.unwrap_or(charge.cost);
        let now = Instant::now();
        self.with(server, |account| {
            account.refund(now, charge);
            account.spend(now, tokens, cost);
            account.tokens = account.tokens.saturating_add(tokens);
        });
    }

    /// Takes back the charge of a request that cost nothing.
    pub(crate) fn refund(&self, server: &Arc<str>, charge: &Charge) {
        self.with(server, |account| account.refund(Instant::now(), charge));
    }

    /// Records a refusal, and returns the error for the server.
    pub(crate) fn refuse(
        &self,
        server: &Arc<str>,
        question: &str,
        exceeded: Exceeded,
    ) -> ErrorObject {
        self.with(server, |account| account.refused += 1);
        let Exceeded { key, most } = exceeded;
        let details = json!({ "server": &**server, "question": scrub::brief(question), "limit": key, "most": most });
        self.told.report(|missed| {
            self.events.tell("question.refused", || QuestionEvent {
                limit: key.to_owned(),
                missed,
                most,
                question: scrub::brief(question),
                server: server.to_string(),
            });
        });
        self.audit.record(Event {
            what: "refused",
            subject: Arc::clone(server),
            actor: None,
            details,
        });
        let message = format!("refused: the limit `{key}` of {most} is reached");
        ErrorObject::new(codes::BUSY, message)
    }

    /// Renders the numbers in the Prometheus text format.
    pub fn render(&self) -> String {
        let accounts = self.accounts.lock();
        let mut text = String::new();
        let mut counter = |name: &str, help: &str, number: fn(&Account) -> u64| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter");
            for (server, account) in &*accounts {
                let label = label("server", server);
                let _ = writeln!(text, "{name}{{{label}}} {}", number(account));
            }
        };
        counter(
            "switchboard_questions_total",
            "Questions from servers that the gateway forwarded.",
            |account| account.questions,
        );
        counter(
            "switchboard_questions_refused_total",
            "Questions from servers that the gateway refused, because they exceeded a limit.",
            |account| account.refused,
        );
        counter(
            "switchboard_sampling_requests_total",
            "Requests from servers to the configured model.",
            |account| account.sampled,
        );
        counter(
            "switchboard_sampling_tokens_total",
            "Input and output tokens of the configured model.",
            |account| account.tokens,
        );
        text
    }

    fn with<T>(&self, server: &Arc<str>, change: impl FnOnce(&mut Account) -> T) -> T {
        let mut accounts = self.accounts.lock();
        let known = accounts.len() < ACCOUNTS_MAX || accounts.contains_key(server);
        let name = if known {
            Arc::clone(server)
        } else {
            "other".into()
        };
        change(accounts.entry(name).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking() -> (tempfile::TempDir, QuestionLimits) {
        let folder = tempfile::tempdir().unwrap();
        let store = switchboard_store::Store::open(folder.path().join("store"));
        let audit = Arc::new(Audit::start(store));
        (folder, QuestionLimits::new(Events::default(), audit))
    }

    fn budget() -> Budget {
        Budget {
            requests_per_hour: 5,
            requests_per_day: 8,
            tokens_per_hour: 1_000,
            tokens_per_day: 1_500,
            cost_per_day: Some(2.0),
            ..Budget::default()
        }
    }

    fn sampled(account: &mut Account, now: Instant, tries: usize) -> (usize, Option<&'static str>) {
        let mut refused = None;
        let admitted = (0..tries).filter(|_| {
            let outcome = account.sample(now, &budget());
            refused = outcome.err().map(|exceeded| exceeded.key);
            outcome.is_ok()
        });
        (admitted.count(), refused)
    }

    #[test]
    fn questions_beyond_minute_limit_are_refused() {
        let began = Instant::now();
        let mut account = Account::default();
        let asked = |account: &mut Account, now| {
            (0..1_000)
                .filter(|_| account.question(now, 30).is_ok())
                .count()
        };
        assert_eq!(asked(&mut account, began), 30);
        assert_eq!(asked(&mut account, began), 0);
        assert_eq!(asked(&mut account, began + Duration::from_secs(10)), 5);
        let day =
            (1..=24 * 60 * 6).map(|n| asked(&mut account, began + Duration::from_secs(10 * n)));
        assert!(
            day.sum::<usize>() <= 30 * 60 * 24 + 30,
            "one minute's worth in any minute"
        );
    }

    #[test]
    fn hourly_and_daily_budgets_limit_requests() {
        let began = Instant::now();
        let mut account = Account::default();
        let hour = "sampling.budget.requestsPerHour";
        assert_eq!(sampled(&mut account, began, 20), (5, Some(hour)));
        let later = began + HOUR;
        let day = "sampling.budget.requestsPerDay";
        assert_eq!(sampled(&mut account, later, 20), (3, Some(day)));
        assert_eq!(sampled(&mut account, began + DAY, 4), (4, None));
    }

    #[test]
    fn spent_tokens_and_money_limit_requests() {
        let began = Instant::now();
        let mut account = Account::default();
        assert_eq!(sampled(&mut account, began, 1), (1, None));
        account.spend(began, 1_000, 0.5);
        let hour = "sampling.budget.tokensPerHour";
        assert_eq!(sampled(&mut account, began, 3), (0, Some(hour)));
        let second = began + HOUR;
        assert_eq!(sampled(&mut account, second, 1), (1, None));
        account.spend(second, 499, 1.5);
        let money = "sampling.budget.costPerDay";
        assert_eq!(sampled(&mut account, second, 1), (0, Some(money)));
        let third = began + 2 * HOUR;
        account.spend(third, 1, 0.0);
        let day = "sampling.budget.tokensPerDay";
        assert_eq!(sampled(&mut account, third, 1), (0, Some(day)));
    }

    #[tokio::test]
    async fn estimate_counts_until_cost_is_known() {
        let (_folder, asking) = asking();
        let server: Arc<str> = "a".into();
        let spent = |asking: &QuestionLimits| {
            asking.with(&server, |account| {
                (account.hour.tokens, account.day.cost, account.tokens)
            })
        };
        let usage = |input_tokens, output_tokens, cost| Usage {
            model: "m".into(),
            input_tokens,
            output_tokens,
            cost,
            seconds: 1.0,
        };
        let withdrawn = Charge::new(100, 50, 1.0);
        asking.charge(&server, &withdrawn);
        assert_eq!(spent(&asking), (150, 1.0, 0));
        let answered = Charge::new(100, 50, 1.0);
        asking.charge(&server, &answered);
        asking.settle(&server, &answered, &usage(Some(7), Some(3), Some(0.5)));
        assert_eq!(spent(&asking), (160, 1.5, 10));
        let untold = Charge::new(10, 5, 0.5);
        asking.charge(&server, &untold);
        asking.settle(&server, &untold, &usage(None, None, None));
        assert_eq!(spent(&asking), (175, 2.0, 25));
        let unsent = Charge::new(1_000, 500, 9.0);
        asking.charge(&server, &unsent);
        asking.refund(&server, &unsent);
        assert_eq!(spent(&asking), (175, 2.0, 25));
    }

    #[test]
    fn refund_applies_only_to_charged_window() {
        let mut account = Account::default();
        let charge = Charge::new(900, 0, 0.0);
        account.spend(charge.at, 900, 0.0);
        let later = charge.at + HOUR;
        account.spend(later, 100, 0.0);
        account.refund(later, &charge);
        assert_eq!((account.hour.tokens, account.day.tokens), (100, 100));
    }

    #[test]
    fn questions_are_limited_per_call() {
        let call = CallCount::default();
        let settings = Approvals::default();
        let asked = (0..100).filter(|_| call.question(&settings).is_ok());
        assert_eq!(asked.count(), 20);
    }

    #[tokio::test]
    async fn sampling_waits_for_free_slot() {
        let (_folder, asking) = asking();
        let (server, call): (Arc<str>, _) = ("a".into(), CallCount::default());
        let budget = Budget::default();
        let one = asking.sample(&server, &budget, &call, 10).await.unwrap();
        let _two = asking.sample(&server, &budget, &call, 10).await.unwrap();
        let mut third = std::pin::pin!(asking.sample(&server, &budget, &call, 10));
        let soon = tokio::time::timeout(Duration::from_millis(20), &mut third);
        assert!(soon.await.is_err(), "two at a time");
        drop(one);
        assert!(third.await.is_ok());
        let long = asking.sample(&server, &budget, &call, 1 << 20).await;
        assert_eq!(long.unwrap_err().key, "sampling.budget.promptBytes");
    }
}
