//! The client library from the outside, against scripted servers, in virtual time.

mod asking;
mod calls;
mod contract;
mod hostile;
mod peer;
mod reconnect;
mod stop;
