//! The control protocol between the gateway and its guards.

/// Any input is either rejected or read, and a message that was read survives a round trip.
pub fn control(data: &[u8]) {
    switchboard_contain::check_control(data);
}
