//! The `splitter` check: run by libFuzzer, or in a normal build on the files named as arguments.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| switchboard_fuzz::splitter(data));

#[cfg(not(fuzzing))]
fn main() -> std::io::Result<()> {
    switchboard_fuzz::replay(switchboard_fuzz::splitter)
}
