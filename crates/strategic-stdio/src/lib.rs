#![doc = include_str!("../README.md")]

mod answer;
mod methods;
mod request;
mod schemas;
mod serve;

pub use serve::{PROTOCOL, serve};
