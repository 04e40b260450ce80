//! Any text as files of suites: each suite that is read has a test.
#![no_main]

use kube_unions::suites;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(tests) = suites(text) else { return };
    assert!(tests.iter().all(|tests| *tests > 0), "a suite has at least one test");
});
