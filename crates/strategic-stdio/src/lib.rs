#![doc = include_str!("../README.md")]

mod answer;
mod methods;
mod request;
mod schemas;
mod serve;

pub use methods::PROTOCOL;
pub use serve::serve;
