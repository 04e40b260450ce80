//! The commands of the program, a file or folder each. The command line `kube-unions` offers them, too.

mod attempts;
pub mod audit;
pub mod install_crd;
pub mod serve;
pub mod unregister;
pub mod verify;
pub mod version;
