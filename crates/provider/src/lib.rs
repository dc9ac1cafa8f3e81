//! Models behind HTTP, for servers that ask for a model's answer.
