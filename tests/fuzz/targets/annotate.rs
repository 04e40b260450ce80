//! Annotates any text as manifests: annotating twice changes nothing, and a text without declarations stays as it is.
#![no_main]

use kube_unions::annotated;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(once) = annotated(text) else { return };
    let twice = annotated(&once).unwrap_or_else(|error| panic!("the output can be read: {error:#}\n{once}"));
    assert_eq!(once, twice, "annotating twice changes nothing");
    if !text.contains("x-kubernetes-unions") && !text.contains('\\') {
        assert_eq!(once, text, "a text without declarations stays as it is");
    }
});
