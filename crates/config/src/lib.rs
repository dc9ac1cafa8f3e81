//! The configuration of Switchboard: its home, its file, its schema.
