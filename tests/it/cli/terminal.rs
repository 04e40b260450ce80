//! Output that depends on the terminal: progress, tables, colours.

mod colours;

use super::{Folder, binary};
use fixtures::crds;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;

/// As many files as a large project has.
const FILES: usize = 400;

/// Puts a cursor's line back to nothing (ECMA-48, EL).
const ERASE_LINE: &str = "\u{1b}[2K";

fn project() -> Folder {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
    let crd = crds::crd("example.com", "Boat", &[crds::version("v1", &schema)]).to_string();
    let folder = Folder::new(&[
        ("crd.yaml", &crd),
        ("api/v1/boat.go", "package v1\n\ntype Boat struct {\n\tSpec struct{} `json:\"spec\"`\n}\n"),
    ]);
    for file in 1..FILES {
        folder.write(&format!("api/v1/part{file}.go"), format!("package v1\n\ntype Part{file} struct{{}}\n"));
    }
    folder
}

/// Returns a command in a folder. No variable of the caller tells it to use colours or not.
fn command(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.current_dir(folder.path()).args(arguments).stdin(Stdio::null());
    for variable in ["CI", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(variable);
    }
    command
}

#[test]
fn reading_hundreds_of_files_shows_its_progress_on_a_terminal_that_can() {
    let folder = project();
    for (terminal, on_terminal) in [("xterm-256color", true), ("dumb", true), ("xterm-256color", false)] {
        let mut command = command(&folder, &["generate", "--go", "api", "crd.yaml"]);
        command.env("TERM", terminal).stdout(Stdio::null());
        let shown = if on_terminal {
            let (user, program_end) = open_terminal();
            shown_by(command.stderr(program_end), user, 0)
        } else {
            String::from_utf8(command.stderr(Stdio::piped()).output().unwrap().stderr).unwrap()
        };
        assert!(shown.contains("0 unions in 0 versions of a kind"), "{shown:?}");
        if on_terminal && terminal != "dumb" {
            let bar = format!("of {FILES} Go files");
            let last = shown.rfind(&bar).unwrap_or_else(|| panic!("no progress in {shown:?}"));
            assert!(shown[last..].contains(ERASE_LINE), "the bar is gone at the end: {shown:?}");
        } else {
            assert!(!shown.contains("Go files") && !shown.contains('\u{1b}'), "{terminal}, {on_terminal}: {shown:?}");
        }
    }
}

#[test]
fn a_table_that_does_not_fit_a_terminal_becomes_paragraphs_that_do() {
    let crd = include_str!("widgets.yaml");
    let object =
        "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: two, namespace: shop}\nspec: {git: {}, oci: {}}\n";
    let folder = Folder::new(&[("crd.yaml", crd), ("widget.yaml", object)]);
    let audit = &["audit", "--from", "crd.yaml", "--from", "widget.yaml"];
    let shown = |columns, colours| shown(&folder, (audit, 1), columns, colours);
    let count = "audited 1 object of 1 kind: 1 invalid, none that normalisation would change\n";
    let narrow = "widget.yaml:4:17: Widget.example.com/v1: shop/two: invalid: spec.oci: Forbidden:\n    \
                  at most one of `git`, `oci` may be set\n";
    assert_eq!(shown(80, false), narrow.to_owned() + count);
    let red = narrow.replace("invalid", "\u{1b}[1m\u{1b}[38;5;196minvalid\u{1b}[0m");
    assert_eq!(shown(80, true), red + count);
    let wide = "PLACE              KIND                    NAMESPACE   NAME   FINDING   FIELD      MESSAGE\n\
                widget.yaml:4:17   Widget.example.com/v1   shop        two    invalid   spec.oci   Forbidden: at most one of `git`, `oci` may be set\n";
    assert_eq!(shown(200, false), wide.to_owned() + count);
    assert_eq!(shown(0, false), wide.to_owned() + count, "a terminal that does not know its width");
}

/// Runs a command on a terminal that is both of its outputs. Returns the lines that stay. A progress bar appears at any time and
/// is erased.
pub(super) fn shown(folder: &Folder, (arguments, code): (&[&str], i32), columns: u16, colours: bool) -> String {
    let (terminal, program_end) = open_terminal();
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).unwrap();
    let mut command = command(folder, arguments);
    command.env("TERM", "xterm-256color").stderr(program_end.try_clone().unwrap()).stdout(program_end);
    if !colours {
        command.env("NO_COLOR", "1");
    }
    let shown = shown_by(&mut command, terminal, code).replace("\r\n", "\n");
    let lines = shown.split_inclusive('\n');
    lines.map(|line| line.rsplit_once(ERASE_LINE).map_or(line, |(_, rest)| rest)).collect()
}

/// Runs a command whose outputs are ends of a terminal. Returns everything that it shows.
fn shown_by(command: &mut Command, terminal: File, code: i32) -> String {
    let mut child = command.spawn().unwrap();
    // The command keeps its ends of the terminal open until it has others.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let shown = thread::spawn(move || read_to_hang_up(terminal));
    let ended = child.wait().unwrap().code();
    let shown = shown.join().unwrap();
    assert_eq!(ended, Some(code), "{command:?}: {shown}");
    shown
}

/// Both ends of a terminal: the user's, and the program's.
pub(crate) fn open_terminal() -> (File, File) {
    let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&user).unwrap();
    unlockpt(&user).unwrap();
    let name = ptsname(&user, Vec::new()).unwrap();
    let program = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (File::from(user), program)
}

/// Everything that is shown until the program is gone: then a read of a terminal fails.
fn read_to_hang_up(mut terminal: File) -> String {
    let (mut shown, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = terminal.read(&mut buffer) {
        shown.extend_from_slice(&buffer[..read]);
    }
    String::from_utf8_lossy(&shown).into_owned()
}
