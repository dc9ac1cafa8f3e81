//! The control protocol between the gateway and its guards.

/// Whatever comes over the socket is refused or read, and what is read is sent and read again as the same.
pub fn control(data: &[u8]) {
    switchboard_contain::check_control(data);
}
