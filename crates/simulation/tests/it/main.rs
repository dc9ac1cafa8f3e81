//! The proof: schedules without end, machines with a mistake, and the numbers and rules by name.

mod campaign;
mod mistakes;
mod numbers;
mod probe;
mod properties;
mod rig;
mod schedules;
