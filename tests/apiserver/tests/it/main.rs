//! The simulated API server through its public interface: requests in, answers out.

mod admission;
mod applies;
mod definitions;
mod objects;
mod sender;
mod watches;
