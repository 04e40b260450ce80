//! Plays the rows of `tests/cases` on an API server.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};

use super::agreement::{StoredObject, Subject};
use super::{Api, IN_FORCE, fields_of_kind, policy_message, policy_warnings, sorted, without_nulls};
use crate::support::cluster::say;
use crate::support::http::Answer;
use crate::support::kind::forget_unions;
use fixtures::cases::{Alone, EXCEPTIONS, Mode, Row, Suite, suites};
use fixtures::files::{parse, root};
use fixtures::reviews::{Cause, declaration};
use fixtures::wait::eventually;

/// A way to enforce unions.
pub(crate) trait Installer {
    /// Returns the API group of the kinds that the rows are played on.
    fn group(&self) -> &'static str;

    /// Returns true if the rows of a file are played.
    fn plays(&self, _path: &str) -> bool {
        true
    }

    /// Returns the CRD to install, and the policies beside it. Installing an error fails the rows of the suite with it.
    fn compile(&self, played: &Played<'_>) -> Result<Installed, String>;

    /// Compares the words of a denial with those of a row.
    fn same_causes(&self, answer: &Answer, wanted: &[Cause]) -> Result<(), String> {
        same_causes(answer, wanted)
    }

    /// Compares the warnings of an answer with those of a row.
    fn same_warnings(&self, answer: &Answer, wanted: &[String]) -> Result<(), String>;
}

/// The objects that enforce the unions of a kind.
pub(crate) struct Installed {
    /// The CRD.
    pub(crate) definition: Value,
    /// The policies with their bindings, or what else the API server needs.
    pub(crate) policies: Vec<Value>,
}

/// The rows of a suite that are played on one kind.
pub(crate) struct Played<'s> {
    /// The suite.
    pub(crate) suite: &'s Suite,
    /// True if faults are let through that the request did not change.
    pub(crate) ratchet: bool,
    pub(crate) subject: Subject,
    path: &'s str,
    rows: Vec<PlayedRow<'s>>,
}

struct PlayedRow<'s> {
    row: &'s Row,
    name: String,
    stored: Option<StoredObject>,
}

/// The rows that ways to enforce unions cannot hold, with a reason.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    reason: String,
    r#in: Vec<String>,
    /// The descriptions of rows by their file, or nothing for every row of it.
    #[serde(default)]
    rows: BTreeMap<String, Option<Vec<String>>>,
    /// The rows that have this reason unless they are listed for another one.
    every: Option<Every>,
}

/// A property that all rows of one reason share.
#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "camelCase")]
enum Every {
    /// The object is changed.
    Changed,
    /// A fault is let through because the request did not change it.
    LetThrough,
    /// Ratcheting is disabled.
    Strict,
    /// A denial says how to switch the member.
    Switching,
}

impl Every {
    fn has(self, row: &Row) -> bool {
        match self {
            Self::Changed => row.want.is_some(),
            Self::LetThrough => row
                .want_warnings
                .iter()
                .flatten()
                .any(|it| it.ends_with("let through because the union did not change")),
            Self::Strict => row.ratcheting == Mode::Disabled,
            Self::Switching => row.want_causes.iter().flatten().any(|it| it.message.ends_with("to switch the member")),
        }
    }
}

/// A row: its file and its description.
type RowName = (String, String);

/// Plays every row. Fails unless exactly the rows do not hold that the list has for this way.
pub(crate) fn play(native: &Api, installer: &dyn Installer, way: &str) {
    // Real applies are played by `crate::applied`.
    let is_played = |path: &str| !path.starts_with("applied/") && installer.plays(path);
    let mut suites: BTreeMap<_, _> = suites().into_iter().collect();
    let mut exceptions = exceptions(way, &suites);
    exceptions.retain(|(path, _), _| is_played(path));
    suites.retain(|path, _| is_played(path));
    let (mut failed, mut kinds) = (BTreeMap::new(), Vec::new());
    for played in played(installer, &suites) {
        match installer.compile(&played) {
            Ok(objects) => {
                let begins_loose = played.has_old_objects();
                native.apply(&if begins_loose { loose(&objects.definition) } else { objects.definition.clone() });
                kinds.push((played, objects));
            }
            Err(reason) => failed.extend(played.rows.iter().map(|row| (played.row_name(row), reason.clone()))),
        }
    }
    for (played, _) in &mut kinds {
        played.store_old_objects(native);
    }
    for (played, installed) in &kinds {
        let is_loose = installed.definition == loose(&installed.definition);
        if !is_loose && played.has_old_objects() {
            native.apply(&installed.definition);
        }
        for policy in &installed.policies {
            native.apply(policy);
        }
        if !is_loose {
            played.wait_for_schema(native);
        }
    }
    let rows = kinds.iter().flat_map(|(played, _)| played.rows.iter().map(move |row| (played, row)));
    let count = rows.clone().count();
    // Each row is played until it holds, so that the policies are in force for the rows that hold without them, too.
    let is_expected = |(played, row): &(&Played<'_>, &PlayedRow<'_>)| {
        tells(row.row) && !exceptions.contains_key(&played.row_name(row))
    };
    let (mut telling, others): (Vec<_>, Vec<_>) = rows.partition(is_expected);
    eventually(IN_FORCE, || {
        while telling.pop_if(|(played, row)| played.hold(native, installer, row).is_ok()).is_some() {}
        telling.is_empty()
    });
    let refused = failed.len();
    for (played, row) in telling.into_iter().chain(others) {
        if let Err(difference) = played.hold(native, installer, row) {
            failed.insert(played.row_name(row), difference);
        }
    }
    let held = count + refused - failed.len();
    say(&format!("{held} rows hold, {} do not", failed.len()));
    assert!(held > 100, "only {held} rows hold");
    let mut wrong = Vec::new();
    for ((path, row), difference) in &failed {
        if !exceptions.contains_key(&(path.clone(), row.clone())) {
            wrong.push(format!("does not hold: {path}: {row}\n    {difference}"));
        }
    }
    for ((path, row), reason) in &exceptions {
        if !failed.contains_key(&(path.clone(), row.clone())) {
            wrong.push(format!("holds, or is gone: {path}: {row}\n    listed because: {reason}"));
        }
    }
    assert!(wrong.is_empty(), "{EXCEPTIONS} is wrong about {} rows in {way}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Reads the rows that do not hold in a way, with their reasons.
fn exceptions(way: &str, suites: &BTreeMap<String, Suite>) -> BTreeMap<RowName, String> {
    let path = root().join("tests/cases").join(EXCEPTIONS);
    let groups: Vec<Exception> = parse(EXCEPTIONS, &std::fs::read_to_string(path).expect("the list can be read"));
    let (mut all, mut every) = (BTreeMap::new(), Vec::new());
    for group in groups.into_iter().filter(|group| group.r#in.iter().any(|it| it == way)) {
        assert!(
            group.reason.ends_with('.') && (group.every.is_some() || !group.rows.is_empty()),
            "{EXCEPTIONS}: a reason is a sentence about rows"
        );
        for (path, rows) in group.rows {
            let of_file = || suites[&path].rows.iter().map(|row| row.description.clone()).collect();
            for row in rows.unwrap_or_else(of_file) {
                let again = all.insert((path.clone(), row.clone()), group.reason.clone());
                assert!(again.is_none(), "{EXCEPTIONS}: {path}: {row}: listed twice for {way}");
            }
        }
        every.extend(group.every.map(|every| (every, group.reason)));
    }
    for (every, reason) in every {
        let rows = suites.iter().flat_map(|(path, suite)| suite.rows.iter().map(move |row| (path, row)));
        for (path, row) in rows.filter(|(_, row)| every.has(row)) {
            all.entry((path.clone(), row.description.clone())).or_insert_with(|| reason.clone());
        }
    }
    all
}

/// Returns a kind for each suite and mode of ratcheting.
fn played<'s>(installer: &dyn Installer, suites: &'s BTreeMap<String, Suite>) -> Vec<Played<'s>> {
    let mut kinds = Vec::new();
    for (path, suite) in suites {
        for ratchet in [true, false] {
            let of_mode = |row: &&Row| (row.ratcheting == Mode::Enabled) == ratchet;
            let rows: Vec<&Row> = suite.rows.iter().filter(of_mode).collect();
            if rows.is_empty() {
                continue;
            }
            let kind = format!("Thing{}", kinds.len());
            let name = |number| format!("row{number}");
            let rows = rows.into_iter().enumerate();
            let rows = rows.map(|(number, row)| PlayedRow { row, name: name(number), stored: None }).collect();
            let (group, catalog) = (installer.group(), suite.catalog(installer.group(), &kind));
            let mut definition = suite.definition(group, &kind, &suite.schema);
            forget_unions(&mut definition);
            kinds.push(Played { suite, ratchet, subject: Subject::of_catalog(definition, catalog), path, rows });
        }
    }
    kinds
}

/// Returns the CRD with a schema that takes every object.
pub(crate) fn loose(definition: &Value) -> Value {
    let mut loose = definition.clone();
    loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    loose
}

/// Returns true if a row cannot hold before the unions are enforced.
fn tells(row: &Row) -> bool {
    row.want.is_some() || row.want_causes.is_some() || row.want_warnings.iter().any(|all| !all.is_empty())
}

impl Played<'_> {
    /// Returns the CRD with its unions, as its author applies it.
    pub(crate) fn authored(&self) -> Value {
        self.suite.authored(&self.subject.api.group, self.subject.kind())
    }

    /// Returns the `UnionDeclaration`s of the kind.
    pub(crate) fn declarations(&self) -> impl Iterator<Item = Value> {
        let (group, kind) = (&self.subject.api.group, self.subject.kind());
        let prefix = kind.to_lowercase();
        let declarations = self.suite.declarations.iter();
        declarations.map(move |(name, spec)| declaration(&format!("{prefix}-{name}"), group, kind, spec))
    }

    fn row_name(&self, row: &PlayedRow<'_>) -> RowName {
        (self.path.to_owned(), row.row.description.clone())
    }

    fn has_old_objects(&self) -> bool {
        self.rows.iter().any(|played| played.row.old.is_some())
    }

    /// Stores the old object of every row, under a schema that takes every object.
    fn store_old_objects(&mut self, native: &Api) {
        native.wait_until_served(&self.subject.api.path(""));
        for PlayedRow { row, name, stored } in &mut self.rows {
            *stored = row.old.as_ref().map(|old| self.subject.store(native, name, old));
        }
    }

    /// Waits until the API server validates by the schema: it knows no field of this name.
    fn wait_for_schema(&self, native: &Api) {
        let probe = self.subject.api.object("probe", &json!({"zzUnknown": 1}));
        let url = format!("{}?dryRun=All&fieldValidation=Strict", self.subject.api.path(""));
        let in_force = eventually(IN_FORCE, || {
            let answer = native.send("POST", &url, &probe);
            answer.status == 400 && answer.body.to_string().contains("zzUnknown")
        });
        assert!(in_force, "{}: the schema was not in force", self.path);
    }

    /// Writes the object of a row without storing it, and compares the result.
    fn hold(&self, native: &Api, installer: &dyn Installer, played: &PlayedRow<'_>) -> Result<(), String> {
        let PlayedRow { row, name, stored } = played;
        let new = row.new.as_ref().unwrap_or(&Value::Null);
        let is_deletion = row.operation.as_deref() == Some("DELETE");
        let answer = if is_deletion {
            native.send("DELETE", &format!("{}?dryRun=All", self.subject.api.path(name)), &json!({}))
        } else {
            let subresource = row.subresource.as_deref().unwrap_or_default();
            self.subject.try_ask(native, stored.as_ref(), subresource, new).unwrap_or_else(|error| panic!("{error}"))
        };
        match (&row.want_causes, answer.is_success()) {
            (Some(causes), false) => installer.same_causes(&answer, causes),
            (Some(_), true) => Err(format!("let through as {}", fields_of_kind(&answer.body))),
            (None, false) => Err(format!("{}: {}", answer.status, answer.body["message"])),
            (None, true) if is_deletion => Ok(()),
            (None, true) => self.same_object(row, &answer.body).and_then(|()| {
                let is_judged = self.suite.phase != Some(Alone::Mutate);
                if is_judged {
                    installer.same_warnings(&answer, row.want_warnings.as_deref().unwrap_or_default())
                } else {
                    Ok(())
                }
            }),
        }
    }

    fn same_object(&self, row: &Row, body: &Value) -> Result<(), String> {
        let (mut got, mut want) = (
            without_nulls(&fields_of_kind(body)),
            without_nulls(row.want.as_ref().or(row.new.as_ref()).unwrap_or(&Value::Null)),
        );
        // A write of one part leaves the other as it is stored.
        if self.suite.status_subresource {
            let part = |object: &mut Value| {
                let fields = object.as_object_mut().expect("an object");
                fields.retain(|name, _| (name == "status") == (row.subresource.as_deref() == Some("status")));
            };
            part(&mut got);
            part(&mut want);
        }
        if got == want { Ok(()) } else { Err(format!("stored {got}\n      want {want}")) }
    }
}

/// Compares the words of a denial. A policy joins its causes to one message. The schema's own validation may deny in the
/// same words as a union.
pub(crate) fn same_causes(answer: &Answer, wanted: &[Cause]) -> Result<(), String> {
    if let Some(message) = policy_message(answer) {
        // The root has no path.
        let told = |cause: &Cause| match &*cause.field {
            "" => cause.message.clone(),
            field => format!("{field}: {}", cause.message),
        };
        let wanted: Vec<_> = wanted.iter().map(told).collect();
        let wanted = wanted.join("; ");
        return if sorted(message) == sorted(&wanted) {
            Ok(())
        } else {
            Err(format!("denied {message}\n      want {wanted}"))
        };
    }
    let told = answer.body["details"]["causes"].as_array().map_or(&[][..], Vec::as_slice);
    let cause = |field: &str, reason: &Value, message: &Value| format!("{field} {reason} {message}");
    // The API server says so of rules, beside the faults that it found by the schema.
    let told = told.iter().filter(|it| !it["message"].as_str().unwrap_or_default().contains("were not checked"));
    let told: BTreeSet<_> =
        told.map(|it| cause(it["field"].as_str().unwrap_or_default(), &it["reason"], &it["message"])).collect();
    let text = |text: &str| Value::String(text.to_owned());
    let wanted: BTreeSet<_> = wanted.iter().map(|it| cause(&it.field, &text(&it.reason), &text(&it.message))).collect();
    if told == wanted {
        Ok(())
    } else {
        Err(format!("denied {} {}\n      want {wanted:?}", answer.status, answer.body["message"]))
    }
}

/// Compares the faults that policies let through. A policy joins them to one warning.
pub(crate) fn same_policy_warnings(answer: &Answer, wanted: &[String]) -> Result<(), String> {
    let wanted: Vec<_> = wanted.iter().filter(|it| it.contains("let through")).map(String::as_str).collect();
    let (told, wanted) = (sorted(&policy_warnings(answer).join("; ")), sorted(&wanted.join("; ")));
    if told == wanted { Ok(()) } else { Err(format!("warned {told}\n      want {wanted}")) }
}
