//! `completion` in real shells: the scripts, with the Tab key on a terminal, and kubectl's completion of plugins.
//!
//! A shell that is not on PATH is left out, and the test says so, unless `KUBE_UNIONS_SHELLS=require`. `make shells` installs
//! them on Debian.

use super::terminal::open_terminal;
use super::{Folder, binary, run};
use rustix::termios::{Winsize, tcsetwinsize};
use std::env;
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

/// Words as a user types them before the Tab key, and the words that the program then gets.
type Row = (&'static str, &'static [&'static str]);

const ROWS: [Row; 9] = [
    ("pat", &["patch"]),
    ("lint --st", &["lint", "--strict"]),
    ("lint -o js", &["lint", "-o", "json"]),
    ("patch ap", &["patch", "apply"]),
    ("install-crd --kubec", &["install-crd", "--kubeconfig"]),
    ("lint cr", &["lint", "crd of today.yaml"]),
    ("explain --from cr", &["explain", "--from", "crd of today.yaml"]),
    ("certs --dir fo", &["certs", "--dir", "folder/"]),
    // The name of a context is no path.
    ("audit --context cr", &["audit", "--context", "cr"]),
];

/// How long a shell may be silent before a test fails.
const PATIENCE: Duration = Duration::from_mins(1);

const NAMES: [&str; 2] = ["kube-unions", "kubectl-unions"];

fn folder() -> Folder {
    let folder = Folder::new(&[("crd of today.yaml", ""), ("folder/file", ""), ("fo.yaml", "")]);
    for name in NAMES.into_iter().chain(["kubectl_complete-unions"]) {
        std::os::unix::fs::symlink(binary(), folder.path().join(name)).unwrap();
    }
    folder
}

/// Returns the script for a shell, which the program prints under one of its names.
fn script(folder: &Folder, name: &str, shell: &str) -> String {
    run(Command::new(folder.path().join(name)).args(["completion", shell]), b"").code(0).stdout
}

/// Returns false if a shell is not on PATH, and prints that. Fails if the shell is required.
fn has(shell: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).any(|folder| folder.join(shell).is_file());
    if !found {
        let required = env::var_os("KUBE_UNIONS_SHELLS").is_some_and(|it| it == "require");
        assert!(!required, "no {shell} on PATH: see `make shells`");
        // The harness captures what the macros print, and not this.
        let _ = writeln!(std::io::stderr(), "skipped: no {shell} on PATH, see `make shells`");
    }
    found
}

/// A shell on a terminal.
struct Terminal {
    user: File,
    shown: Receiver<Vec<u8>>,
    shell: Child,
}

impl Terminal {
    /// Starts a shell that says `ready>` when it takes input.
    fn start(folder: &Folder, shell: &str, arguments: &[&str], setup: &str) -> Self {
        let (user, shell_end) = open_terminal();
        tcsetwinsize(&user, Winsize { ws_row: 50, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let [stdin, stdout] = [(); 2].map(|()| Stdio::from(shell_end.try_clone().unwrap()));
        let mut command = Command::new(shell);
        command.current_dir(folder.path()).args(arguments).stdin(stdin).stdout(stdout).stderr(shell_end);
        command.env("TERM", "dumb").env("HOME", folder.path()).env_remove("INPUTRC").env_remove("PROMPT_COMMAND");
        let shell = command.spawn().unwrap();
        let mut terminal = Self { shown: reading(user.try_clone().unwrap()), user, shell };
        terminal.type_in(&format!("{setup}\r"));
        terminal.read_until(&["ready>"]);
        terminal
    }

    fn type_in(&mut self, keys: &str) {
        self.user.write_all(keys.as_bytes()).unwrap();
    }

    /// Reads until the terminal has shown these texts in this order, and returns everything that it showed.
    fn read_until(&mut self, texts: &[&str]) -> String {
        let mut shown = Vec::new();
        loop {
            let so_far = String::from_utf8_lossy(&shown).into_owned();
            if texts.iter().try_fold(&*so_far, |rest, text| Some(rest.split_once(text)?.1)).is_some() {
                return so_far;
            }
            match self.shown.recv_timeout(PATIENCE) {
                Ok(more) => shown.extend(more),
                Err(error) => panic!("the shell does not show {texts:?}: {error}: {so_far}"),
            }
        }
    }

    /// Types a line, the Tab key and Enter, and returns the arguments that the program got.
    fn completed(&mut self, line: &str) -> Vec<String> {
        self.type_in(&format!("{line}\t\r"));
        let shown = self.read_until(&["got:", ":end", "ready>"]);
        let (_, got) = shown.split_once("got:").unwrap();
        let (got, _) = got.split_once(":end").unwrap();
        got.split('|').map(str::to_owned).collect()
    }
}

/// Reads a terminal in a thread, so that a test can give up.
fn reading(mut terminal: File) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = terminal.read(&mut buffer) {
            if sender.send(buffer[..read].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// Asserts rows on a terminal, for the program under both of its names.
fn assert_rows(shell: &str, arguments: &[&str], rows: &[Row], setup: &dyn Fn(&str) -> String) {
    if !has(shell) {
        return;
    }
    for name in NAMES {
        let folder = folder();
        folder.write(&format!("_{name}"), script(&folder, name, shell));
        let mut terminal = Terminal::start(&folder, shell, arguments, &setup(name));
        for (line, wanted) in rows {
            assert_eq!(terminal.completed(&format!("{name} {line}")), *wanted, "{shell}: {name} {line}");
        }
    }
}

#[test]
fn bash_completes() {
    assert_rows("bash", &["--norc", "--noprofile", "-i"], &ROWS, &|name| {
        // A function in place of the program prints its arguments.
        format!(
            "source ./_{name}; {name}() {{ local IFS='|'; echo \"got:$*:end\"; }}; bind 'set bell-style none'; \
             bind 'set enable-bracketed-paste off'; PS1='rea''dy>'"
        )
    });
}

#[test]
fn zsh_completes() {
    assert_rows("zsh", &["-f", "-i"], &ROWS, &|name| {
        // `compinit` finds the script in `fpath` by its name and its first line.
        format!(
            "fpath=($PWD $fpath); autoload -U compinit; compinit -u -D; unsetopt promptcr beep auto_remove_slash; \
             {name}() {{ echo \"got:${{(j:|:)@}}:end\"; }}; bindkey '^I' complete-word; PS1='rea''dy>'"
        )
    });
}

/// The script for elvish knows no values of flags.
#[test]
fn elvish_completes() {
    let rows: [Row; 5] = [
        ("pat", &["patch"]),
        ("lint --st", &["lint", "--strict"]),
        ("patch ap", &["patch", "apply"]),
        ("lint crd.yaml fo.", &["lint", "crd.yaml", "fo.yaml"]),
        ("explain --from fo.", &["explain", "--from", "fo.yaml"]),
    ];
    assert_rows("elvish", &["-norc"], &rows, &|name| {
        format!(
            "use str; eval (slurp < _{name}); fn {name} {{|@a| print got:(str:join '|' $a)':'end }}; \
             set edit:rprompt = {{ }}; set edit:prompt = {{ print 'ready'\">\" }}"
        )
    });
}

#[test]
fn fish_completes() {
    if !has("fish") {
        return;
    }
    for name in NAMES {
        let folder = folder();
        folder.write("script", script(&folder, name, "fish"));
        for (line, wanted) in ROWS {
            let mut fish = Command::new("fish");
            fish.current_dir(folder.path()).env("HOME", folder.path()).env("XDG_CONFIG_HOME", folder.path());
            fish.args(["--no-config", "--command", "source script; complete --do-complete $argv[1]", "--"]);
            let output = run(fish.arg(format!("{name} {line}")), b"").code(0).stdout;
            let candidates: Vec<&str> = output.lines().filter_map(|line| line.split('\t').next()).collect();
            let typed = line.split(' ').next_back().unwrap();
            let unique = wanted.last().copied().filter(|word| *word != typed);
            assert_eq!(candidates, unique.into_iter().collect::<Vec<_>>(), "fish: {name} {line}");
        }
    }
}

#[test]
fn every_shell_has_a_script_and_an_example() {
    let folder = folder();
    let help = folder.run(&["completion", "--help"]).code(0).stdout;
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(help.contains(&format!("kube-unions completion {shell}")), "{help}");
        for name in NAMES {
            let script = script(&folder, name, shell);
            assert!(script.contains(name) && script.contains("install-crd"), "{shell}: {script}");
            assert_eq!(script.contains("kubectl-unions"), name == "kubectl-unions", "{shell}: {script}");
        }
    }
}

#[test]
fn kubectl_gets_candidates_and_a_directive() {
    let folder = folder();
    let answer = |words: &[&str]| {
        let program = folder.path().join("kubectl_complete-unions");
        run(Command::new(program).current_dir(folder.path()).args(words), b"").code(0).stdout
    };
    assert_eq!(answer(&["lint", "--st"]), "--strict\tExit with 1 for warnings, too\n:4\n");
    assert_eq!(answer(&["lint", ""]), ":0\n");
    assert_eq!(answer(&["certs", "--dir", "fo"]), ":16\n");
    assert_eq!(answer(&["no-such", "command", "--"]).lines().last(), Some(":4"));
}
