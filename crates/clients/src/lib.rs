//! The configurations of AI clients: taking servers over from them, and putting the gateway into them.
