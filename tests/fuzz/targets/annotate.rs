//! Any text as manifests to annotate: what comes out is annotated, and nothing in it is lost.
#![no_main]

use kube_unions::cli::annotated;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(once) = annotated(text) else { return };
    let twice = annotated(&once).unwrap_or_else(|error| panic!("what was written can be read: {error:#}\n{once}"));
    assert_eq!(once, twice, "annotating twice changes nothing");
    if !text.contains("x-kubernetes-unions") && !text.contains('\\') {
        assert_eq!(once, text, "what declares nothing stays as it is");
    }
});
