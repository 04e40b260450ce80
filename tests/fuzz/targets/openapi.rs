//! Any text as an OpenAPI document: every kind that it describes is compiled and patched, whatever its references lead to.
#![no_main]

use kube_unions_core::catalog::Builder;
use kube_unions_core::declaration::Definition;
use kube_unions_core::schema::OpenApi;
use strategic_merge_patch::Patcher;

/// More kinds than a run has time for.
const MOST: usize = 16;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(document) = OpenApi::parse(text) else { return };
    let mut builder = Builder::new();
    for kind in document.kinds().take(MOST) {
        for published in [false, true] {
            if let Ok(definition) = Definition::from_openapi([&document], &kind.group, &kind.kind, published) {
                assert_eq!((definition.group(), definition.kind()), (&*kind.group, &*kind.kind));
                builder.apply(definition);
            }
        }
        if let Ok(patcher) = Patcher::from_openapi(&document, kind) {
            patcher.apply("{}", "{}").expect("an empty patch changes nothing");
        }
    }
    let catalog = builder.build();
    assert_eq!(catalog.entries().is_empty(), catalog.union_count() == 0);
});
