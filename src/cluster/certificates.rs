//! placeholder
#[allow(dead_code)]
mod plan;
