//! Invalid input of server-side apply.
