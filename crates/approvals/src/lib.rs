//! Asking a human: the broker, its rules, and the forms that a person fills in.
