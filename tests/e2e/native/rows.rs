//! The rows of `tests/cases` through compiled policies.

use super::player::{Installed, Installer, Played, loose, play, same_policy_warnings};
use super::{Native, policies_of};
use crate::support::cluster::some_or_all;
use crate::support::http::Answer;
use fixtures::cases::Alone;
use fixtures::reviews::{declaration, declared_catalog};
use kube_unions_core::catalog::Catalog;
use kube_unions_core::union::{Choice, Form, Part, SelectedMember, Union, UnionStep};
use kube_unions_policies::{PolicyOptions, PolicyRatcheting};
use serde_json::{Map, Value, json};

/// Mutating and validating policies.
struct Policies {
    /// True for kinds whose schema takes every object, so that nothing but the policies judges it.
    loose: bool,
}

impl Installer for Policies {
    fn group(&self) -> &'static str {
        if self.loose { "loose.rows.example" } else { "policies.rows.example" }
    }

    /// Without a schema, forms and places are judged in other expressions. Treatment and ratcheting are what surrounds them.
    fn plays(&self, path: &str) -> bool {
        let forms_and_places = ["groups/", "list-form/", "map-form/", "places/"];
        some_or_all(!self.loose || forms_and_places.iter().any(|folder| path.starts_with(folder)), true)
    }

    fn compile(&self, played: &Played<'_>) -> Result<Installed, String> {
        let options = PolicyOptions {
            mutate: played.suite.phase != Some(Alone::Validate),
            validate: played.suite.phase != Some(Alone::Mutate),
            ratcheting: if played.ratchet { PolicyRatcheting::Warn } else { PolicyRatcheting::Disabled },
            ..PolicyOptions::default()
        };
        let undescribed = self.loose.then(|| without_schema(played));
        let policies = policies_of(undescribed.as_ref().unwrap_or(&played.subject.catalog), &options)?;
        let definition = if self.loose { loose(&played.subject.definition) } else { played.subject.definition.clone() };
        Ok(Installed { definition, policies })
    }

    fn same_warnings(&self, answer: &Answer, wanted: &[String]) -> Result<(), String> {
        same_policy_warnings(answer, wanted)
    }
}

/// Returns the unions of a kind whose schema describes nothing: each is declared with the names of its fields.
fn without_schema(played: &Played<'_>) -> Catalog {
    let [entry] = played.subject.catalog.entries() else { panic!("one version has unions") };
    let places = [Part::Main, Part::Status].into_iter().flat_map(|part| entry.plan().places(part));
    let gvk = entry.gvk();
    let unions = places.flat_map(|place| {
        let keys = list_keys(&place.steps);
        place.unions.iter().map(move |union| (union, keys.clone())).collect::<Vec<_>>()
    });
    let declarations: Vec<Value> = unions
        .enumerate()
        .map(|(number, (union, keys))| {
            let normalization = if union.is_normalized() { "Enabled" } else { "Disabled" };
            let actions = union.actions().names();
            let spec = json!({"validationActions": actions, "normalization": normalization, "unions": [declared(union, &keys)]});
            declaration(&format!("undescribed-{number:03}"), &gvk.group, &gvk.kind, &spec)
        })
        .collect();
    declared_catalog(&loose(&played.subject.definition), &declarations)
}

/// Returns the keys of each list on the way to a place, by its path.
fn list_keys(steps: &[UnionStep<'_>]) -> Map<String, Value> {
    let (mut path, mut keys) = (String::new(), Map::new());
    for step in steps {
        match step {
            UnionStep::Field(name) if path.is_empty() => path.push_str(name),
            UnionStep::Field(name) => path.extend([".", name]),
            UnionStep::Values => path.push_str("[*]"),
            UnionStep::Items { keys: names } => {
                if !names.is_empty() {
                    keys.insert(path.clone(), names.iter().map(|key| key.name).collect());
                }
                path.push_str("[*]");
            }
        }
    }
    keys
}

fn declared(union: &Union, keys: &Map<String, Value>) -> Value {
    let mut declared = json!({"path": union.path(), "schemaless": true});
    if let Some(name) = union.discriminator() {
        declared["discriminator"] = name.into();
    }
    if !keys.is_empty() {
        declared["listKeys"] = keys.clone().into();
    }
    let empty: Vec<&str> = union.empty_is_unset().collect();
    if !empty.is_empty() {
        declared["emptyIsUnset"] = json!(empty);
    }
    if union.is_required() {
        declared["required"] = true.into();
    }
    let choices = union.choices().iter();
    match union.form() {
        Form::Map => {
            let field = |it: &SelectedMember| (it.name().to_owned(), json!({"optional": it.is_optional()}));
            let fields = |it: &Choice| json!({"fields": it.members().iter().map(field).collect::<Map<_, _>>()});
            declared["fieldMembers"] = choices.map(|it| (it.value().to_owned(), fields(it))).collect();
        }
        Form::List => {
            let values =
                choices.flat_map(|it| it.members().iter().map(|member| (member.name().to_owned(), it.value())));
            declared["fieldsToDiscriminateBy"] = values.map(|(name, value)| (name, Value::from(value))).collect();
        }
    }
    declared
}

#[test]
fn the_rows_hold_through_policies_except_the_listed_ones() {
    let Some(native) = Native::start() else { return };
    play(&native, &Policies { loose: false }, "policies");
}

#[test]
fn the_rows_hold_through_policies_where_no_schema_refuses_what_they_should_judge() {
    let Some(native) = Native::start() else { return };
    play(&native, &Policies { loose: true }, "policies-without-schema");
}
