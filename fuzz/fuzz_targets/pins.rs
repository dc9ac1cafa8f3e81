//! The `pins` check: run by libFuzzer, or in a normal build on the files named as arguments.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| switchboard_fuzz::pins(data));

#[cfg(not(fuzzing))]
fn main() -> std::io::Result<()> {
    switchboard_fuzz::replay(switchboard_fuzz::pins)
}
