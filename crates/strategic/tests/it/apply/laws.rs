//! Laws of server-side apply.
