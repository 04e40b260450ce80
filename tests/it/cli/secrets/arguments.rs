//! No credential in a URL that a user gives as an argument reaches an output, and neither do the variables of OpenTelemetry.

use super::super::{Folder, binary, run};
use super::{NOBODY, SECRET, assert_silent};
use fixtures::wait::{SOON, eventually};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::process::{Command, Stdio};

/// Spellings of a URL with credentials, and how messages show them. `SECRET` stands for [`SECRET`].
const URLS: [(&str, &str); 13] = [
    ("ftp://me:SECRET@x", "ftp://…@x"),
    ("ftp://SECRET@x", "ftp://…@x"),
    ("http://x/a?token=SECRET", "http://x/a?…"),
    ("http://me:/SECRET@x/?token=SECRET", "http://…@x/?…"),
    ("http://me:a?SECRET@x", "http://…"),
    ("me:SECRET@x:4318", "…@x:4318"),
    ("https://me:SECRET\n@x", "https://…@x"),
    ("https://me:\tSECRET\r\n\n@x", "https://…@x"),
    ("https://me:\u{1}SECRET\u{9b}\u{202e}@x", "https://…@x"),
    ("https://me:\"SECRET'\\\n@x", "https://…@x"),
    ("ftp://me:%0aSECRET%40%@x", "ftp://…@x"),
    ("https://x/\n?token=\tSECRET\n", "?…"),
    ("https://a:SECRET@x,https://me:SECRET\t@y?sig=SECRET", "https://…@y?…"),
];

/// Commands that quote an argument, which stands for `URL`.
const COMMANDS: [&str; 15] = [
    "serve --tls-self-signed --otlp-endpoint URL",
    "serve --tls-self-signed --otlp-endpoint=URL",
    "serve --tls-self-signed --bind URL",
    "serve --tls-self-signed --service=URL",
    "serve --tls-self-signed --shutdown-delay=URL",
    "serve --tls-self-signed URL",
    "serve --tls-self-signed --from URL",
    "serve --tls-self-signed --from=URL",
    "lint URL",
    "lint -o json URL",
    "lint -o sarif URL",
    "test URL",
    "audit --kubeconfig URL",
    "preview --old URL --new URL -o json",
    "URL",
];

/// An argument that is no text is shown with a replacement for each part that is none.
#[test]
fn bytes_that_are_no_text_hide_no_credential_from_the_search_for_it() {
    let folder = Folder::new(&[]);
    for bytes in [&b"\xff"[..], b"\xe2\x80", b"\n\xff\xfe\t"] {
        let url = OsString::from_vec([b"https://me:", SECRET.as_bytes(), bytes, b"@x"].concat());
        for command in ["lint", "lint -o sarif", "compile --from", "lint -o", "audit --kubeconfig", "test"] {
            let mut program = Command::new(binary());
            program.current_dir(folder.path()).args(command.split(' ')).arg(&url);
            let run = run(&mut program, b"");
            let output = format!("{}{}", run.stdout, run.stderr);
            assert_silent(command, &output);
            assert_eq!(run.code, 2, "{command} {run:?}");
            assert!(output.contains("https://…@x"), "{command}: {output}");
        }
    }
}

/// A report of places writes the names of files as URLs.
#[test]
fn a_credential_in_the_name_of_a_file_that_is_there_is_hidden_as_well() {
    let name = format!("me:{SECRET} é\n@x.json");
    let folder = Folder::new(&[(&name, "{\"kind\": ")]);
    for format in ["text", "json", "sarif"] {
        let run = folder.run(&["lint", "-o", format, &name]).code(2);
        assert_silent(format, &format!("{}{}", run.stdout, run.stderr));
        assert!(run.stdout.contains('…'), "{format}: {run:?}");
    }
}

#[test]
fn no_message_about_an_argument_shows_the_credentials_of_a_url() {
    let folder = Folder::new(&[]);
    for command in COMMANDS {
        for (url, shown) in URLS {
            let url = url.replace("SECRET", SECRET);
            let mut program = Command::new(binary());
            program.current_dir(folder.path()).args(command.split(' ').map(|word| word.replace("URL", &url)));
            let run = run(&mut program, b"");
            let output = format!("{}{}", run.stdout, run.stderr);
            assert_silent(command, &output);
            assert_eq!(run.code, 2, "{command} {run:?}");
            assert!(output.contains(shown), "{command} {shown}: {output}");
        }
    }
}

/// Values of variables of OpenTelemetry. None of them is valid, or the collector cannot be reached.
const TELEMETRY: [(&str, &str); 9] = [
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://me:SECRET@x y"),
    ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "ftp://me:SECRET@x y"),
    ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=SECRET"),
    ("OTEL_EXPORTER_OTLP_HEADERS", "SECRET"),
    ("OTEL_EXPORTER_OTLP_HEADERS", "a b=SECRET,authorization=%0aSECRET"),
    ("OTEL_EXPORTER_OTLP_TIMEOUT", "SECRET"),
    ("OTEL_EXPORTER_OTLP_COMPRESSION", "SECRET"),
    ("OTEL_TRACES_SAMPLER", "SECRET"),
    ("OTEL_BSP_MAX_QUEUE_SIZE", "SECRET"),
];

/// The log has everything that any library has to say.
#[test]
fn no_log_of_serve_shows_a_secret_of_the_collector() {
    for (name, value) in TELEMETRY {
        let folder = Folder::with_crd(&[]);
        let endpoint = format!("http://me:{SECRET}@{NOBODY}");
        let arguments = ["serve", "--from", "crd.yaml", "--tls-self-signed", "--otlp-endpoint", &endpoint];
        let log = folder.path().join("log");
        let output = fs::File::create(&log).unwrap();
        let mut command = Command::new(binary());
        command.current_dir(folder.path()).args(arguments).args(["--bind", "127.0.0.1:0", "--ops-bind", "127.0.0.1:0"]);
        command.env(name, value.replace("SECRET", SECRET)).env("RUST_LOG", "trace").env("TMPDIR", folder.path());
        command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
        let mut child = command.spawn().unwrap();
        let text = || String::from_utf8_lossy(&fs::read(&log).unwrap()).into_owned();
        let serves = eventually(SOON, || child.try_wait().unwrap().is_some() || text().contains("listening"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_silent(name, &text());
        assert!(serves, "{name}: {}", text());
    }
}
