//! From the CRD that a generator wrote to one whose union is enforced: one command, and the same rows for each of `tests/generators`.
//! `tests/generators.sh` checks that the generators still write these CRDs.

use super::Folder;
use fixtures::files::root;
use std::fs;
use std::path::PathBuf;

const PAGE: &str = include_str!("../../../docs/guide/generators.md");

/// The generators, each with its CRD, the file with the type, and the arguments of the one command.
const GENERATORS: &[(&str, &str, &str, &[&str])] = &[
    ("controller-gen", "crd.yaml", "api/v1/app_types.go", &["generate", "--go", "api"]),
    ("fabric8", "crd.yaml", "src/main/java/com/example/App.java", &["annotate", "--propose"]),
    ("kube-rs", "crd.json", "src/main.rs", &["annotate", "--propose"]),
    ("pydantic", "crd.json", "crd.py", &["annotate", "--propose"]),
    ("typescript", "crd.json", "crd.ts", &["annotate", "--propose"]),
];

fn folder_of(generator: &str) -> PathBuf {
    root().join("tests/generators").join(generator)
}

#[test]
fn one_command_after_each_generator_declares_a_union_that_does_what_the_rows_say() {
    let suite = fs::read_to_string(root().join("tests/generators/suite.yaml")).unwrap();
    let tests = suite.lines().filter(|line| line.starts_with("- name: ")).count();
    assert!(tests >= 7, "{tests}");
    for (generator, crd, _, command) in GENERATORS {
        let text = fs::read_to_string(folder_of(generator).join(crd)).unwrap();
        let folder = Folder::new(&[("suite.yaml", &suite), (crd, &text)]);
        let go;
        let mut arguments = command.to_vec();
        if let Some(sources) = arguments.iter_mut().find(|argument| **argument == "api") {
            go = folder_of(generator).join("api").display().to_string();
            *sources = &go;
        }
        let enforced = folder.run(&[&arguments[..], &[crd]].concat()).code(0);
        // Without the command, nothing but the rules of the CRD applies.
        assert_ne!(enforced.stdout, text, "{generator}");
        folder.write("crd.yaml", &enforced.stdout);
        folder.run(&["test", "--require", "suite.yaml"]).code(0).says(&[&format!("1 suite, {tests} tests, 0 failed")]);
        // The union and the rules beside it agree.
        folder.run(&["lint", "--strict", "--require", "crd.yaml"]).code(0).says(&["1 CRD, 1 union, 0 problems"]);
        // The rules are the same choice for each way that reads them.
        let again = folder.run(&["annotate", "--propose", "--check", "crd.yaml"]).code(0);
        again.says(&["1 CRD, 1 declaration, 0 to move, 0 proposed"]);
    }
}

#[test]
fn every_generator_has_its_type_and_its_command_on_the_page() {
    let folders = fs::read_dir(root().join("tests/generators")).unwrap();
    let folders = folders.map(|entry| entry.unwrap()).filter(|entry| entry.path().is_dir());
    let mut folders: Vec<String> = folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
    folders.sort();
    let names: Vec<&str> = GENERATORS.iter().map(|(name, ..)| *name).collect();
    assert_eq!(folders, names);
    for (generator, crd, source, command) in GENERATORS {
        let source = fs::read_to_string(folder_of(generator).join(source)).unwrap();
        let excerpts = PAGE.split("```").filter(|block| {
            let code = block.split_once('\n').map_or("", |(_, code)| code);
            !code.trim().is_empty() && source.contains(code)
        });
        assert_eq!(excerpts.count(), 1, "{generator}: the page has no excerpt of the type");
        let command = command.join(" ").replace("--go api", &format!("--go {generator}/api"));
        let line = format!("kube-unions {command} {generator}/{crd} | kubectl apply -f -\n");
        assert_eq!(PAGE.matches(&line).count(), 1, "{line}");
    }
}
