//! The `pins` check: driven by libFuzzer, or in an ordinary build by the files it is given.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| switchboard_fuzz::pins(data));

#[cfg(not(fuzzing))]
fn main() -> std::io::Result<()> {
    switchboard_fuzz::replay(switchboard_fuzz::pins)
}
