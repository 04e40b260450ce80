//! `compile`: what goes to which stream, the exit codes, and what `--check` finds.

use super::{CRD, Folder, Run};
use fixtures::files::{assert_generated, files, root};
use fixtures::policies::{SAMPLES, expressions};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

const ALL: [&str; 5] = ["compile", "--to=policies", "--from", "crd.yaml", "--name-prefix=u-"];

fn compile(folder: &Folder, more: &[&str]) -> Run {
    folder.run(&[&ALL, more].concat())
}

/// Returns `Kind/name` of every document, in order.
fn titles(run: &Run) -> Vec<String> {
    let title = |object: &Value| format!("{}/{}", text(object, "/kind"), text(object, "/metadata/name"));
    documents(&run.stdout).iter().map(title).collect()
}

fn documents(stream: &str) -> Vec<Value> {
    stream.split("---\n").filter(|text| !text.is_empty()).map(super::yaml).collect()
}

/// Returns the kinds of titles, each once.
fn kinds_of(titles: &[String]) -> Vec<&str> {
    let mut kinds: Vec<&str> = titles.iter().filter_map(|title| Some(title.split_once('/')?.0)).collect();
    kinds.dedup();
    kinds
}

fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no {pointer} in {object}"))
}

/// A CRD whose declaration has an error, besides one that is sound.
fn faulty() -> String {
    CRD.replace("oci: OCI", "missing: Missing")
}

#[test]
fn each_form_prints_its_policies_each_with_a_binding_and_nothing_else() {
    let folder = Folder::with_crd(&[]);
    let normalize = ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]
        .map(|kind| format!("{kind}/unions-widgets.example.com-normalize"));
    let reject = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]
        .map(|kind| format!("{kind}/unions-widgets.example.com-deny"));
    for (form, expected) in
        [("map", &normalize[..]), ("vap", &reject), ("policies", &[&normalize[..], &reject].concat())]
    {
        let run = folder.run(&["compile", "--to", form, "--from", "crd.yaml"]).code(0);
        assert_eq!((&titles(&run)[..], &*run.stderr), (expected, ""), "{form}");
    }
}

#[test]
fn the_same_unions_print_the_same_bytes_in_any_order_of_files() {
    let backup = include_str!("../../../manifests/samples/backup/crd.yaml");
    let folder = Folder::with_crd(&[("backup.yaml", backup)]);
    let print =
        |files: &[&str]| folder.run(&[&["compile", "--to", "policies", "--from"], files].concat()).code(0).stdout;
    let first = print(&["crd.yaml", "backup.yaml"]);
    assert_eq!(first, print(&["backup.yaml", "crd.yaml"]));
    assert_eq!(first, print(&["."]));
    let piped = folder.pipe(&["compile", "--to", "policies", "--from", "-"], format!("{backup}---\n{CRD}"));
    assert_eq!(piped.code(0).prints(&first).stderr, "");
    let kinds: Vec<String> = documents(&first).iter().map(|it| text(it, "/kind").to_owned()).collect();
    assert!(kinds.is_sorted(), "{kinds:?}");
}

#[test]
fn expressions_are_blocks_where_they_are_long_or_would_need_escapes() {
    let folder = Folder::with_crd(&[]);
    let printed = compile(&folder, &[]).code(0).stdout;
    assert!(printed.contains("    expression: |-\n"), "{printed}");
    let escaped = |line: &&str| line.contains("xpression: \"") && line.contains("\\\"");
    assert_eq!(printed.lines().find(escaped), None);
}

#[test]
fn an_older_version_leaves_out_what_it_cannot_do_and_says_so() {
    let folder = Folder::with_crd(&[]);
    let old = compile(&folder, &["--kubernetes-version=1.33"]).code(1);
    assert_eq!(kinds_of(&titles(&old)), ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]);
    let says = "example.com/v1, Kind=Widget: Kubernetes 1.33 has no usable MutatingAdmissionPolicy";
    let forms = "Note: Kubernetes 1.33 takes these forms: vap, cel, openapi, json-schema, kustomize";
    assert_eq!(old.says(&[says, forms]).stderr.lines().count(), 2);
    compile(&folder, &["--kubernetes-version=1.33", "--allow-partial"]).code(0).says(&[says]);

    let beta = compile(&folder, &["--kubernetes-version=v1.35.2"]).code(0);
    let beta = beta.says(&["Note: MutatingAdmissionPolicy is beta in Kubernetes 1.35: enable the feature gate"]);
    let mutating = &documents(&beta.stdout)[0];
    assert_eq!(text(mutating, "/apiVersion"), "admissionregistration.k8s.io/v1beta1");
    // Nothing in this output is beta.
    assert_eq!(folder.run(&["compile", "--to=vap", "--from=crd.yaml", "--kubernetes-version=1.35"]).code(0).stderr, "");
}

#[test]
fn flags_change_what_they_name_and_nothing_else() {
    let folder = Folder::with_crd(&[]);
    let of = |more: &[&str]| documents(&compile(&folder, more).code(0).stdout);
    let differing = |more: &[&str]| {
        let (before, after) = (of(&[]), of(more));
        let title = |it: &Value| format!("{}/{}", text(it, "/kind"), text(it, "/metadata/name"));
        let gone = before.iter().filter(|it| !after.contains(it)).map(title).collect::<Vec<_>>();
        (gone, after)
    };
    let policies = [
        "MutatingAdmissionPolicy/u-widgets.example.com-normalize",
        "ValidatingAdmissionPolicy/u-widgets.example.com-deny",
    ];
    let (changed, excluding) = differing(&["--exclude-namespace", "team-b", "team-a"]);
    assert_eq!(changed, policies);
    assert_eq!(
        excluding[0].pointer("/spec/matchConstraints/namespaceSelector/matchExpressions/1/values").unwrap(),
        &serde_json::json!(["team-a", "team-b"])
    );
    let (changed, strict) = differing(&["--ratcheting=disabled"]);
    assert_eq!((changed, strict.len()), (vec![policies[1].to_owned()], 4));
    let (changed, warning) = differing(&["--ratcheting=warn"]);
    assert_eq!((changed, warning.len()), (Vec::new(), 6));
    let warns = |it: &&Value| text(it, "/metadata/name") == "u-widgets.example.com-warn";
    assert_eq!(warning.iter().filter(warns).count(), 2, "{warning:?}");
    let warning = titles(&compile(&folder, &["--action=warn"]).code(0));
    assert!(!warning.iter().any(|it| it.ends_with("-deny")), "{warning:?}");
    let audited = titles(&compile(&folder, &["--action=audit"]).code(0));
    assert!(audited.iter().any(|it| it.ends_with("-audit")), "{audited:?}");
    assert!(!audited.iter().any(|it| it.ends_with("-deny") || it.ends_with("-warn")), "{audited:?}");
}

#[test]
fn unions_that_need_no_policy_are_no_error() {
    let folder = Folder::new(&[("route.yaml", include_str!("../../../manifests/samples/route/crd.yaml"))]);
    let says = "Note: these unions need no such policy: nothing of them can be cleared or deduced";
    folder.run(&["compile", "--to=map", "--from=route.yaml"]).code(0).prints("").says(&[says]);
    folder.write("none/empty.yaml", "");
    let check = folder.run(&["compile", "--to=map", "--from=route.yaml", "--check", "none"]).code(0);
    check.prints("0 policies of 0 kinds are up to date\n");
}

#[test]
fn a_faulty_declaration_is_printed_as_lint_prints_it_and_the_others_are_compiled() {
    let folder = Folder::new(&[("crd.yaml", &faulty())]);
    let lint = folder.run(&["lint", "crd.yaml"]).code(1);
    let run = compile(&folder, &[]).code(1);
    assert!(!lint.stdout.is_empty());
    assert_eq!(run.stderr, lint.stdout);
    let printed = run.stdout;
    assert!(printed.contains("rolling") && !printed.contains("git"), "{printed}");
    compile(&folder, &["--allow-partial"]).code(0).prints(&printed);
}

#[test]
fn check_names_everything_that_is_missing_differs_or_is_stale() {
    let folder = Folder::with_crd(&[]);
    let printed = compile(&folder, &[]).code(0).stdout;
    let check = |text: &str| {
        folder.write("policies/all.yaml", text);
        compile(&folder, &["--check", "policies"])
    };
    let fine = "2 policies of 1 kind are up to date\n";
    assert_eq!(check(&printed).code(0).prints(fine).stderr, "");
    compile(&folder, &["--check", "policies/all.yaml"]).code(0).prints(fine);
    let piped = folder.pipe(&[&ALL[..], &["--check", "-"]].concat(), &printed);
    piped.code(0).prints(fine);

    // Documents of other kinds and with other names do not matter.
    let foreign = printed.split("---\n").next().unwrap().replace("name: u-widgets", "name: other-widgets");
    check(&format!("{printed}---\n{foreign}---\nkind: ConfigMap\napiVersion: v1\n")).code(0).prints(fine);

    let (first, rest) = printed.split_once("---\n").unwrap();
    check(rest).code(1).prints("MutatingAdmissionPolicy/u-widgets.example.com-normalize: missing\n");
    let edited = printed.replacen("failurePolicy: Ignore", "failurePolicy: Fail", 1);
    check(&edited).code(1).prints(
        "policies/all.yaml:7:1: MutatingAdmissionPolicy/u-widgets.example.com-normalize: differs at spec.failurePolicy\n",
    );
    let stale = first.replace("name: u-widgets", "name: u-gadgets");
    let run = check(&format!("{stale}---\n{printed}")).code(1);
    run.prints(
        "policies/all.yaml:7:1: MutatingAdmissionPolicy/u-gadgets.example.com-normalize: stale, no union needs it\n",
    );
    let twice = check(&format!("{first}---\n{printed}")).code(1);
    assert!(twice.stdout.ends_with("-normalize: defined more than once\n"), "{twice:?}");
    let beta = printed.replacen("k8s.io/v1\n", "k8s.io/v1beta1\n", 1);
    assert!(check(&beta).code(1).stdout.ends_with("differs at apiVersion\n"));

    // Only the kinds of the form count.
    check(rest);
    folder.run(&["compile", "--to=vap", "--from=crd.yaml", "--name-prefix=u-", "--check", "policies"]).code(0);
}

#[test]
fn check_notices_a_change_of_the_unions_and_of_each_flag() {
    let folder = Folder::with_crd(&[]);
    folder.write("policies.yaml", compile(&folder, &[]).code(0).stdout);
    for flag in [
        "--ratcheting=disabled",
        "--ratcheting=warn",
        "--action=warn",
        "--exclude-namespace=a",
        "--kubernetes-version=1.35",
    ] {
        compile(&folder, &["--check", "policies.yaml", flag]).code(1);
    }
    folder.write("crd.yaml", CRD.replace("Recreate", "Replace"));
    let run = compile(&folder, &["--check", "policies.yaml"]).code(1);
    assert!(run.stdout.lines().all(|line| line.contains(": differs at spec.")), "{run:?}");
    // Faults and refusals count as without --check.
    folder.write("crd.yaml", faulty());
    folder.write("policies.yaml", compile(&folder, &[]).code(1).stdout);
    compile(&folder, &["--check", "policies.yaml"]).code(1).prints("2 policies of 1 kind are up to date\n");
    compile(&folder, &["--check", "policies.yaml", "--allow-partial"]).code(0);
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
    assert!(sizes.iter().map(|(bytes, _)| bytes).sum::<usize>() <= 30_000, "{sizes:?}");
    assert!(sizes.iter().all(|(_, longest)| *longest <= 900), "{sizes:?}");
}
