//! A gateway for one test, and a client at work.

mod client;
mod place;

pub(crate) use client::{Client, Kind};
pub(crate) use place::{Door, Place};
