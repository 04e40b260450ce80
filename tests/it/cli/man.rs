//! `completion man`: the manual pages.

use super::{Folder, run, visible_commands};
use std::fs;
use std::io::{ErrorKind, Write};
use std::process;

fn written() -> (Folder, Vec<String>) {
    let folder = Folder::new(&[]);
    folder.run(&["completion", "man", "target/man"]).code(0).prints("");
    let entries = fs::read_dir(folder.path().join("target/man")).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    (folder, names)
}

#[test]
fn each_command_has_a_page_with_its_sections() {
    let (folder, names) = written();
    let commands = visible_commands().into_iter().map(|(path, _)| path.join("-") + ".1");
    let mut wanted: Vec<String> = commands.filter(|page| page != "kube-unions-help.1").collect();
    wanted.sort();
    assert!(wanted.contains(&"kube-unions-patch-apply.1".to_owned()));
    assert!(!wanted.iter().any(|page| page.ends_with("-man.1")), "{wanted:?}");
    assert_eq!(names, wanted);
    for name in names {
        let page = folder.read(&format!("target/man/{name}"));
        let title = name.trim_end_matches(".1").to_uppercase();
        let version = env!("CARGO_PKG_VERSION");
        assert!(
            page.contains(&format!("\n.TH \"{title}\" \"1\" \"\" \"kube-unions {version}\" \"kube-unions\"\n")),
            "{page}"
        );
        let headings: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
        assert_eq!(headings[..4], ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"], "{name}");
        let more = ["SUBCOMMANDS", "NOTES", "\"EXIT STATUS\"", "EXAMPLES"];
        assert!(headings[4..].iter().all(|heading| more.contains(heading)), "{name}: {headings:?}");
        // A heading of the help that is left in the text has not become a section.
        let left = page.lines().find(|line| ["Example:", "Examples:", "Exit codes:"].contains(line));
        assert_eq!(left, None, "{name}");
    }
    let lint = folder.read("target/man/kube-unions-lint.1");
    assert!(lint.contains(".SH EXAMPLES\n  kube\\-unions lint crds/\n"), "{lint}");
    let verify = folder.read("target/man/kube-unions-verify.1");
    assert!(verify.contains(".SH EXAMPLES\n  kube\\-unions verify "), "{verify}");
}

/// groff is in the base installation of few systems, so the test leaves it out where it is missing, and says so.
#[test]
fn groff_has_no_warning_about_a_page() {
    let (folder, names) = written();
    for name in names {
        let mut groff = process::Command::new("groff");
        groff.current_dir(folder.path().join("target/man")).args(["-man", "-ww", "-z", "-Tutf8", &name]);
        if groff.output().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            let _ = writeln!(std::io::stderr(), "skipped: no groff on PATH");
            return;
        }
        let output = run(&mut groff, b"").code(0);
        assert_eq!(output.stderr, "", "{name}");
    }
}
