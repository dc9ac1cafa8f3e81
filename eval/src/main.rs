//! Measures the quality, speed and cost of finding tools and memories.
#![allow(clippy::print_stdout, clippy::print_stderr)] // A command-line program writes to the terminal.

mod memory;
mod quality;
mod recall_speed;
mod serve;
mod speed;
mod tokens;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((what, rest)) if what == "search" => quality::run(rest),
        Some((what, rest)) if what == "memory" => memory::run(rest),
        Some((what, rest)) if what == "speed" => speed::run(rest),
        Some((what, rest)) if what == "tokens" => tokens::run(rest),
        Some((what, rest)) if what == "serve" => serve::run(rest),
        _ => Err("usage: switchboard-eval search|memory|speed|tokens|serve [OPTIONS]".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
