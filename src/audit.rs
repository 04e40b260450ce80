//! Judges stored objects as the webhook would, and tells a cluster of those that violate unions.
//!
//! [`judge`] makes the findings of one object, wherever it comes from, and [`kinds`] chooses the kinds of a cluster. [`reports`] writes
//! what it finds into the cluster. The command line has other outputs, for people and for CI.

pub mod finding;
pub mod judge;
pub mod kinds;
pub mod reports;
pub mod tally;
