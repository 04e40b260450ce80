//! The arguments of the chart's pods are those that the program takes, and every value of the chart is in a row.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::helm::Helm;
use super::rendering::{Row, rows};
use super::{CHART, arguments};
use crate::support::kind::parse;
use crate::support::webhook::kube_unions;

#[test]
fn the_binary_understands_the_arguments_of_every_pod() {
    let Some(helm) = Helm::offline() else { return };
    let of_row = |row: Row| helm.render(&row.values).iter().flat_map(arguments).collect::<Vec<_>>();
    let all: BTreeSet<Vec<String>> = rows().into_iter().flat_map(of_row).collect();
    for args in &all {
        let loopback = |arg: &String| match arg.split_once('=') {
            Some((flag @ ("--bind" | "--ops-bind"), _)) => format!("{flag}=127.0.0.1:0"),
            _ => arg.clone(),
        };
        let mut args: Vec<_> = args.iter().map(loopback).collect();
        args.push("--kubeconfig=/there/is/none".to_owned());
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        // This error comes after all arguments were parsed.
        kube_unions(&words, "").refused("cannot use the kubeconfig `/there/is/none`");
    }
    let commands: BTreeSet<&str> = all.iter().map(|args| args[0].as_str()).collect();
    assert_eq!(commands.into_iter().collect::<Vec<_>>(), ["audit", "install-crd", "serve", "unregister", "verify"]);
}

#[test]
fn every_value_is_set_in_a_row() {
    let values = parse(&fs::read_to_string(Path::new(CHART).join("values.yaml")).unwrap());
    let mut waiting = vec![String::new()];
    let (rows, mut checked) = (rows(), 0);
    while let Some(pointer) = waiting.pop() {
        let value = values.pointer(&pointer).unwrap();
        // The keys below these two are the user's own.
        let is_group = value.as_object().is_some_and(|fields| !fields.is_empty())
            && !["/resources", "/dashboard/labels"].contains(&pointer.as_str());
        if is_group {
            waiting.extend(value.as_object().unwrap().keys().map(|name| format!("{pointer}/{name}")));
            continue;
        }
        checked += 1;
        assert!(rows.iter().any(|row| row.values.pointer(&pointer).is_some()), "no row sets {pointer}");
    }
    assert!(checked > 80, "{checked} values");
}

#[test]
fn extra_arguments_are_the_flags_that_no_value_renders() {
    let Some(helm) = Helm::offline() else { return };
    let mut rendered = BTreeSet::new();
    for row in rows() {
        let mut values = row.values;
        if let Some(extra_args) = values.get_mut("extraArgs") {
            *extra_args = json!([]);
        }
        let args =
            helm.render(&values).iter().flat_map(arguments).filter(|args| args[0] == "serve").collect::<Vec<_>>();
        let flags = args.into_iter().flatten().filter(|arg| arg.starts_with("--"));
        rendered.extend(flags.map(|arg| arg.split('=').next().unwrap().to_owned()));
    }
    // One is of the command line alone. The others replace the cluster, or the certificate.
    let without_a_cluster = ["--color", "--from", "--tls-ca-file", "--tls-self-signed"].map(str::to_owned);
    let reference = fs::read_to_string(fixtures::files::root().join("docs/reference/flags.md")).unwrap();
    let (_, section) = reference.split_once("\n## kube-unions serve\n").expect("the reference has the command");
    let section = section.split("\n## ").next().unwrap();
    let flags = section.lines().filter_map(|line| line.strip_prefix("| `--")?.split([' ', '`']).next());
    let flags: BTreeSet<_> = flags.map(|flag| format!("--{flag}")).collect();
    assert!(rendered.is_subset(&flags), "{rendered:?}");
    let others: Vec<_> = flags.iter().filter(|flag| !rendered.contains(*flag)).collect();
    let extra: Vec<_> = others.iter().filter(|flag| !without_a_cluster.contains(flag)).map(|flag| &flag[2..]).collect();
    assert_eq!(others.len(), extra.len() + without_a_cluster.len());

    let schema: Value = parse(&fs::read_to_string(Path::new(CHART).join("values.schema.json")).unwrap());
    let pattern = &schema["properties"]["extraArgs"]["items"]["pattern"];
    assert_eq!(*pattern, format!("^--({})=.+$", extra.join("|")));
    let (mut accepted, mut refused) = (Vec::new(), vec!["1".to_owned()]);
    for flag in &flags {
        let is_extra = extra.contains(&&flag[2..]);
        let takes_a_value = section.lines().any(|line| line.starts_with(&format!("| `{flag} <")));
        assert!(takes_a_value || !is_extra, "{flag} takes no value, and the pattern requires one");
        refused.extend([flag.clone(), format!("{flag} 1")]);
        if is_extra { &mut accepted } else { &mut refused }.push(format!("{flag}=1"));
    }
    helm.template(&json!({"extraArgs": accepted}), &[]).accepted();
    // helm names each argument that it refuses.
    let output = helm.template(&json!({"extraArgs": refused}), &[]).refused("does not match pattern");
    for (position, argument) in refused.iter().enumerate() {
        let says = format!("- at '/extraArgs/{position}': '{argument}' does not match pattern");
        assert!(output.stderr.contains(&says), "{argument}: {output:#?}");
    }
}
