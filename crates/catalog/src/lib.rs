//! What every upstream offers: names, lists, snapshots.
