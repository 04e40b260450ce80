//! The rows of `tests/cases/go`: what has to be found in the Go samples, and what objects do under what is generated.

use super::super::Folder;
use super::broken::{CRD, GO, MODULE};
use super::{ChoiceReport, MemberReport, UnionReport};
use fixtures::files::{edited, files, parse, root};
use fixtures::laws::admit_lawfully;
use fixtures::reviews::{Verdict, Write, catalog};
use kube_unions_core::catalog::Catalog;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// The group of every kind.
pub(super) const GROUP: &str = "fleet.example.com";

/// The folder that `generate` is run in.
pub(super) fn samples() -> PathBuf {
    root().join("tests/cases/go")
}

/// A kind whose unions are right.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sample {
    #[serde(skip)]
    pub(super) file: String,
    pub(super) description: String,
    pub(super) kind: String,
    /// The kind's struct, by version.
    pub(super) structs: BTreeMap<String, Source>,
    pub(super) unions: Vec<Union>,
    /// Everything worse than a note.
    #[serde(default)]
    pub(super) findings: Vec<Finding>,
    /// Notes that must be there. Others may be.
    #[serde(default)]
    pub(super) notes: Vec<Finding>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Union {
    #[serde(default = "first_version")]
    pub(super) version: String,
    /// The path of the object with the members.
    pub(super) path: String,
    #[serde(default)]
    pub(super) form: Form,
    pub(super) discriminator: Option<String>,
    pub(super) choices: BTreeMap<String, Option<Member>>,
    #[serde(default)]
    pub(super) required: bool,
    #[serde(default, rename = "emptyIsUnset")]
    pub(super) empty_is_unset: BTreeSet<String>,
    /// The way in which the members are found.
    #[serde(default = "by_markers")]
    pub(super) evidence: String,
    /// The struct's name with its package's.
    #[serde(rename = "type")]
    pub(super) type_name: String,
    pub(super) source: Source,
    pub(super) accepted: Vec<Value>,
    pub(super) rejected: Vec<Rejected>,
}

#[derive(Debug, Default, Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    #[serde(rename = "2019")]
    List,
    #[default]
    #[serde(rename = "2022")]
    Map,
}

#[derive(Debug, Deserialize, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[serde(untagged)]
pub(super) enum Member {
    Name(String),
    Full { name: String, optional: bool },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rejected {
    pub(super) object: Value,
    /// `field: message`, in this order.
    pub(super) causes: Vec<String>,
    /// The cause that an API server gives instead, because a rule of the CRD rejects the object before the webhook does.
    #[serde(default, rename = "rule")]
    _rule: Option<String>,
}

/// A line of a Go file, by its text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Source {
    /// The folder that `generate` is run in. The one of the samples, if it is none.
    #[serde(skip)]
    folder: Option<PathBuf>,
    /// A doubt has one file.
    #[serde(default)]
    pub(super) file: String,
    /// A line before it, from which on it is looked for.
    #[serde(rename = "in")]
    after: Option<String>,
    line: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Finding {
    pub(super) rule: Option<String>,
    /// The least that it may be.
    pub(super) severity: Severity,
    pub(super) version: Option<String>,
    pub(super) path: Option<String>,
    /// Each of these stands in the message, in any case.
    pub(super) says: Vec<String>,
    /// Any of these.
    pub(super) source: Vec<Source>,
}

#[derive(Debug, Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    Note,
    Warning,
    Error,
}

fn first_version() -> String {
    "v1".to_owned()
}

fn by_markers() -> String {
    "markers".to_owned()
}

/// The kiln with edits.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Doubt {
    pub(super) kind: String,
    description: String,
    #[serde(default)]
    misplaced: bool,
    go: Edits,
    #[serde(default)]
    crd: Edits,
    /// True if --allow-ambiguous continues without it.
    #[serde(default)]
    pub(super) allowed: bool,
    pub(super) findings: Vec<Finding>,
    /// Path and discriminator of what is made all the same.
    #[serde(default)]
    pub(super) unions: BTreeSet<(String, Option<String>)>,
}

/// Texts, and what stands in their places.
type Edits = Vec<(String, String)>;

impl Sample {
    pub(super) fn all() -> Vec<Self> {
        let read = |(path, text): (String, String)| Self { file: path.clone(), ..parse(&path, &text) };
        let all: Vec<Self> = files("tests/cases/go/rows", "yaml").into_iter().map(read).collect();
        assert!(all.len() >= 7 && all.iter().all(|it| !it.description.is_empty()), "{} rows", all.len());
        all
    }

    /// The file of the CRD.
    pub(super) fn path(&self) -> String {
        format!("crds/{GROUP}_{}s.yaml", self.kind.to_lowercase())
    }

    /// The CRD, as controller-gen wrote it.
    pub(super) fn definition(&self) -> String {
        fs::read_to_string(samples().join(self.path())).unwrap()
    }

    /// Every object of the rows does what it is said to do.
    pub(super) fn hold(&self, definition: &Value) {
        let catalog = catalog(&[definition]);
        for union in &self.unions {
            assert!(!union.accepted.is_empty() && !union.rejected.is_empty(), "{}: {}", self.file, union.path);
            for object in &union.accepted {
                let causes = self.causes(&catalog, definition, &union.version, object);
                assert_eq!(causes, [""; 0], "{}: {}: {object}", self.file, union.path);
            }
            for Rejected { object, causes: wanted, .. } in &union.rejected {
                let causes = self.causes(&catalog, definition, &union.version, object);
                assert_eq!(&causes, wanted, "{}: {}: {object}", self.file, union.path);
            }
        }
    }

    /// Why the object can't be created, or its status written.
    fn causes(&self, catalog: &Catalog, definition: &Value, version: &str, fields: &Value) -> Vec<String> {
        let versions = definition["spec"]["versions"].as_array().unwrap();
        let schema = versions.iter().find(|found| found["name"] == version).expect("the CRD has the version");
        let mut object = json!({
            "apiVersion": format!("{GROUP}/{version}"),
            "kind": self.kind,
            "metadata": {"name": "example", "namespace": "default"},
        });
        object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        fill_in_defaults(&schema["schema"]["openAPIV3Schema"], &mut object);
        let mut write = Write::new(None, object.clone());
        if fields.get("status").is_some() {
            let mut old = object.clone();
            old.as_object_mut().unwrap().remove("status");
            write = Write { subresource: Some("status".to_owned()), ..Write::new(Some(old), object) };
        }
        match admit_lawfully(catalog, &write).verdict {
            Verdict::Allowed(_) => Vec::new(),
            Verdict::Denied(causes) => {
                causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
            }
        }
    }
}

impl Union {
    /// Returns the union as `generate` reports it. A member that is found by name is required by a rule or not at all, and the form of
    /// 2019 has no optional members.
    pub(super) fn report(&self) -> UnionReport {
        let chosen = |member: &Member| {
            let optional = matches!(member, Member::Full { optional: true, .. });
            let by_rule = self.evidence == "names" && !optional;
            MemberReport { name: member.name().to_owned(), optional, evidence: by_rule.then(|| "rule".to_owned()) }
        };
        let choices = self
            .choices
            .iter()
            .map(|(value, member)| ChoiceReport { value: value.clone(), members: member.iter().map(chosen).collect() });
        let (line, column) = self.source.position();
        UnionReport {
            path: self.path.clone(),
            form: self.form,
            discriminator: self.discriminator.clone(),
            members: self.member_names().into_iter().map(str::to_owned).collect(),
            choices: choices.collect(),
            required: self.required,
            empty_is_unset: self.empty_is_unset.clone(),
            evidence: self.evidence.clone(),
            type_name: self.type_name.clone(),
            file: self.source.file.clone(),
            line,
            column,
        }
    }

    /// The fields that are members.
    pub(super) fn member_names(&self) -> BTreeSet<&str> {
        self.choices.values().flatten().map(Member::name).collect()
    }
}

impl Member {
    fn name(&self) -> &str {
        match self {
            Self::Name(name) | Self::Full { name, .. } => name,
        }
    }
}

impl Source {
    /// Line and column of the text, from one on.
    pub(super) fn position(&self) -> (usize, usize) {
        let text = self.text();
        let lines: Vec<&str> = text.lines().collect();
        let from = self.after.as_deref().map_or(0, |after| {
            let found = lines.iter().position(|line| line.trim() == after);
            found.unwrap_or_else(|| panic!("no `{after}` in {}", self.file))
        });
        let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let found = lines.iter().skip(from).position(|line| squeezed(line).starts_with(&self.line));
        let line =
            from + found.unwrap_or_else(|| panic!("no `{}` after `{:?}` in {}", self.line, self.after, self.file));
        let column = lines[line].len() - lines[line].trim_start().len();
        (line + 1, column + 1)
    }

    /// The lines that may be meant: this, and those of the comment before it.
    pub(super) fn lines(&self) -> std::ops::RangeInclusive<usize> {
        let (line, _) = self.position();
        let text = self.text();
        let before: Vec<&str> = text.lines().take(line - 1).collect();
        let comment = before.iter().rev().take_while(|line| line.trim().starts_with("//")).count();
        line - comment..=line
    }

    fn text(&self) -> String {
        let path = self.folder.clone().unwrap_or_else(samples).join(&self.file);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

impl Doubt {
    /// All doubts, and a folder with a module of their packages in `api` and their CRDs in `crds`; in `misplaced`, those with
    /// markers that belong to no CRD.
    pub(super) fn all() -> (Folder, Vec<Self>) {
        let folder = Folder::new(&[("go.mod", MODULE)]);
        let mut doubts: Vec<Self> = parse("doubts.yaml", &fs::read_to_string(samples().join("doubts.yaml")).unwrap());
        for doubt in &mut doubts {
            assert!(!doubt.description.is_empty() && !doubt.findings.is_empty(), "{} says nothing", doubt.kind);
            folder.write(&doubt.source(), doubt.edited(GO, &doubt.go));
            folder.write(&doubt.definition(), doubt.edited(CRD, &doubt.crd));
            let file = doubt.source();
            for source in doubt.findings.iter_mut().flat_map(|finding| &mut finding.source) {
                (source.folder, source.file) = (Some(folder.path().to_owned()), file.clone());
            }
        }
        (folder, doubts)
    }

    fn edited(&self, kiln: &str, edits: &Edits) -> String {
        let text = edited(&self.kind, kiln, edits.iter().map(|(before, after)| (before, after)));
        text.replace("Kiln", &self.kind).replace("kiln", &self.name())
    }

    fn name(&self) -> String {
        self.kind.to_lowercase()
    }

    /// The folder of the package.
    pub(super) fn package(&self) -> String {
        format!("{}/{}", if self.misplaced { "misplaced" } else { "api" }, self.name())
    }

    fn source(&self) -> String {
        format!("{}/v1/{}.go", self.package(), self.name())
    }

    /// The file of the CRD.
    pub(super) fn definition(&self) -> String {
        format!("{}/{}.yaml", if self.misplaced { "misplaced" } else { "crds" }, self.name())
    }
}

/// Applies the defaults of a schema, as the API server does.
fn fill_in_defaults(schema: &Value, value: &mut Value) {
    if let Some(fields) = value.as_object_mut() {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if let Some(default) = property.get("default") {
                fields.entry(name.clone()).or_insert_with(|| default.clone());
            }
            if let Some(value) = fields.get_mut(name) {
                fill_in_defaults(property, value);
            }
        }
        if let Some(values) = schema.get("additionalProperties") {
            fields.values_mut().for_each(|value| fill_in_defaults(values, value));
        }
    }
    for item in value.as_array_mut().into_iter().flatten() {
        fill_in_defaults(&schema["items"], item);
    }
}
