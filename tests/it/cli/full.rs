//! A full disk and a full device: nothing is lost without a word, and no file is left half written or empty.

use super::generate::broken::{CRD as KILN, GO, MODULE};
use super::{Folder, Run, binary, run, visible_commands};
use clap::ValueEnum;
use clap_complete::Shell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

/// A Widget of one member, and one of two.
const VALID: &str = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: b}\nspec: {git: {}}\n";
const INVALID: &str = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {git: {}, oci: {}}\n";

/// Runs a command whose standard output is a device without room.
fn on_full_device(folder: &Folder, program: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::new(program);
    command.current_dir(folder.path()).args(arguments).stdin(Stdio::null()).stderr(Stdio::piped());
    command.stdout(File::create("/dev/full").unwrap());
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    Run { code: output.status.code().expect("ends by itself"), stdout: String::new(), stderr }
}

/// Runs a command that can create files and not fill them, as on a full disk.
fn on_full_disk(folder: &Folder, arguments: &[&str]) -> Run {
    let mut shell = Command::new("sh");
    // The signal for a file that is too large would end the program; without it the write fails.
    shell.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""]).arg(binary());
    run(shell.args(arguments).current_dir(folder.path()), b"")
}

/// Returns the contents of every file of a folder, by path.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.display().to_string(), fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn a_command_whose_output_cannot_be_written_fails_and_says_so() {
    let folder = Folder::with_crd(&[("valid.yaml", VALID), ("invalid.yaml", INVALID)]);
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut rows: Vec<Vec<String>> = [
        &["--version"][..],
        &["-h"],
        &["version"],
        &["version", "-o", "json"],
        &["annotate", "crd.yaml"],
        &["compile", "--to", "policies", "--from", "crd.yaml"],
        &["explain", "--from", ".", "widget"],
        &["normalize", "--from", "crd.yaml", "-f", "valid.yaml"],
        &["audit", "--from", ".", "-o", "table"],
        &["audit", "--from", ".", "-o", "json"],
        &["audit", "--from", ".", "-o", "sarif"],
    ]
    .map(words)
    .into();
    rows.extend(visible_commands().into_iter().map(|(path, _)| [&path[1..], &["--help".to_owned()]].concat()));
    let shells = Shell::value_variants().iter().map(|shell| words(&["completion", &shell.to_string()]));
    rows.extend(shells);
    assert!(rows.len() > 35, "{} rows", rows.len());
    for row in &rows {
        let arguments: Vec<&str> = row.iter().map(String::as_str).collect();
        let run = on_full_device(&folder, &binary(), &arguments).code(2);
        assert!(run.stderr.contains("error: cannot write to standard output: No space left"), "{row:?}: {run:#?}");
    }
    let completion = folder.path().join("kubectl_complete-unions");
    std::os::unix::fs::symlink(binary(), &completion).unwrap();
    on_full_device(&folder, &completion, &["au"]).code(2).says(&["cannot write to standard output"]);
}

#[test]
fn a_file_that_cannot_be_written_whole_is_not_there_and_an_older_one_stays() {
    let rows: [(&[&str], &str); 5] = [
        (&["compile", "--to", "json-schema", "--from", "crd.yaml", "--output-dir", "out"], "out/"),
        (&["compile", "--to", "cel", "--from", "crd.yaml", "--write"], "crd.yaml"),
        (&["completion", "man", "out"], "out"),
        (&["certs", "--dir", "out", "--force"], "out/ca.crt"),
        (&["generate", "--go", "v1", "kiln.yaml", "--write"], "kiln.yaml"),
    ];
    for (arguments, place) in rows {
        let folder = Folder::with_crd(&[("kiln.yaml", KILN), ("go.mod", MODULE), ("v1/kiln.go", GO)]);
        let fails = || {
            let before = files(folder.path());
            on_full_disk(&folder, arguments).code(2).says(&["cannot write", place, "File too large"]);
            assert_eq!(files(folder.path()), before, "{arguments:?}");
        };
        fails();
        // The files of an earlier run are still there.
        let run = folder.run(arguments);
        assert!([0, 1].contains(&run.code), "{run:#?}");
        let out = folder.path().join("out");
        if out.exists() {
            for (path, contents) in files(&out) {
                fs::write(path, [&contents[..], b"\n"].concat()).unwrap();
            }
            fails();
        }
    }
}
