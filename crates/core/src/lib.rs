//! What is done with a request: dispatch, rules, calls, approvals.

pub mod answer;
pub mod approvals;
pub mod call;
pub mod core;
pub mod dispatch;
pub mod finder;
pub mod question_limits;
pub mod relay;
pub mod search_feedback;
pub mod session;
pub mod shown;
pub mod suspended;
pub mod translate;
pub mod trust_requests;
