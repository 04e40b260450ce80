//! The findings of a run, each with the CRD that it is about, and the baseline: a file of findings that are known and do not count.
//!
//! An entry has no position, so that code may move: it has the rule, the place, and the names in the message. A finding without
//! a CRD is known by its file instead, relative to the folder of the baseline.

use crate::report::json_list::JsonList;
use anyhow::{Context, anyhow, bail};
use kube_unions_command::files::StagedFile;
use kube_unions_core::declaration::Severity;
use kube_unions_go::{FindingKind, GoFinding};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

const API_VERSION: &str = "cli.kube-unions.dev/v1";
const KIND: &str = "GenerateBaseline";

/// Largest baseline, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

/// A finding with the kind that it is about.
#[derive(Debug, Clone)]
pub(super) struct ReportedFinding {
    pub(super) finding: GoFinding,
    /// `None` for a finding about Go sources alone.
    pub(super) subject: Option<CrdSubject>,
    pub(super) standing: Standing,
}

/// The CRD that a finding is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CrdSubject {
    /// Name of the CRD.
    pub(super) definition: String,
    pub(super) kind: String,
    /// `None` for the CRD as a whole.
    pub(super) version: Option<String>,
    /// The file with the CRD.
    pub(super) file: PathBuf,
    /// Line and column of the CRD in its file, counted from 1.
    pub(super) position: (usize, usize),
}

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Standing {
    /// It counts.
    New,
    /// `--allow` names its kind.
    Allowed,
    /// It is in the baseline.
    Known,
}

impl ReportedFinding {
    pub(super) fn of(finding: GoFinding, subject: Option<CrdSubject>) -> Self {
        Self { finding, subject, standing: Standing::New }
    }

    /// Returns `Kind version path`, as far as they are known.
    pub(super) fn place(&self) -> String {
        let subject = self.subject.as_ref();
        let kind = subject.map(|subject| subject.kind.as_str());
        let version = subject.and_then(|subject| subject.version.as_deref());
        let parts = [kind, version, Some(&*self.finding.path)];
        parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }

    pub(super) fn is_counted_error(&self) -> bool {
        self.finding.severity == Severity::Error && self.standing == Standing::New
    }

    /// Returns true if the finding belongs in a baseline.
    pub(super) fn is_recorded(&self) -> bool {
        self.standing != Standing::Allowed && self.is_worth_a_count()
    }

    /// Returns true if the finding is an error or a warning. A note never fails.
    pub(super) fn is_worth_a_count(&self) -> bool {
        self.finding.severity != Severity::Note
    }
}

/// The content of a baseline.
#[derive(Debug, Default)]
pub(super) struct Baseline {
    /// Number of findings of each entry.
    known: BTreeMap<BaselineEntry, usize>,
    /// Folder of the file, to which paths are relative.
    folder: PathBuf,
}

/// A known finding, as the file has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BaselineEntry {
    pub(super) rule: String,
    /// Name of the CRD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) crd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
    /// The Go file of a finding without a CRD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) path: String,
    /// The names and values in the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) names: Vec<String>,
    /// Number of findings that differ only in their position, if there are several. Only in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
}

/// The file. Its type is read before, as [`FileType`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BaselineFile {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    findings: Vec<BaselineEntry>,
}

/// The type of a file, whatever else is in it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileType {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
}

impl Baseline {
    /// Reads a baseline. A file that does not exist is empty if it `may_be_missing`.
    pub(super) fn read(path: &Path, may_be_missing: bool) -> anyhow::Result<Self> {
        let absolute = std::path::absolute(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        let folder = absolute.parent().map(Path::to_owned).unwrap_or_default();
        let known = match std::fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound && may_be_missing => BTreeMap::new(),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                bail!("no baseline `{}`: create it with --update-baseline", path.display())
            }
            Ok(metadata) if !metadata.is_file() => bail!("the baseline `{}` is not a file", path.display()),
            Ok(metadata) if metadata.len() > LARGEST => {
                bail!("the baseline `{}` has more than {LARGEST} bytes", path.display())
            }
            Err(_) | Ok(_) => {
                let text = std::fs::read_to_string(path).map_err(anyhow::Error::from);
                text.and_then(|text| entries(&text)).with_context(|| format!("the baseline `{}`", path.display()))?
            }
        };
        Ok(Self { known, folder })
    }

    /// Returns the entry for a finding.
    pub(super) fn entry(&self, reported: &ReportedFinding) -> BaselineEntry {
        let finding = &reported.finding;
        let crd = reported.subject.as_ref().map(|subject| subject.definition.clone());
        BaselineEntry {
            rule: finding.kind.name().to_owned(),
            version: reported.subject.as_ref().and_then(|subject| subject.version.clone()),
            file: crd.is_none().then(|| relative(&finding.position.file, &self.folder)),
            crd,
            path: finding.path.clone(),
            names: finding.names().into_iter().map(str::to_owned).collect(),
            count: None,
        }
    }

    /// Returns the number of known findings like this one.
    pub(super) fn count(&self, entry: &BaselineEntry) -> usize {
        self.known.get(entry).copied().unwrap_or_default()
    }

    /// Returns the entries that have more findings than `found` has, and that this run could have found.
    pub(super) fn stale(&self, found: &BTreeMap<BaselineEntry, usize>, scope: BaselineScope<'_>) -> Vec<BaselineEntry> {
        let is_stale = |(entry, count): &(&BaselineEntry, &usize)| {
            includes(scope, entry) && **count > found.get(entry).copied().unwrap_or_default()
        };
        self.known.iter().filter(is_stale).map(|(entry, _)| entry.clone()).collect()
    }

    /// Replaces the entries that this run could have found, and writes the file if it changes.
    pub(super) fn update(
        &mut self,
        path: &Path,
        found: &BTreeMap<BaselineEntry, usize>,
        scope: BaselineScope<'_>,
    ) -> anyhow::Result<()> {
        self.known.retain(|entry, _| !includes(scope, entry));
        self.known.extend(found.iter().map(|(entry, count)| (entry.clone(), *count)));
        let text = self.text()?;
        if std::fs::read(path).is_ok_and(|before| before == text.as_bytes()) {
            return Ok(());
        }
        let written = StagedFile::of_output(path, text.as_bytes()).and_then(StagedFile::persist);
        written.with_context(|| format!("cannot write `{}`", path.display()))
    }

    /// Returns the text of the file: JSON with a line for each entry, which version control can merge.
    fn text(&self) -> serde_json::Result<String> {
        let head = format!("{{\n  \"apiVersion\": \"{API_VERSION}\",\n  \"kind\": \"{KIND}\",\n  \"findings\": [");
        let mut list = JsonList::begin(head, "  ");
        for (entry, count) in &self.known {
            list.push(&BaselineEntry { count: (*count != 1).then_some(*count), ..entry.clone() })?;
        }
        list.end("\n}\n");
        Ok(list.text)
    }
}

/// The names of the CRDs whose findings a run could have found, because only some kinds were selected. `None`: all findings.
pub(super) type BaselineScope<'n> = Option<&'n BTreeSet<String>>;

fn includes(scope: BaselineScope<'_>, entry: &BaselineEntry) -> bool {
    scope.is_none_or(|names| entry.crd.as_ref().is_some_and(|crd| names.contains(crd)))
}

impl BaselineEntry {
    /// Returns the entry as a line for people.
    pub(super) fn line(&self) -> String {
        let places = [self.crd.as_deref(), self.version.as_deref(), self.file.as_deref(), Some(&*self.path)];
        let places: Vec<&str> = places.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        let names: Vec<String> = self.names.iter().map(|name| format!("`{name}`")).collect();
        let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        format!("{} at {}{names}", self.rule, places.join(" "))
    }
}

fn entries(text: &str) -> anyhow::Result<BTreeMap<BaselineEntry, usize>> {
    let what = "is not a file that `generate --update-baseline` wrote";
    let FileType { api_version, kind } =
        serde_json::from_str(text).map_err(|error| anyhow!("{what}, or is cut off: {error}"))?;
    if (api_version.as_str(), kind.as_str()) != (API_VERSION, KIND) {
        bail!("{what}: `apiVersion` must be `{API_VERSION}`, and `kind` `{KIND}`");
    }
    let file: BaselineFile = serde_json::from_str(text).map_err(|error| anyhow!("{what}: {error}"))?;
    let mut known = BTreeMap::new();
    for mut entry in file.findings {
        let count = entry.count.take().unwrap_or(1);
        if FindingKind::named(&entry.rule).is_none() {
            bail!("has the unknown rule `{}`: update kube-unions, or remove the entry", entry.rule);
        }
        if entry.crd.is_some() == entry.file.is_some() {
            bail!("has an entry of the rule `{}` that must have either `crd` or `file`", entry.rule);
        }
        if known.insert(entry.clone(), count).is_some() {
            bail!("has an entry twice: {}", entry.line());
        }
    }
    Ok(known)
}

/// Returns a path relative to a folder, with slashes.
fn relative(path: &Path, folder: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let normal = |path: &Path| {
        let mut parts: Vec<String> = Vec::new();
        for part in path.components() {
            match part {
                Component::ParentDir => drop(parts.pop()),
                Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
        parts
    };
    let (path, folder) = (normal(&absolute), normal(folder));
    let shared = path.iter().zip(&folder).take_while(|(one, other)| one == other).count();
    let up = std::iter::repeat_n("..", folder.len().saturating_sub(shared));
    up.chain(path.iter().skip(shared).map(String::as_str)).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_folder_of_the_baseline() {
        for (path, folder, want) in [
            ("/a/b/c.go", "/a", "b/c.go"),
            ("/a/./b/../c.go", "/a", "c.go"),
            ("/a/c.go", "/a/b", "../c.go"),
            ("/x/c.go", "/a/b", "../../x/c.go"),
        ] {
            assert_eq!(relative(Path::new(path), Path::new(folder)), want);
        }
    }

    #[test]
    fn a_file_of_another_kind_or_a_part_of_one_is_refused() {
        let whole = format!(
            r#"{{"apiVersion": "{API_VERSION}", "kind": "{KIND}", "findings": [{{"rule": "unmarked-member", "crd": "a"}}]}}"#
        );
        assert_eq!(entries(&whole).unwrap().len(), 1);
        for (text, says) in [
            (whole[..whole.len() - 1].to_owned(), "cut off"),
            (String::new(), "cut off"),
            ("{}".to_owned(), "`apiVersion` must be"),
            ("findings: []".to_owned(), "is not a file"),
            (whole.replace(KIND, "List"), "`kind` `GenerateBaseline`"),
            (whole.replace("\"crd\"", "\"cdr\""), "cdr"),
            (whole.replace("unmarked-member", "unmarked-members"), "unknown rule `unmarked-members`"),
            (whole.replace(", \"crd\": \"a\"", ""), "either `crd` or `file`"),
            (whole.replace("}]", "}, {\"rule\": \"unmarked-member\", \"crd\": \"a\"}]"), "twice: unmarked-member at a"),
        ] {
            let error = format!("{:#}", entries(&text).unwrap_err());
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
