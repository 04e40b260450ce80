//! The token in a file, as a kubelet mounts that of a service account: it replaces the token long before it expires.
//!
//! kube would read the file by itself, but it waits for the writer of a named pipe, on a thread that others need.

use crate::files;
use hyper::Request;
use hyper::header::{AUTHORIZATION, HeaderValue};
use kube::config::AuthInfo;
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time between two looks at the file: that of client-go.
const REREAD: Duration = Duration::from_mins(1);

/// A token that is read again, as the header of a request.
pub(super) struct MountedToken {
    path: PathBuf,
    interval: Duration,
    last: Mutex<(HeaderValue, Instant)>,
}

impl MountedToken {
    /// Takes the file of the token out of an identity; `None` if another credential has precedence.
    pub(super) fn take(identity: &mut AuthInfo) -> io::Result<Option<Self>> {
        let has_password = identity.username.is_some() && identity.password.is_some();
        if has_password || identity.token.is_some() || identity.auth_provider.is_some() {
            return Ok(None);
        }
        identity.token_file.take().map(|path| Self::read(path.into(), REREAD)).transpose()
    }

    fn read(path: PathBuf, interval: Duration) -> io::Result<Self> {
        let header = read_header(&path).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot read the token `{}`: {error}", path.display()))
        })?;
        Ok(Self { path, interval, last: Mutex::new((header, Instant::now())) })
    }

    /// Returns the header. While the file cannot be read, the last token stays in use.
    fn header(&self) -> HeaderValue {
        let mut last = self.last.lock();
        if last.1.elapsed() >= self.interval {
            let header = read_header(&self.path).unwrap_or_else(|_| last.0.clone());
            *last = (header, Instant::now());
        }
        last.0.clone()
    }

    /// Returns a request as the owner of the token.
    pub(super) fn authorize<B>(&self, mut request: Request<B>) -> Request<B> {
        request.headers_mut().insert(AUTHORIZATION, self.header());
        request
    }
}

fn read_header(path: &Path) -> io::Result<HeaderValue> {
    let content = files::read_mounted(path)?;
    let token = content.trim_ascii();
    if token.is_empty() {
        return Err(io::Error::other("it is empty"));
    }
    let header = HeaderValue::from_bytes(&[b"Bearer ", token].concat());
    let mut header = header.map_err(|_| io::Error::other("it holds no token"))?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;

    /// Something at the path of the token, and what is said of it.
    type Obstacle = (&'static str, fn(&Path), &'static str);

    fn sent(token: &MountedToken) -> String {
        token.authorize(Request::new(())).headers()[AUTHORIZATION].to_str().unwrap().to_owned()
    }

    #[test]
    fn whatever_takes_the_place_of_the_file_the_last_token_is_sent_and_the_next_good_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let obstacles: [Obstacle; 8] = [
            ("a named pipe", |path| mkfifoat(CWD, path, Mode::RUSR).unwrap(), "it is not a regular file"),
            ("a device without end", |path| symlink("/dev/zero", path).unwrap(), "it is not a regular file"),
            ("a link to a directory", |path| symlink("/", path).unwrap(), "it is not a regular file"),
            (
                "a tebibyte",
                |path| File::create(path).unwrap().set_len(1 << 40).unwrap(),
                "it has more than 1048576 bytes",
            ),
            ("an empty file", |path| fs::write(path, "").unwrap(), "it is empty"),
            ("a blank file", |path| fs::write(path, " \n").unwrap(), "it is empty"),
            ("two lines", |path| fs::write(path, "a\nX-Other: b").unwrap(), "it holds no token"),
            ("a dangling link", |path| symlink("nowhere", path).unwrap(), "No such file"),
        ];
        fs::write(&path, "first").unwrap();
        let token = MountedToken::read(path.clone(), Duration::ZERO).unwrap();
        let mut last = "Bearer first".to_owned();
        for (round, (what, put, says)) in obstacles.into_iter().enumerate() {
            fs::remove_file(&path).unwrap();
            put(&path);
            assert_eq!(sent(&token), last, "{what}");
            let error = MountedToken::read(path.clone(), REREAD).err().unwrap().to_string();
            assert!(error.starts_with("cannot read the token `") && error.contains(says), "{what}: {error}");
            fs::remove_file(&path).unwrap();
            fs::write(&path, format!("token-{round}\n")).unwrap();
            last = format!("Bearer token-{round}");
            assert_eq!(sent(&token), last, "{what}");
        }
    }

    #[test]
    fn a_token_is_read_again_after_a_minute_and_only_if_no_other_credential_has_precedence() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        fs::write(&path, "first").unwrap();
        let identity = AuthInfo { token_file: Some(path.display().to_string()), ..AuthInfo::default() };
        let mut rest = identity.clone();
        let token = MountedToken::take(&mut rest).unwrap().unwrap();
        assert_eq!(rest.token_file, None, "kube does not read it");
        fs::write(&path, "second").unwrap();
        assert_eq!(sent(&token), "Bearer first");
        token.last.lock().1 -= REREAD;
        assert_eq!(sent(&token), "Bearer second");

        let password = Some("p".to_owned().into());
        let others = [
            AuthInfo { token: Some("t".to_owned().into()), ..identity.clone() },
            AuthInfo { username: Some("u".to_owned()), password, ..identity },
            AuthInfo::default(),
        ];
        for mut other in others {
            let before = other.token_file.clone();
            assert!(MountedToken::take(&mut other).unwrap().is_none());
            assert_eq!(other.token_file, before);
        }
    }
}
