//! `generate`: from Go sources and their CRDs to CRDs with unions.

pub(super) mod broken;
mod findings;
mod rows;
mod scale;
mod standing;

use super::{Folder, Run, binary, run};
use fixtures::files::parse;
use rows::{Doubt, Finding, Form, GROUP, Sample, Severity, samples};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

/// The report of `-o json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    kinds: Vec<KindReport>,
    findings: Vec<FindingReport>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KindReport {
    group: String,
    version: String,
    kind: String,
    definition: String,
    file: String,
    line: usize,
    column: usize,
    unions: Vec<UnionReport>,
}

/// A union as the report tells of it, and as a row wants it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct UnionReport {
    path: String,
    form: Form,
    discriminator: Option<String>,
    members: Vec<String>,
    choices: Vec<ChoiceReport>,
    required: bool,
    empty_is_unset: BTreeSet<String>,
    evidence: String,
    #[serde(rename = "type")]
    type_name: String,
    file: String,
    line: usize,
    column: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChoiceReport {
    value: String,
    members: Vec<MemberReport>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
struct MemberReport {
    name: String,
    optional: bool,
    evidence: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FindingReport {
    file: String,
    line: usize,
    column: usize,
    definition: Option<String>,
    #[serde(rename = "definitionFile")]
    definition_file: Option<String>,
    #[serde(rename = "definitionLine")]
    definition_line: Option<usize>,
    version: Option<String>,
    path: String,
    severity: Severity,
    rule: String,
    standing: String,
    message: String,
}

/// A union, whoever tells of it: version, path, form, discriminator, and what each value chooses. Whether that may be missing is
/// not asked in the form of 2019.
type Told = (String, String, Form, Option<String>, BTreeMap<String, Vec<(String, bool)>>);

/// Returns the core of unions, each with its version, sorted.
fn told(unions: &BTreeSet<(String, UnionReport)>) -> Vec<Told> {
    let chosen = |choice: &ChoiceReport| {
        (choice.value.clone(), choice.members.iter().map(|it| (it.name.clone(), it.optional)).collect())
    };
    let told = unions.iter().map(|(version, union)| {
        let choices = union.choices.iter().map(chosen).collect();
        (version.clone(), union.path.clone(), union.form, union.discriminator.clone(), choices)
    });
    let mut told: Vec<Told> = told.collect();
    told.sort();
    told
}

impl Report {
    #[track_caller]
    fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    fn unions(&self) -> impl Iterator<Item = (&KindReport, &UnionReport)> {
        self.kinds.iter().flat_map(|kind| kind.unions.iter().map(move |union| (kind, union)))
    }

    /// Returns the unions of a kind with their versions. The members are sorted.
    fn of_kind(&self, kind: &str) -> BTreeSet<(String, UnionReport)> {
        let of_kind = self.unions().filter(|(found, _)| found.group == GROUP && found.kind == kind);
        let sorted = of_kind.map(|(found, union)| {
            let mut union = union.clone();
            union.members.sort();
            let members = union.choices.iter_mut().flat_map(|choice| &mut choice.members);
            members.for_each(|member| member.optional &= union.form == Form::Map);
            (found.version.clone(), union)
        });
        sorted.collect()
    }
}

impl FindingReport {
    /// Returns true if it is this finding.
    fn is(&self, wanted: &Finding) -> bool {
        let message = self.message.to_lowercase();
        let is_whole = self.column > 0
            && (self.version.is_none() || self.definition.is_some())
            && self.definition.is_some() == self.definition_file.is_some()
            && self.definition_file.is_some() == self.definition_line.is_some_and(|line| line > 0);
        is_whole
            && self.severity >= wanted.severity
            && wanted.rule.as_ref().is_none_or(|rule| *rule == self.rule)
            && wanted.version.as_ref().is_none_or(|version| Some(version) == self.version.as_ref())
            && wanted.path.as_ref().is_none_or(|path| *path == self.path)
            && wanted.says.iter().all(|text| message.contains(&text.to_lowercase()))
            && wanted.source.iter().any(|source| source.file == self.file && source.lines().contains(&self.line))
    }
}

impl Sample {
    /// Returns the unions of the row with their versions.
    fn wanted(&self) -> BTreeSet<(String, UnionReport)> {
        self.unions.iter().map(|union| (union.version.clone(), union.report())).collect()
    }

    fn told(&self) -> Vec<Told> {
        told(&self.wanted())
    }

    #[track_caller]
    fn generate(&self, more: &[&str]) -> Run {
        generate(&[&["--go", "fleet", &*self.path()], more].concat())
    }
}

/// Generates from a definition on standard input.
#[track_caller]
fn piped(definition: &str, more: &[&str]) -> String {
    let mut command = Command::new(binary());
    command.current_dir(samples()).args(["generate", "--go", "fleet"]).args(more).arg("-");
    run(&mut command, definition.as_bytes()).code(0).stdout
}

/// Runs `generate` in the folder of the samples.
fn generate(arguments: &[&str]) -> Run {
    run(Command::new(binary()).current_dir(samples()).arg("generate").args(arguments), b"")
}

#[test]
fn each_sample_has_the_unions_and_the_findings_of_its_row_and_no_other() {
    for kind in Sample::all() {
        let report = Report::parse(&kind.generate(&["--check", "-o", "json"]).code(1).stdout);
        assert_eq!(report.of_kind(&kind.kind), kind.wanted(), "{}", kind.file);
        let definition: Value = parse(&kind.file, &kind.definition());
        for (version, source) in &kind.structs {
            let found = report.kinds.iter().find(|it| (&it.kind, &it.version) == (&kind.kind, version));
            let found = found.unwrap_or_else(|| panic!("{}: {version} is not reported", kind.file));
            let (line, _) = source.position();
            assert_eq!((&*found.file, found.line, found.column > 0), (&*source.file, line, true), "{}", kind.file);
            assert_eq!(definition["metadata"]["name"], found.definition);
        }
        let (notes, worse): (Vec<_>, Vec<_>) = report.findings.iter().partition(|it| it.severity == Severity::Note);
        for (found, wanted) in [(&worse, &kind.findings), (&notes, &kind.notes)] {
            for wanted in wanted {
                assert!(found.iter().any(|it| it.is(wanted)), "{}: nobody says {wanted:?}: {found:#?}", kind.file);
            }
        }
        for finding in worse {
            assert!(kind.findings.iter().any(|it| finding.is(it)), "{}: nobody wants {finding:#?}", kind.file);
        }
    }
}

#[test]
fn a_generated_definition_has_the_annotation_more_and_its_objects_do_what_the_rows_say() {
    for kind in Sample::all() {
        let run = kind.generate(&[]).code(0);
        for union in &kind.unions {
            let (line, _) = union.source.position();
            let place = format!("{}:{line}", union.source.file);
            // Without a discriminator, values are names that nothing has to be called by.
            let values = union.choices.keys().filter(|_| union.discriminator.is_some());
            let texts = values.chain([&union.path, &place]).chain(&union.discriminator);
            for text in texts.map(String::as_str).chain(union.member_names()) {
                assert!(run.stderr.contains(text), "{}, {}: no `{text}` in\n{}", kind.file, union.path, run.stderr);
            }
        }
        assert_eq!(kind.generate(&["--check"]).code(1).stdout, run.stderr, "the report goes where no CRDs go");

        let (before, after) = (kind.definition(), run.stdout);
        let added = |line: &&str| line.contains("kube-unions.dev/unions");
        assert_eq!(after.lines().filter(added).count(), 1, "{after}");
        let rest: Vec<&str> = after.lines().filter(|line| !added(line)).collect();
        assert_eq!(rest, before.lines().collect::<Vec<_>>(), "{}", kind.file);
        kind.hold(&parse(&kind.file, &after));
    }
}

#[test]
fn the_other_commands_read_what_was_generated_and_generating_again_changes_nothing() {
    for kind in Sample::all() {
        let definition = kind.definition();
        let (annotated, in_schema) = (piped(&definition, &[]), piped(&definition, &["--in-schema"]));
        assert_eq!(piped(&annotated, &[]), annotated, "{}", kind.file);
        assert_eq!(piped(&in_schema, &["--in-schema"]), in_schema, "{}", kind.file);

        let folder = Folder::new(&[("crd.yaml", &annotated), ("in-schema.yaml", &in_schema)]);
        folder.run(&["lint", "crd.yaml"]).code(0);
        let explained = folder.run(&["explain", "-o", "json", "--from", "crd.yaml"]).code(0).json();
        assert_eq!(explained_unions(&explained), kind.told(), "{}", kind.file);
        for file in ["crd.yaml", "in-schema.yaml"] {
            folder.run(&["annotate", file]).code(0).prints(&annotated);
        }
    }
}

/// The output of `explain -o json`.
fn explained_unions(explained: &Value) -> Vec<Told> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut told = Vec::new();
    for kind in explained.as_array().unwrap() {
        for union in kind["unions"].as_array().unwrap() {
            let form: Form = serde_json::from_value(union["form"].clone()).unwrap();
            let choices = union["choices"].as_array().unwrap().iter().map(|choice| {
                let member = |it: &Value| (text(&it["name"]), form == Form::Map && it["optional"] == true);
                (text(&choice["value"]), choice["members"].as_array().unwrap().iter().map(member).collect())
            });
            let discriminator = union["discriminator"].as_str().map(str::to_owned);
            told.push((text(&kind["version"]), text(&union["path"]), form, discriminator, choices.collect()));
        }
    }
    told.sort();
    told
}

#[test]
fn files_are_written_in_place_and_a_second_time_stay() {
    let go = samples().join("fleet").to_str().unwrap().to_owned();
    let folder = Folder::new(&[]);
    let kinds = Sample::all();
    for kind in &kinds {
        folder.write(&format!("crds/{}.yaml", kind.kind), kind.definition());
    }
    folder.run(&["generate", "--go", &go, "--check", "crds"]).code(1);
    folder.run(&["generate", "--go", &go, "-w", "crds"]).code(0);
    for kind in &kinds {
        assert_eq!(
            folder.read(&format!("crds/{}.yaml", kind.kind)),
            kind.generate(&[]).code(0).stdout,
            "{}",
            kind.file
        );
    }
    folder.run(&["generate", "--go", &go, "--check", "crds"]).code(0);
    let before = |kind: &Sample| {
        fs::metadata(folder.path().join(format!("crds/{}.yaml", kind.kind))).unwrap().modified().unwrap()
    };
    let times: Vec<_> = kinds.iter().map(before).collect();
    folder.run(&["generate", "--go", &go, "-w", "crds"]).code(0);
    assert_eq!(kinds.iter().map(before).collect::<Vec<_>>(), times, "what stays as it is is not written");
}

#[test]
fn kinds_are_generated_alone_as_together() {
    let kinds = Sample::all();
    let files: Vec<String> = kinds.iter().map(Sample::path).collect();
    for inputs in [&files[..], &["crds".to_owned()]] {
        let inputs = inputs.iter().map(String::as_str);
        let arguments: Vec<&str> = ["--go", "fleet", "--check", "-o", "json"].into_iter().chain(inputs).collect();
        let report = generate(&arguments).code(1).stdout;
        let report = Report::parse(&report);
        for kind in &kinds {
            assert_eq!(report.of_kind(&kind.kind), kind.wanted(), "{} among others", kind.file);
        }
        let known: BTreeSet<&str> = kinds.iter().map(|kind| &*kind.kind).collect();
        assert!(report.kinds.iter().all(|kind| known.contains(&*kind.kind)));
    }
}

#[test]
fn packages_may_be_given_one_by_one() {
    let kinds = Sample::all();
    let ways: [&[&str]; 3] = [
        &["fleet/common", "fleet/api/v1beta1", "fleet/api/v1"],
        &["./fleet/api/...", "./fleet/common/..."],
        &["fleet/api", "fleet", "fleet/common/object-store"],
    ];
    for (name, folders) in ["Rollout", "Backup"].into_iter().flat_map(|name| ways.map(|folders| (name, folders))) {
        let kind = kinds.iter().find(|kind| kind.kind == name).unwrap();
        let (path, sources) = (kind.path(), folders.iter().flat_map(|folder| ["--go", folder]));
        let arguments: Vec<&str> = sources.chain(["--check", "-o", "json", &*path]).collect();
        let report = Report::parse(&generate(&arguments).code(1).stdout);
        assert_eq!(told(&report.of_kind(name)), kind.told(), "{name}");
    }
}

#[test]
fn the_kinds_that_are_asked_for_are_generated_and_no_other() {
    let arguments = ["--go", "fleet", "--kind", "Backup", "--kind", "Source", "--check", "-o", "json", "crds"];
    let report = Report::parse(&generate(&arguments).code(1).stdout);
    let kinds: BTreeSet<&str> = report.kinds.iter().map(|kind| &*kind.kind).collect();
    assert_eq!(kinds, BTreeSet::from(["Backup", "Source"]));

    let rollout = "crds/fleet.example.com_rollouts.yaml";
    let untouched = fs::read_to_string(samples().join(rollout)).unwrap();
    let run = generate(&["--go", "fleet", "--kind", "Backup", rollout, "crds/fleet.example.com_backups.yaml"]).code(0);
    assert!(run.stdout.contains(untouched.trim_start_matches("---\n")), "another kind passes as it is");
}

#[test]
fn doubts_are_reported_and_left_out() {
    let (folder, doubts) = Doubt::all();
    assert!(doubts.len() > 15, "{}", doubts.len());
    for doubt in doubts {
        let (package, definition) = (doubt.package(), doubt.definition());
        let generate = |more: &[&str]| folder.run(&[&["generate", "--go", &package, &definition], more].concat());
        let report = Report::parse(&generate(&["--check", "-o", "json"]).says(&[]).stdout);
        for wanted in &doubt.findings {
            let is_told = report.findings.iter().any(|finding| finding.is(wanted));
            assert!(is_told, "{}: nobody says {wanted:#?}, but {:#?}", doubt.kind, report.findings);
        }
        let found: BTreeSet<_> =
            report.unions().map(|(_, union)| (union.path.clone(), union.discriminator.clone())).collect();
        assert_eq!(found, doubt.unions, "{}", doubt.kind);

        let is_error = doubt.findings.iter().any(|finding| finding.severity == Severity::Error);
        if is_error {
            generate(&[]).says(&[]).code(1);
        }
        let allowing = generate(&["--allow-ambiguous"]).says(&[]);
        if !doubt.allowed {
            assert!(!is_error || allowing.code == 1, "{}: {allowing:#?}", doubt.kind);
            continue;
        }
        folder.write("made.yaml", &allowing.code(0).stdout);
        let made = match doubt.unions.len() {
            0 => Vec::new(),
            _ => explained_unions(&folder.run(&["explain", "-o", "json", "--from", "made.yaml"]).code(0).json()),
        };
        let made: BTreeSet<_> = made.into_iter().map(|(_, path, _, discriminator, _)| (path, discriminator)).collect();
        assert_eq!(made, doubt.unions, "{}: --allow-ambiguous", doubt.kind);
    }
}

#[test]
fn a_package_that_is_not_given_is_named_and_its_unions_are_not_guessed() {
    let rollouts = "crds/fleet.example.com_rollouts.yaml";
    let arguments = ["--go", "fleet/api", "--check", "-o", "json", rollouts];
    let report = Report::parse(&generate(&arguments).code(1).stdout);
    let paths: BTreeSet<(&str, &str)> =
        report.unions().map(|(kind, union)| (kind.version.as_str(), union.path.as_str())).collect();
    let of_the_package =
        [("v1", "spec.strategy"), ("v1", "spec.notice"), ("v1", "status.outcome"), ("v1beta1", "spec.strategy")];
    assert_eq!(paths, BTreeSet::from(of_the_package));
    let named = report.findings.iter().any(|finding| finding.message.contains("example.com/fleet/common"));
    assert!(named, "{:#?}", report.findings);
}
