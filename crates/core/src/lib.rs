//! The handling of a request: dispatch, rules, calls, approvals.

pub mod answer;
pub mod approvals;
pub mod call;
pub mod core;
pub mod dispatch;
pub mod finder;
pub mod question_limits;
mod relay;
pub mod search_feedback;
pub mod session;
pub mod shown;
mod suspended;
mod translate;
pub mod trust_requests;
