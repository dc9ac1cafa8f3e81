//! One contract for all transports.
