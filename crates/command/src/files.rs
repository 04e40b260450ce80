//! Reads files and pipes, and replaces them as a whole: a reader sees the old contents or the new ones, never a part of either.

use kube_unions_api::files::{file_or_pipe, read_within};
use kube_unions_manifests::input::LARGEST;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Seek, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use tempfile::{Builder, SpooledTempFile, TempPath};

/// Maximum size of the content of a pipe in memory, in bytes. A larger one goes to a temporary file.
const LARGEST_IN_MEMORY: usize = 1 << 20;

/// Maximum size of the content of a pipe, in bytes.
const LARGEST_PIPE: u64 = 16 << 30;

/// A text that is read more than once, in parts.
pub enum Rereadable {
    /// A file, which is open only while it is read.
    File(PathBuf),
    /// The content of a pipe.
    Piped(SpooledTempFile),
}

/// A place where a text is read from its beginning.
pub trait SeekRead: Read + Seek + Send {}

impl<S: Read + Seek + Send> SeekRead for S {}

impl Rereadable {
    /// Takes a file, or the content of a pipe that the user names.
    pub fn of(path: &Path) -> io::Result<Self> {
        if file_or_pipe(path)?.is_file() { Ok(Self::File(path.to_owned())) } else { Self::of_pipe(File::open(path)?) }
    }

    /// Takes a stream up to its end.
    pub fn of_pipe(stream: impl Read) -> io::Result<Self> {
        let mut kept = SpooledTempFile::new(LARGEST_IN_MEMORY);
        if io::copy(&mut stream.take(LARGEST_PIPE + 1), &mut kept)? > LARGEST_PIPE {
            return Err(io::Error::other(format!("it has more than {LARGEST_PIPE} bytes")));
        }
        Ok(Self::Piped(kept))
    }

    pub fn open(&mut self) -> io::Result<Box<dyn SeekRead + '_>> {
        Ok(match self {
            Self::File(path) => Box::new(File::open(path)?),
            Self::Piped(kept) => Box::new(kept),
        })
    }
}

/// Reads a file, or a pipe that the user names.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    file_or_pipe(path)?;
    read_bounded(File::open(path)?)
}

/// Reads a stream up to its end, within the limit.
pub fn read_bounded(stream: impl Read) -> io::Result<Vec<u8>> {
    read_within(LARGEST, stream)
}

/// Permissions of a replaced file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// Its owner may read and write it.
    Owner,
    /// Its owner may read and write it, and others may read it as far as the umask allows.
    Everyone,
    /// The permissions and the owner of the file that is replaced.
    Unchanged,
}

/// The new contents of a file, complete on the disk and not yet in their place. They are removed unless they get there.
///
/// They are in a new file in the same directory, so that they can take the name: a key is never readable by others, not even while
/// it is written, and a full disk leaves the old file as it was.
pub struct StagedFile {
    path: PathBuf,
    // A closed file: a command may stage more files than a process may have open.
    contents: TempPath,
}

impl StagedFile {
    /// Stages the contents of `path`. A symbolic link there is replaced, not followed.
    pub fn new(path: &Path, contents: &[u8], access: FileAccess) -> io::Result<Self> {
        let directory = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mode = if access == FileAccess::Everyone { 0o644 } else { 0o600 };
        let mut file = Builder::new().permissions(Permissions::from_mode(mode)).tempfile_in(directory)?;
        file.write_all(contents)?;
        if access == FileAccess::Unchanged {
            let (before, new) = (fs::metadata(path)?, file.as_file().metadata()?);
            // Only root may give a file away. For others the file becomes theirs, as with other editors.
            if (before.uid(), before.gid()) != (new.uid(), new.gid()) {
                fchown(file.as_file(), Some(before.uid()), Some(before.gid())).ok();
            }
            file.as_file().set_permissions(before.permissions())?;
        }
        Ok(Self { path: path.to_owned(), contents: file.into_temp_path() })
    }

    /// Stages the contents of a file that the user names. A symbolic link is followed, and a file that exists keeps its permissions.
    pub fn of_output(path: &Path, contents: &[u8]) -> io::Result<Self> {
        let access = if path.exists() { FileAccess::Unchanged } else { FileAccess::Everyone };
        Self::new(&path.canonicalize().unwrap_or_else(|_| path.to_owned()), contents, access)
    }

    /// Puts the contents in their place.
    pub fn persist(self) -> io::Result<()> {
        Ok(self.contents.persist(self.path)?)
    }
}

/// Replaces a file, or creates it. A symbolic link at `path` is replaced, not followed.
pub fn replace(path: &Path, contents: &[u8], access: FileAccess) -> io::Result<()> {
    StagedFile::new(path, contents, access)?.persist()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_has_the_contents_and_the_permissions_that_were_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        replace(&path, b"secret", FileAccess::Owner).unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode()), (b"secret".to_vec(), 0o600));
        fs::set_permissions(&path, Permissions::from_mode(0o660)).unwrap();
        replace(&path, b"kept", FileAccess::Unchanged).unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode()), (b"kept".to_vec(), 0o660));
        replace(&path, b"public", FileAccess::Everyone).unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode() & 0o700), (b"public".to_vec(), 0o600));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_link_is_replaced_and_its_target_stays() {
        let directory = tempfile::tempdir().unwrap();
        let (target, link) = (directory.path().join("target"), directory.path().join("link"));
        fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        replace(&link, b"new", FileAccess::Everyone).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "old");
        assert_eq!(fs::read_to_string(&link).unwrap(), "new");
    }
}
