//! `certs`: makes a certificate authority and a serving certificate for development.

use crate::report::{Verdict, output};
use anyhow::{Context, bail};
use clap::{Args, ValueHint};
use kube_unions_command::files::{FileAccess, StagedFile};
use kube_unions_webhook::authority::{LOCAL, for_development};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "\
Writes ca.crt, ca.key, tls.crt and tls.key: ECDSA P-256, valid for a year. Only their owner can read the private keys. Use \
the directory with `serve --tls-cert-dir`; the `caBundle` of a webhook configuration is ca.crt in base64.

For development. On a cluster, leave certificates to the webhook itself or to cert-manager.

Examples:
  # Make certificates for localhost
  kube-unions certs --dir certs
  # Make certificates for a Service
  kube-unions certs --dir certs --host kube-unions.kube-unions.svc")]
pub(crate) struct CertsArgs {
    /// Directory to write to. It is created if it does not exist
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: PathBuf,
    /// DNS names and IP addresses of the server [default: localhost and its addresses]
    #[arg(long, num_args = 1.., value_name = "NAME")]
    host: Vec<String>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
}

/// A PEM file to write: its name, the users who can read it, and its text.
type PemFile = (&'static str, FileAccess, String);

pub(super) fn run(arguments: &CertsArgs) -> anyhow::Result<Verdict> {
    let files = issue(&arguments.host)?;
    let directory = arguments.dir.as_path();
    fs::create_dir_all(directory).with_context(|| format!("cannot create the directory `{}`", directory.display()))?;
    // All files or none: a CA of one run is of no use with a key of another.
    if let Some(existing) = files.iter().map(|(name, ..)| directory.join(name)).find(|path| path.exists())
        && !arguments.force
    {
        bail!("`{}` exists already: use --force to replace it", existing.display());
    }
    let mut staged = Vec::new();
    for (name, access, text) in &files {
        let path = directory.join(name);
        let file = StagedFile::new(&path, text.as_bytes(), *access).with_context(|| cannot_write(&path))?;
        staged.push((path, file));
    }
    for (path, file) in staged {
        file.persist().with_context(|| cannot_write(&path))?;
        output::summary(format_args!("wrote {}", path.display()));
    }
    Ok(Verdict::Accepted)
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write `{}`", path.display())
}

fn issue(hosts: &[String]) -> anyhow::Result<[PemFile; 4]> {
    let hosts = if hosts.is_empty() { LOCAL.map(str::to_owned).to_vec() } else { hosts.to_vec() };
    let common_name = hosts.first().cloned().unwrap_or_default();
    let (authority, pair) = for_development("kube-unions development CA", &common_name, &hosts)?;
    Ok([
        ("ca.crt", FileAccess::Everyone, authority.certificate().to_owned()),
        ("ca.key", FileAccess::Owner, authority.key()),
        ("tls.crt", FileAccess::Everyone, pair.chain),
        ("tls.key", FileAccess::Owner, pair.key),
    ])
}
