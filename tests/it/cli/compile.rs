//! `compile`: the policies that the guide shows, and how long policies are.

use super::Folder;
use fixtures::cel::check_policy;
use fixtures::files::{assert_generated, files, root};
use fixtures::policies::{SAMPLES, expressions};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

fn documents(stream: &str) -> Vec<Value> {
    stream.split("---\n").filter(|text| !text.is_empty()).map(super::yaml).collect()
}

fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no {pointer} in {object}"))
}

/// `make manifests` puts them there.
#[test]
fn the_guide_shows_policies_as_they_are_compiled() {
    let page = root().join("docs/guide/reading-policies.md");
    let found = fs::read_to_string(&page).unwrap();
    let without = fs::read_to_string(root().join("docs/guide/without-a-webhook.md")).unwrap();
    let (_, store) = without.split_once("cat > crd.yaml <<'EOF'\n").unwrap();
    let source = include_str!("../../../manifests/samples/source/crd.yaml");
    let folder = Folder::new(&[("store.yaml", store.split_once("EOF\n").unwrap().0), ("source.yaml", source)]);
    let compiled = folder.run(&["compile", "--to", "policies", "--from", "store.yaml", "source.yaml"]).code(0).stdout;
    let presets = files("manifests/policies", "yaml").into_iter().map(|(_, text)| text);
    let presets = presets.map(|text| text.split_once('\n').unwrap().1.to_owned());
    let all: Vec<String> = presets.chain([compiled]).collect();
    let policies: BTreeMap<String, &str> = all
        .iter()
        .flat_map(|text| text.split("---\n"))
        .map(|text| (super::yaml(text), text))
        .filter(|(object, _)| !text(object, "/kind").ends_with("Binding"))
        .map(|(object, written)| (text(&object, "/metadata/name").to_owned(), written))
        .collect();
    let mut parts = found.split("<!-- policy: ");
    let mut expected = parts.next().unwrap().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(" -->\n").unwrap();
        let prose = match rest.split_once("```yaml\n") {
            Some((before, block)) if before.trim().is_empty() => block.split_once("```\n").unwrap().1,
            _ => rest,
        };
        let policy = policies.get(name).unwrap_or_else(|| panic!("{name} is no policy: {:?}", policies.keys()));
        expected.extend(["<!-- policy: ", name, " -->\n\n```yaml\n", policy, "```\n", prose]);
    }
    assert_generated(page, &expected, "make manifests");
}

#[test]
fn an_api_server_accepts_the_types_of_the_policies_of_presets_and_samples() {
    let folder = Folder::new(&[]);
    let sample = |name: &str| {
        let path = root().join("manifests/samples").join(name);
        folder.run(&["compile", "--to", "policies", "--from", path.to_str().unwrap()]).stdout
    };
    let presets = files("manifests/policies", "yaml").into_iter().map(|(_, text)| text);
    let all: Vec<Value> = presets.chain(SAMPLES.map(sample)).flat_map(|text| documents(&text)).collect();
    assert!(all.len() > 2 * SAMPLES.len(), "{all:?}");
    for policy in &all {
        check_policy(policy).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// What a reviewer of policies has to read. `make policy-sizes` prints the table.
#[test]
fn policies_are_short_enough_to_be_reviewed() {
    let folder = Folder::new(&[]);
    let sample = |name: &str| {
        let path = root().join("manifests/samples").join(name);
        folder.run(&["compile", "--to", "policies", "--from", path.to_str().unwrap()]).stdout
    };
    let presets = files("manifests/policies", "yaml");
    let samples = SAMPLES.map(|name| (format!("sample {name}"), sample(name)));
    println!("{:16} {:>8} {:>8} {:>8} {:>8} {:>8}", "", "bytes", "lines", "policies", "CEL", "longest");
    let measure = |(name, text): &(String, String)| {
        let all = documents(text);
        let policies = all.iter().filter(|it| !self::text(it, "/kind").ends_with("Binding")).count();
        let lengths: Vec<usize> = all.iter().flat_map(expressions).map(str::len).collect();
        let longest = lengths.iter().max().copied().unwrap_or_default();
        let (lines, number) = (text.lines().count(), lengths.len());
        println!("{name:16} {:8} {lines:8} {policies:8} {number:8} {longest:8}", text.len());
        (text.len(), longest)
    };
    let sizes: Vec<_> = presets.iter().map(measure).collect();
    for sample in &samples {
        let (bytes, longest) = measure(sample);
        assert!(bytes > 0 && longest <= 900, "{}: {longest}", sample.0);
    }
    assert!(sizes.iter().map(|(bytes, _)| bytes).sum::<usize>() <= 44_000, "{sizes:?}");
    assert!(sizes.iter().all(|(_, longest)| *longest <= 900), "{sizes:?}");
}
