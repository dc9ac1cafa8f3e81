//! JSON with comments, read into a tree that knows where everything stands.
