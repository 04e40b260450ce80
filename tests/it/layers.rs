//! Holds the sources to who may depend on whom, so that the table in the crate's documentation stays true.

use crate::manifests::files;
use std::collections::{BTreeMap, BTreeSet};

/// Each module of the crate's root and those it may name. What stands in neither column fails: a new module takes its
/// place here first. `lib.rs` only declares modules, `main.rs` only calls the command line.
const MAY_USE: &[(&str, &[&str])] = &[
    ("field_path", &["json_patch"]),
    ("json_patch", &["field_path"]),
    ("schema", &["field_path"]),
    ("union", &["schema", "field_path", "json_patch"]),
    ("declaration", &["schema", "field_path"]),
    ("strategic", &["schema", "field_path"]),
    ("catalog", &["union", "declaration"]),
    ("admission", &["catalog", "union", "json_patch", "field_path"]),
    ("author", &["catalog", "declaration", "schema"]),
    ("telemetry", &[]),
    ("authority", &[]),
    ("go", &["union", "declaration", "schema"]),
    ("cluster", &["catalog", "admission", "declaration", "telemetry", "authority"]),
    ("server", &["catalog", "admission", "declaration", "telemetry", "authority"]),
    (
        "cli",
        &[
            "field_path",
            "json_patch",
            "schema",
            "union",
            "declaration",
            "strategic",
            "catalog",
            "admission",
            "telemetry",
            "authority",
            "go",
            "cluster",
            "server",
        ],
    ),
    ("guide", &[]),
    ("lib", &[]),
    ("main", &["cli"]),
];

/// Longest file, tests aside.
const LONGEST: usize = 500;

#[test]
fn modules_use_only_what_their_layer_may() {
    let may_use: BTreeMap<_, BTreeSet<_>> =
        MAY_USE.iter().map(|(module, used)| (*module, used.iter().copied().collect())).collect();
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for (path, text) in files("src", "rs") {
        let module = path.split('/').next().unwrap().trim_end_matches(".rs");
        let Some(allowed) = may_use.get(module) else {
            faults.push(format!("src/{path}: `{module}` has no place in the table of layers"));
            continue;
        };
        seen.insert(module.to_owned());
        for (line, used) in uses(shipped(&text)) {
            if used != module && !allowed.contains(used.as_str()) {
                faults.push(format!("src/{path}:{line}: `{module}` may not use `{used}`"));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    for module in may_use.keys() {
        assert!(seen.contains(*module), "`{module}` stands in the table of layers and nowhere else");
    }
}

#[test]
fn no_file_is_too_long() {
    let long: Vec<_> = files("src", "rs")
        .into_iter()
        .map(|(path, text)| (path, shipped(&text).lines().count()))
        .filter(|(_, lines)| *lines > LONGEST)
        .map(|(path, lines)| format!("src/{path}: {lines} lines; split it by meaning"))
        .collect();
    assert!(long.is_empty(), "\n{}", long.join("\n"));
}

/// The text before the tests of a file, which stand at its end.
fn shipped(text: &str) -> &str {
    match text.find("#[cfg(test)]\nmod tests {") {
        Some(end) => &text[..end],
        None => text,
    }
}

/// The modules of the root that a text names, each with its line: `crate::x`, `kube_unions::x`, and every branch of
/// `crate::{x, y::z}`. Comments name what they like.
fn uses(text: &str) -> Vec<(usize, String)> {
    let code: String =
        text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    for root in ["crate::", "kube_unions::"] {
        for (start, _) in code.match_indices(root) {
            if code[..start].ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == ':') {
                continue;
            }
            let line = code[..start].matches('\n').count() + 1;
            let names = branches(&code[start + root.len()..]);
            // `crate::Something` is re-exported by the root, which exports its modules only.
            found.extend(names.into_iter().map(|name| (line, name)));
        }
    }
    found.sort();
    found
}

/// The first names of a path that may be a group.
fn branches(path: &str) -> Vec<String> {
    let name =
        |text: &str| text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(group) = path.strip_prefix('{') else { return vec![name(path)] };
    let mut names = vec![name(group)];
    let mut depth = 0;
    for (position, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(name(&group[position + 1..])),
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

#[test]
fn the_guard_sees_every_way_to_name_a_module() {
    let text = "use crate::catalog::Catalog;\nuse crate::{\n    union::{Plan, Form},\n    schema,\n};\n// crate::server is only named\nfn f() { crate::cli::run() }\n";
    let named: Vec<_> = uses(text).into_iter().map(|(line, name)| format!("{line} {name}")).collect();
    assert_eq!(named, ["1 catalog", "2 schema", "2 union", "7 cli"]);
    assert_eq!(shipped("fn a() {}\n#[cfg(test)]\nmod tests {\n}\n"), "fn a() {}\n");
}
