//! The handling of a request: dispatch, rules, calls, approvals.

pub mod approvals;
pub mod call;
pub mod core;
pub mod dispatch;
pub mod finder;
pub mod list_fingerprints;
pub mod question_limits;
mod relay;
mod roots;
pub mod scope;
pub mod search_feedback;
pub mod session;
mod suspended;
pub mod tokens;
pub mod tool_result;
mod translate;
pub mod trust_requests;
pub mod visitors;
