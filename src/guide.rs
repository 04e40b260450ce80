//! The guide for users, included from `docs/` so that docs.rs shows it and its Rust examples are compiled.
#![allow(clippy::doc_markdown, reason = "the guide is prose")]

/// A module that is one page. In a checkout, the links of a page lead to other files; here, `links.md` defines them first.
macro_rules! page {
    ($name:ident, $file:literal) => {
        #[doc = include_str!("guide/links.md")]
        #[doc = include_str!(concat!("../docs/", $file))]
        pub mod $name {}
    };
}

page!(getting_started, "guide/getting-started.md");
page!(choosing, "guide/choosing.md");
page!(without_a_webhook, "guide/without-a-webhook.md");
page!(reading_policies, "guide/reading-policies.md");
page!(declaring, "guide/declaring.md");
page!(authoring, "guide/authoring.md");
page!(testing, "guide/testing.md");
page!(preview, "guide/preview.md");
page!(patching, "guide/patching.md");
page!(kustomize_and_helm, "guide/kustomize-and-helm.md");
page!(gitops, "guide/gitops.md");
page!(operating, "guide/operating.md");
page!(command_line, "guide/command-line.md");
page!(questions, "guide/questions.md");
page!(troubleshooting, "guide/troubleshooting.md");
page!(playground, "guide/playground.md");
page!(semantics, "reference/semantics.md");
