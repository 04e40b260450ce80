//! Creates of built-in kinds that a chart renders wrong, and their valid neighbours: `preview`, `audit` and the playground predict the answer of
//! a real API server, in its words.

use serde_json::{Value, json};
use std::collections::BTreeMap;

use crate::builtin::{Objects, collection};
use crate::presets::list;
use crate::preview::{Predicted, Upgrade, predict_after, set};
use crate::support::cluster::say;
use crate::support::http::Answer;
use crate::support::process::Workspace;
use crate::support::webhook::kube_unions;

/// Returns the creates of the rows, each with a name of its own.
fn creates() -> Vec<Upgrade> {
    let rows = list(include_str!("creates.yaml"));
    let of_row = |row: &Value| -> Vec<Upgrade> {
        let (object, at) = (&row["object"], row["at"].as_str().unwrap());
        let of_value = |value: &Value| {
            let mut new = object.clone();
            set(&mut new, at, value.clone());
            Upgrade { title: format!("{} {at}: {value}", object["kind"]), old: Value::Null, new }
        };
        row["values"].as_array().unwrap().iter().map(of_value).collect()
    };
    let mut creates: Vec<Upgrade> = rows.iter().flat_map(of_row).collect();
    for (number, create) in creates.iter_mut().enumerate() {
        create.new["metadata"]["name"] = json!(format!("create-{number}"));
    }
    creates
}

/// Returns the answer to a create by a client that posts, or that applies server-side.
fn answer(objects: &Objects, way: &str, object: &Value) -> Answer {
    let at = collection(object);
    if way == "ssa" {
        let name = object["metadata"]["name"].as_str().unwrap();
        let path = format!("{at}/{name}?fieldManager=kubectl&dryRun=All");
        return objects.send("PATCH", &path, "application/apply-patch+yaml", object);
    }
    objects.send("POST", &format!("{at}?dryRun=All"), "application/json", object)
}

#[test]
fn preview_predicts_every_create_of_a_built_in_kind_in_the_words_of_the_server() {
    let Some(objects) = Objects::without_presets() else { return };
    let (workspace, creates) = (Workspace::new("built-in-creates"), creates());
    let (mut faults, mut refused, mut told) = (Vec::new(), 0, 0);
    for way in ["csa", "ssa", "helm"] {
        for (create, predicted) in creates.iter().zip(predict_after(&workspace, way, None, &creates, &[])) {
            let Predicted { rule, words, .. } = predicted;
            let answer = answer(&objects, way, &create.new);
            let said = answer.body["message"].as_str().unwrap_or_default();
            refused += usize::from(!answer.is_success());
            told += usize::from(words.is_some());
            let is_right =
                answer.is_success() == rule.is_none() && words.as_ref().is_none_or(|words| said.contains(words));
            if !is_right {
                faults.push(format!("{way}: {}: {rule:?}, {words:?}, {}: {said}", create.title, answer.status));
            }
        }
    }
    assert!(faults.is_empty(), "{}:\n{}", faults.len(), faults.join("\n"));
    say(&format!("{} creates by each of three ways, refused: {refused}, in these words: {told}", creates.len()));
    assert!(refused > creates.len() && refused < 3 * creates.len(), "{refused} of {}", creates.len());
    assert!(told * 10 > refused * 9, "{told} of {refused}");
}

#[test]
fn audit_and_chart_have_the_verdict_and_the_words_of_the_server_on_every_create() {
    let Some(objects) = Objects::without_presets() else { return };
    let (workspace, creates) = (Workspace::new("built-in-audits"), creates());
    let items: Vec<&Value> = creates.iter().map(|create| &create.new).collect();
    let file =
        workspace.write("creates.json", &json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string());
    let file = file.to_str().unwrap();
    for arguments in [["audit", "-o", "json", "-f", file], ["chart", "-o", "json", "--new", file]] {
        let report = kube_unions(&arguments, "").json();
        let mut notes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for finding in report["findings"].as_array().unwrap() {
            let note = finding["note"].as_str().and_then(|note| note.strip_prefix("the API server says: "));
            notes.entry(finding["name"].as_str().unwrap()).or_default().extend(note);
        }
        for create in &creates {
            let answer = answer(&objects, "csa", &create.new);
            let said = answer.body["message"].as_str().unwrap_or_default();
            let own = notes.get(create.new["metadata"]["name"].as_str().unwrap());
            assert_eq!(own.is_none(), answer.is_success(), "{arguments:?} {}: {said}", create.title);
            assert!(
                own.is_none_or(|notes| notes.iter().all(|note| said.contains(note))),
                "{}: {own:?}: {said}",
                create.title
            );
        }
    }
}

/// Writes a field of an object in small letters: the one at a position among those that have others. Returns false without such a field.
fn misspell(value: &mut Value, position: &mut usize) -> bool {
    match value {
        Value::Array(items) => items.iter_mut().any(|item| misspell(item, position)),
        Value::Object(fields) => {
            let is_written = |name: &&String| name.contains(char::is_uppercase);
            for name in fields.keys().filter(is_written).cloned().collect::<Vec<_>>() {
                if *position == 0 {
                    let value = fields.remove(&name).unwrap();
                    fields.insert(name.to_lowercase(), value);
                    return true;
                }
                *position -= 1;
            }
            fields.values_mut().any(|field| misspell(field, position))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[test]
fn misspelt_fields_are_those_that_the_server_does_not_know() {
    let Some(objects) = Objects::without_presets() else { return };
    let workspace = Workspace::new("built-in-fields");
    let mut misspelt: Vec<Value> = creates().into_iter().map(|create| create.new).collect();
    for (number, object) in misspelt.iter_mut().enumerate() {
        let fields = (0..1_000).take_while(|at| misspell(&mut object["spec"].clone(), &mut { *at })).count();
        // Every third object stays as it is.
        if number % 3 > 0 && fields > 0 {
            assert!(misspell(&mut object["spec"], &mut (number % fields)));
        }
    }
    let file =
        workspace.write("fields.json", &json!({"apiVersion": "v1", "kind": "List", "items": misspelt}).to_string());
    let told = kube_unions(&["audit", "-f", file.to_str().unwrap()], "").stderr;
    let (mut faults, mut unknown, mut known) = (Vec::new(), 0, 0);
    for object in &misspelt {
        let path = format!("{}?dryRun=All&fieldValidation=Strict", collection(object));
        let answer = objects.send("POST", &path, "application/json", object);
        let said = answer.body["message"].as_str().unwrap_or_default();
        // Another fault may keep the object from being decoded.
        if said.contains("cannot be handled") && !said.contains("strict decoding error") {
            continue;
        }
        let of_server: Vec<&str> =
            said.split("unknown field \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let title = format!(
            "{}/{}: unknown field `",
            object["kind"].as_str().unwrap(),
            object["metadata"]["name"].as_str().unwrap()
        );
        let own: Vec<&str> = told.split(&title).skip(1).filter_map(|rest| rest.split('`').next()).collect();
        unknown += of_server.len();
        known += usize::from(of_server.is_empty());
        if own != of_server {
            faults.push(format!("{title}{own:?}: {said}"));
        }
    }
    assert!(faults.is_empty(), "{}:\n{}", faults.len(), faults.join("\n"));
    say(&format!("{unknown} misspelt fields are told, and {known} objects have none"));
    assert!(unknown > 100 && known > 50, "{unknown}, {known}");
}

/// True if a message of the API server has a line of the playground: `…` stands for a value, and an explanation may follow.
fn has_line(said: &str, line: &str) -> bool {
    let line = line.split_once("; ").map_or(line, |(line, _)| line);
    let Some((sort, words)) = line.split_once("…") else { return said.contains(line) };
    said.match_indices(sort).any(|(at, _)| said[at + sort.len()..].contains(words))
}

#[test]
fn the_playground_has_the_verdict_and_the_lines_of_the_server_on_every_create() {
    let Some(objects) = Objects::without_presets() else { return };
    let (mut faults, mut denied, mut told) = (Vec::new(), 0, 0);
    for create in creates() {
        let answer = answer(&objects, "csa", &create.new);
        let said = answer.body["message"].as_str().unwrap_or_default();
        let question = json!({"definitions": "", "old": "", "new": create.new.to_string(), "way": "replace"});
        let shown: Value = serde_json::from_str(&kube_unions_playground::answer(&question.to_string())).unwrap();
        let today = &shown["today"];
        let lines = today["causes"].as_array().unwrap().iter().map(|cause| cause["message"].as_str().unwrap());
        // The words of kube-unions name fields in backticks where no sentence is known.
        let is_own = |line: &&str| line.contains("one of `");
        let (own, lines): (Vec<&str>, Vec<&str>) = lines.partition(is_own);
        let outcome = if answer.is_success() { "allowed" } else { "denied" };
        if today["outcome"] != outcome || lines.iter().any(|line| !has_line(said, line)) {
            faults.push(format!("{}: {}: {}: {said}", create.title, answer.status, today["headline"]));
        }
        denied += usize::from(!answer.is_success());
        told += usize::from(!answer.is_success() && own.is_empty());
    }
    assert!(faults.is_empty(), "{}:\n{}", faults.len(), faults.join("\n"));
    say(&format!("{denied} creates are denied, {told} of them with the lines of the API server"));
    assert!(told * 10 > denied * 9, "{told} of {denied}");
}
