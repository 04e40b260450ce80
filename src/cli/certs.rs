//! `certs`: a certificate authority and a serving certificate, for development.

use super::{Verdict, output};
use crate::authority::{CertificateAuthority, LOCAL, Validity};
use anyhow::{Context, bail};
use clap::Args;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const LIFETIME: Duration = Duration::from_hours(365 * 24);

/// Arguments of `certs`.
#[derive(Debug, Args)]
#[command(after_help = "\
Writes ca.crt, ca.key, tls.crt and tls.key: ECDSA P-256, valid for a year, private keys readable by their owner only. \
`serve --tls-cert-dir` takes the folder; a webhook configuration's `caBundle` is ca.crt in base64.

For development. In a cluster leave certificates to cert-manager, or to whatever issues them there.")]
pub(super) struct CertsArgs {
    /// The folder to write to, made if it is not there
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Names and addresses of the server [default: localhost and its addresses]
    #[arg(long, num_args = 1.., value_name = "NAME")]
    host: Vec<String>,
    /// Replace what is there
    #[arg(long)]
    force: bool,
}

/// A file to be written.
struct Pem {
    name: &'static str,
    secret: bool,
    text: String,
}

pub(super) fn run(arguments: &CertsArgs) -> anyhow::Result<Verdict> {
    let files = issue(&arguments.host)?;
    let folder = arguments.dir.as_path();
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder `{}`", folder.display()))?;
    // All or nothing: half of an old authority and half of a new one would be worth less than either.
    if let Some(there) = files.iter().map(|file| folder.join(file.name)).find(|path| path.exists())
        && !arguments.force
    {
        bail!("`{}` is there already; --force replaces it", there.display());
    }
    for file in &files {
        let path = folder.join(file.name);
        write(&path, file).with_context(|| format!("cannot write `{}`", path.display()))?;
        output::note(format_args!("wrote {}", path.display()));
    }
    Ok(Verdict::Accepted)
}

fn issue(hosts: &[String]) -> anyhow::Result<[Pem; 4]> {
    let hosts = if hosts.is_empty() { LOCAL.map(str::to_owned).to_vec() } else { hosts.to_vec() };
    let common_name = hosts.first().cloned().unwrap_or_default();

    let validity = Validity::new(SystemTime::now(), LIFETIME);
    let authority = CertificateAuthority::new("kube-unions development CA", validity)?;
    let pair = authority.issue(&common_name, &hosts, validity)?;
    Ok([
        Pem { name: "ca.crt", secret: false, text: authority.certificate().to_owned() },
        Pem { name: "ca.key", secret: true, text: authority.key() },
        Pem { name: "tls.crt", secret: false, text: pair.chain },
        Pem { name: "tls.key", secret: true, text: pair.key },
    ])
}

/// Through a file beside it: a key is never readable by others, not even while it is written, and an old file's mode is
/// not taken over.
fn write(path: &Path, file: &Pem) -> std::io::Result<()> {
    let beside = path.with_file_name(format!("{}.new", file.name));
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(if file.secret { 0o600 } else { 0o644 });
    }
    options.open(&beside)?.write_all(file.text.as_bytes())?;
    fs::rename(&beside, path)
}
