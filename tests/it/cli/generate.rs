//! `generate`: from Go sources and their CRDs to CRDs with unions.

mod baseline;
mod broken;
mod from_crd;
mod rows;
mod scale;
mod standing;

use super::{Folder, Run, binary, run};
use fixtures::files::parse;
use rows::{Doubt, Finding, Form, Sample, Severity, Union, samples};
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
    #[serde(default, rename = "staleBaselineEntries")]
    stale: Vec<Value>,
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnionReport {
    path: String,
    form: Form,
    discriminator: Option<String>,
    members: Vec<String>,
    choices: Vec<ChoiceReport>,
    required: bool,
    #[serde(rename = "emptyIsUnset")]
    empty_is_unset: BTreeSet<String>,
    evidence: String,
    #[serde(rename = "type")]
    type_name: String,
    file: String,
    line: usize,
    column: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChoiceReport {
    value: String,
    members: Vec<MemberReport>,
}

#[derive(Debug, Clone, Deserialize)]
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

impl Report {
    #[track_caller]
    fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    fn unions(&self) -> impl Iterator<Item = (&KindReport, &UnionReport)> {
        self.kinds.iter().flat_map(|kind| kind.unions.iter().map(move |union| (kind, union)))
    }

    fn union(&self, wanted: &Union) -> Option<&UnionReport> {
        let mut found = self.unions().filter(|(kind, union)| {
            let of_wanted = |name: &String| wanted.member_names().contains(&**name);
            (&kind.version, &union.path, &union.discriminator) == (&wanted.version, &wanted.path, &wanted.discriminator)
                && union.members.iter().any(of_wanted)
        });
        found.next().map(|(_, union)| union)
    }

    /// The report about one kind, sorted.
    fn told(&self, group: &str, kind: &str) -> Vec<Told> {
        let unions = self.unions().filter(|(found, _)| found.group == group && found.kind == kind);
        let mut told: Vec<Told> = unions
            .map(|(kind, union)| {
                let chosen = |choice: &ChoiceReport| {
                    let member = |it: &MemberReport| (it.name.clone(), union.form == Form::Map && it.optional);
                    (choice.value.clone(), choice.members.iter().map(member).collect())
                };
                // The form of 2019 has no empty members; that a value has no field is not a matter of it.
                let counts = |choice: &&ChoiceReport| union.form == Form::Map || !choice.members.is_empty();
                let choices = union.choices.iter().filter(counts).map(chosen).collect();
                (kind.version.clone(), union.path.clone(), union.form, union.discriminator.clone(), choices)
            })
            .collect();
        told.sort();
        told
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
    /// The expected unions, sorted.
    fn told(&self) -> Vec<Told> {
        let mut told: Vec<Told> = self
            .unions
            .iter()
            .map(|union| {
                let chosen = |member: &rows::Member| (member.name().to_owned(), member.is_optional());
                let choices =
                    union.choices.iter().map(|(value, member)| (value.clone(), member.iter().map(chosen).collect()));
                let (version, path) = (union.version.clone(), union.path.clone());
                (version, path, union.form, union.discriminator.clone(), choices.collect())
            })
            .collect();
        told.sort();
        told
    }

    #[track_caller]
    fn generate(&self, more: &[&str]) -> Run {
        generate(&[&*self.inputs(), more].concat())
    }

    /// The CRD with its unions.
    fn generated(&self, more: &[&str]) -> String {
        self.generate(more).code(0).stdout
    }

    fn report(&self) -> Report {
        Report::parse(&self.generate(&["--check", "-o", "json"]).code(1).stdout)
    }
}

/// Runs `generate` in the folder of the samples.
fn generate(arguments: &[&str]) -> Run {
    run(Command::new(binary()).current_dir(samples()).arg("generate").args(arguments), b"")
}

/// Every failure at once: rows are many, and each is a question of its own.
struct Failures(Vec<String>);

impl Failures {
    fn new() -> Self {
        Self(Vec::new())
    }

    fn note(&mut self, holds: bool, message: impl FnOnce() -> String) {
        if !holds {
            self.0.push(message());
        }
    }

    #[track_caller]
    fn end(self) {
        assert!(self.0.is_empty(), "{} failed:\n\n{}", self.0.len(), self.0.join("\n\n"));
    }
}

#[test]
fn every_union_of_the_samples_is_found_and_nothing_else() {
    let mut failures = Failures::new();
    for kind in Sample::all() {
        let (wanted, found) = (kind.told(), kind.report().told(&kind.group, &kind.kind));
        for union in wanted.iter().filter(|union| !found.contains(union)) {
            failures.note(false, || format!("{}: not found: {union:?}", kind.file));
        }
        for union in found.iter().filter(|union| !wanted.contains(union)) {
            failures.note(false, || format!("{}: found: {union:?}", kind.file));
        }
    }
    failures.end();
}

#[test]
fn a_union_is_reported_with_its_members_its_struct_and_where_it_stands() {
    let mut failures = Failures::new();
    for kind in Sample::all() {
        let report = kind.report();
        for wanted in &kind.unions {
            let Some(union) = report.union(wanted) else { continue };
            let name = format!("{}: {}", kind.file, wanted.name());
            let members: BTreeSet<&str> = union.members.iter().map(String::as_str).collect();
            failures.note(members == wanted.member_names(), || format!("{name}: members {members:?}"));
            failures.note(members.len() == union.members.len(), || format!("{name}: twice in {:?}", union.members));
            failures.note(wanted.type_name.as_ref().is_none_or(|wanted| *wanted == union.type_name), || {
                format!("{name}: type {} instead of {:?}", union.type_name, wanted.type_name)
            });
            failures.note(union.evidence == wanted.evidence, || format!("{name}: evidence {}", union.evidence));
            let options = (union.required, &union.empty_is_unset);
            failures.note(options == (wanted.required, &wanted.empty_is_unset), || format!("{name}: {options:?}"));
            for member in union.choices.iter().flat_map(|choice| &choice.members) {
                // A member that is found by name is required by a rule or not at all.
                let by_rule = wanted.evidence == "names" && !member.optional;
                failures
                    .note(member.evidence.as_deref() == by_rule.then_some("rule"), || format!("{name}: {member:?}"));
            }
            let (line, column) = wanted.source.position();
            failures.note((&*wanted.source.file, line, column) == (&*union.file, union.line, union.column), || {
                format!(
                    "{name}: at {}:{}:{} instead of {}:{line}:{column}",
                    union.file, union.line, union.column, wanted.source.file
                )
            });
        }
        for (version, source) in &kind.structs {
            let found = report.kinds.iter().find(|found| (&found.kind, &found.version) == (&kind.kind, version));
            let Some(found) = found else {
                failures.note(false, || format!("{}: {version} is not reported", kind.file));
                continue;
            };
            let definition: Value = parse(&kind.file, &kind.definition());
            assert_eq!(found.definition, definition["metadata"]["name"].as_str().unwrap());
            let (line, _) = source.position();
            failures.note((&*source.file, line) == (&*found.file, found.line) && found.column > 0, || {
                format!(
                    "{}: {version} at {}:{}:{} instead of line {line}",
                    kind.file, found.file, found.line, found.column
                )
            });
        }
    }
    failures.end();
}

#[test]
fn warnings_are_those_of_the_rows() {
    let mut failures = Failures::new();
    for kind in Sample::all() {
        let report = kind.report();
        let found = || report.findings.iter().filter(|finding| finding.severity > Severity::Note);
        for wanted in &kind.findings {
            failures.note(found().any(|finding| finding.is(wanted)), || {
                format!("{}: nobody says {wanted:?}, but {:#?}", kind.file, found().collect::<Vec<_>>())
            });
        }
        for wanted in &kind.notes {
            failures.note(report.findings.iter().any(|finding| finding.is(wanted)), || {
                format!("{}: nobody notes {wanted:?}, but {:#?}", kind.file, report.findings)
            });
        }
        for finding in found() {
            failures.note(kind.findings.iter().any(|wanted| finding.is(wanted)), || {
                format!("{}: nobody asked for {finding:#?}", kind.file)
            });
        }
    }
    failures.end();
}

#[test]
fn the_report_for_people_has_every_union_with_its_place_in_the_sources() {
    let mut failures = Failures::new();
    for kind in Sample::all() {
        let run = kind.generate(&[]).code(0);
        for union in &kind.unions {
            let (line, _) = union.source.position();
            let place = format!("{}:{line}", union.source.file);
            // Without a discriminator, values are names that nothing has to be called by.
            let values = union.choices.keys().filter(|_| union.discriminator.is_some());
            let texts = values.chain([&union.path, &place]).chain(&union.discriminator);
            for text in texts.map(String::as_str).chain(union.member_names()) {
                failures.note(run.stderr.contains(text), || {
                    format!("{}: {}: no `{text}` in\n{}", kind.file, union.name(), run.stderr)
                });
            }
        }
        assert_eq!(kind.generate(&["--check"]).code(1).stdout, run.stderr, "the report goes where no CRDs go");
    }
    failures.end();
}

#[test]
fn nothing_of_a_definition_changes_but_the_annotation() {
    for kind in Sample::all() {
        let (before, after) = (kind.definition(), kind.generated(&[]));
        let added = |line: &&str| line.contains("kube-unions.dev/unions");
        assert_eq!(after.lines().filter(added).count(), 1, "{after}");
        let mut rest = after.lines().filter(|line| !added(line)).collect::<Vec<_>>();
        if !before.contains("  annotations:\n") {
            let new = rest.iter().position(|line| *line == "  annotations:").expect("a place for the annotation");
            rest.remove(new);
        }
        assert_eq!(rest, before.lines().collect::<Vec<_>>(), "{}", kind.file);
    }
}

#[test]
fn the_other_commands_read_what_was_generated() {
    let mut failures = Failures::new();
    for kind in Sample::all() {
        for more in [&[][..], &["--in-schema"]] {
            let folder = Folder::new(&[("crd.yaml", &kind.generated(more))]);
            folder.run(&["lint", "crd.yaml"]).code(0);
            folder.write("annotated.yaml", folder.run(&["annotate", "crd.yaml"]).code(0).stdout);
            for file in ["crd.yaml", "annotated.yaml"] {
                let explained = folder.run(&["explain", "-o", "json", "--from", file]).code(0).json();
                let (found, wanted) = (explained_unions(&explained), kind.told());
                failures.note(found == wanted, || {
                    format!("{} {more:?}, {file}:\n{found:#?}\ninstead of\n{wanted:#?}", kind.file)
                });
            }
            failures.note(more.is_empty() == (folder.read("annotated.yaml") == folder.read("crd.yaml")), || {
                format!(
                    "{} {more:?}: what stands in the schema moves, and what stands in the annotation stays",
                    kind.file
                )
            });
        }
    }
    failures.end();
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
fn objects_do_what_the_rows_say_under_what_was_generated() {
    for kind in Sample::all() {
        kind.hold(&parse(&kind.file, &kind.generated(&[])));
    }
}

#[test]
fn generating_twice_changes_nothing() {
    for kind in Sample::all() {
        for more in [&[][..], &["--in-schema"]] {
            let once = kind.generated(more);
            assert_eq!(once, kind.generated(more), "{}: the same input gives the same bytes", kind.file);
            let folder = Folder::new(&[("crd.yaml", &once)]);
            let again = |more: &[&str]| {
                let sources = kind.sources.iter().map(|source| samples().join(source).to_str().unwrap().to_owned());
                let sources: Vec<String> = sources.flat_map(|source| ["--go".to_owned(), source]).collect();
                let mut arguments = vec!["generate"];
                arguments.extend(sources.iter().map(String::as_str));
                arguments.extend(kind.arguments.iter().map(String::as_str));
                arguments.extend(more);
                folder.run(&[&*arguments, &["crd.yaml"]].concat())
            };
            again(more).code(0).prints(&once);
            again(&[more, &["--check"]].concat()).code(0);
            again(&[more, &["--write"]].concat()).code(0);
            assert_eq!(folder.read("crd.yaml"), once, "{}", kind.file);
        }
    }
}

#[test]
fn files_are_written_in_place_and_a_second_time_stay() {
    let go = samples().join("fleet").to_str().unwrap().to_owned();
    let folder = Folder::new(&[]);
    let kinds: Vec<Sample> = Sample::all().into_iter().filter(|kind| kind.arguments.is_empty()).collect();
    for kind in &kinds {
        folder.write(&format!("crds/{}.yaml", kind.kind), kind.definition());
    }
    folder.run(&["generate", "--go", &go, "--check", "crds"]).code(1);
    folder.run(&["generate", "--go", &go, "-w", "crds"]).code(0);
    for kind in &kinds {
        assert_eq!(folder.read(&format!("crds/{}.yaml", kind.kind)), kind.generated(&[]), "{}", kind.file);
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
    let all = Sample::all();
    let kinds: Vec<&Sample> = all.iter().filter(|kind| kind.arguments.is_empty()).collect();
    let definitions: Vec<&str> = kinds.iter().flat_map(|kind| &kind.definitions).map(String::as_str).collect();
    let folders = ["crds/fleet", "crds/by-hand"];
    for inputs in [&definitions[..], &folders] {
        let report = generate(&[&["--go", "fleet", "--check", "-o", "json"], inputs].concat()).code(1).stdout;
        let report = Report::parse(&report);
        for kind in &kinds {
            assert_eq!(report.told(&kind.group, &kind.kind), kind.told(), "{} among others", kind.file);
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
        let sources = folders.iter().flat_map(|folder| ["--go", folder]);
        let arguments: Vec<&str> = sources.chain(["--check", "-o", "json", &kind.definitions[0]]).collect();
        let report = Report::parse(&generate(&arguments).code(1).stdout);
        assert_eq!(report.told(&kind.group, name), kind.told(), "{name}");
    }
}

#[test]
fn the_kinds_that_are_asked_for_are_generated_and_no_other() {
    let arguments = ["--go", "fleet", "--kind", "Backup", "--kind", "Source", "--check", "-o", "json", "crds/fleet"];
    let report = Report::parse(&generate(&arguments).code(1).stdout);
    let kinds: BTreeSet<&str> = report.kinds.iter().map(|kind| &*kind.kind).collect();
    assert_eq!(kinds, BTreeSet::from(["Backup", "Source"]));

    let rollout = "crds/fleet/fleet.example.com_rollouts.yaml";
    let untouched = fs::read_to_string(samples().join(rollout)).unwrap();
    let run =
        generate(&["--go", "fleet", "--kind", "Backup", rollout, "crds/fleet/fleet.example.com_backups.yaml"]).code(0);
    assert!(run.stdout.contains(untouched.trim_start_matches("---\n")), "another kind passes as it is");
}

#[test]
fn definitions_come_through_a_pipe() {
    for kind in Sample::all() {
        let sources = kind.sources.iter().flat_map(|source| ["--go", source]);
        let arguments: Vec<&str> = sources.chain(kind.arguments.iter().map(String::as_str)).chain(["-"]).collect();
        let mut command = Command::new(binary());
        command.current_dir(samples()).arg("generate").args(arguments);
        run(&mut command, kind.definition().as_bytes()).code(0).prints(&kind.generated(&[]));
    }
}

#[test]
fn doubts_are_reported_and_left_out() {
    let mut failures = Failures::new();
    let (folder, doubts) = Doubt::all();
    assert!(doubts.len() > 15, "{}", doubts.len());
    for doubt in doubts {
        let (package, definition) = (doubt.package(), doubt.definition());
        let generate = |more: &[&str]| folder.run(&[&["generate", "--go", &package, &definition], more].concat());
        let report = Report::parse(&generate(&["--check", "-o", "json"]).stdout);
        for wanted in &doubt.findings {
            failures.note(report.findings.iter().any(|finding| finding.is(wanted)), || {
                format!("{}: nobody says {wanted:#?}, but {:#?}", doubt.kind, report.findings)
            });
        }
        let found: BTreeSet<_> =
            report.unions().map(|(_, union)| (union.path.clone(), union.discriminator.clone())).collect();
        failures.note(found == doubt.unions, || format!("{}: unions {found:?}", doubt.kind));

        let is_error = doubt.findings.iter().any(|finding| finding.severity == Severity::Error);
        let strict = generate(&[]);
        failures.note(!is_error || strict.code == 1, || format!("{}: exits {}", doubt.kind, strict.code));
        let allowing = generate(&["--allow-ambiguous"]);
        failures.note(!is_error || allowing.code == i32::from(!doubt.allowed), || {
            format!("{}: --allow-ambiguous exits {}", doubt.kind, allowing.code)
        });
        if doubt.allowed {
            folder.write("made.yaml", &allowing.stdout);
            let made = match doubt.unions.len() {
                0 => Vec::new(),
                _ => explained_unions(&folder.run(&["explain", "-o", "json", "--from", "made.yaml"]).code(0).json()),
            };
            let made: BTreeSet<_> =
                made.into_iter().map(|(_, path, _, discriminator, _)| (path, discriminator)).collect();
            failures.note(made == doubt.unions, || format!("{}: --allow-ambiguous makes {made:?}", doubt.kind));
        }
        for text in [&strict, &allowing] {
            assert!(!text.stderr.contains("panicked"), "{text:#?}");
        }
    }
    failures.end();
}

#[test]
fn a_package_that_is_not_given_is_named_and_its_unions_are_not_guessed() {
    let rollouts = "crds/fleet/fleet.example.com_rollouts.yaml";
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
