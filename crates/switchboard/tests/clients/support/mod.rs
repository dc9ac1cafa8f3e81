//! A gateway of one's own, and a client at work.

mod client;
mod place;

pub(crate) use client::{Client, Kind};
pub(crate) use place::{Door, Place};
