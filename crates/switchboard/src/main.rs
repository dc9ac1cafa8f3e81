//! The program: command line, config, wiring.

fn main() {}
