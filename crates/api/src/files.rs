//! Reads files that may be anything: a device, a pipe without a writer, a file without end.

use rustix::fs::{Mode, OFlags, open};
use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Maximum size of a kubeconfig and of the files that it names, in bytes.
const LARGEST_KUBECONFIG: u64 = 512 << 20;

/// Maximum size of a mounted file, in bytes: that of a Secret or a `ConfigMap`.
const LARGEST_MOUNTED: u64 = 1 << 20;

/// Fails if a library that reads a file to its end would read a device, or more than is allowed. Leaves a file that cannot be found to
/// the library, and a pipe to the user who names it.
pub(crate) fn check_end(path: &Path) -> io::Result<()> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
    file_or_pipe(path)?;
    if metadata.len() > LARGEST_KUBECONFIG { Err(longer_than(LARGEST_KUBECONFIG)) } else { Ok(()) }
}

/// Reads a file that others replace while this program runs, as a kubelet mounts it. Links are followed.
///
/// Only a regular file of at most 1 MiB is read: a pipe could make this wait, and a device has no end. The type is
/// that of the open file, because the path may lead elsewhere a moment later.
pub fn read_mounted(path: &Path) -> io::Result<Vec<u8>> {
    // Without NONBLOCK, opening a named pipe waits for a writer. Without NOCTTY, a terminal becomes that of the process.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    read_within(LARGEST_MOUNTED, file)
}

/// Returns the type of a file, or of a pipe as a shell's `<(…)` makes it. Links are followed. A device or a socket is refused: some
/// have no end.
pub fn file_or_pipe(path: &Path) -> io::Result<FileType> {
    let kind = fs::metadata(path)?.file_type();
    if kind.is_char_device() || kind.is_block_device() || kind.is_socket() {
        return Err(io::Error::other("it is neither a file nor a pipe"));
    }
    Ok(kind)
}

/// Reads a stream up to its end, within a limit in bytes.
pub fn read_within(limit: u64, stream: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(longer_than(limit));
    }
    Ok(bytes)
}

fn longer_than(limit: u64) -> io::Error {
    io::Error::other(format!("it has more than {limit} bytes"))
}
