//! Who calls what, and may they: edges, core, upstreams, supervision.
