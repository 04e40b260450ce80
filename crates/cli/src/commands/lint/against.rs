//! `--against`: compares the unions with those of older files.

use crate::input::kinds::{self, Assembly, BuiltinUnionsArg};
use crate::input::manifest::{self, Document, Problem};
use crate::report::diagnostic::{self, Diagnostic};
use crate::report::output;
use kube_unions_core::declaration::FaultKind;
use kube_unions_manifests::counts::count;
use std::path::PathBuf;

#[derive(Debug)]
pub(super) struct OlderFiles {
    paths: Vec<PathBuf>,
    assembly: Assembly,
    pub(super) problems: Vec<Problem>,
}

/// Reads the older files. What describes the targets of their `UnionDeclaration`s may be among the new ones.
pub(super) fn read(paths: &[PathBuf], new: &[Document], builtin: BuiltinUnionsArg) -> OlderFiles {
    let manifests = manifest::files(paths);
    let mut documents: Vec<Document> = manifests.documents().collect();
    let defined = |document: &Document| {
        Some((document.text_at(&["spec", "group"])?, document.text_at(&["spec", "names", "kind"])?))
    };
    let of_old = documents.iter().filter(|document| document.is_definition());
    let known: Vec<_> = of_old.filter_map(defined).collect();
    let declared = documents.iter().filter(|document| document.is_declaration());
    let targets = declared.filter_map(|document| {
        let group = document.text_at(&["spec", "target", "group"]).unwrap_or_default();
        Some((group, document.text_at(&["spec", "target", "kind"])?))
    });
    let targets: Vec<_> = targets.filter(|target| !known.contains(target)).collect();
    let has_openapi = documents.iter().any(Document::is_openapi);
    let serves_both = |document: &&Document| {
        !targets.is_empty()
            && (document.is_openapi() && !has_openapi
                || document.is_definition() && defined(document).is_some_and(|kind| targets.contains(&kind)))
    };
    documents.extend(new.iter().filter(serves_both).cloned());
    let assembly = kinds::assemble(documents, builtin);
    let problems = manifests.problems.into_iter().chain(assembly.problems.clone()).collect();
    OlderFiles { paths: paths.to_vec(), assembly, problems }
}

impl OlderFiles {
    /// Adds the differences, and returns the number of versions that both describe. Fails if there is none.
    pub(super) fn compare(&self, new: &Assembly, diagnostics: &mut Vec<Diagnostic>) -> Result<Option<usize>, String> {
        if self.paths.is_empty() {
            return Ok(None);
        }
        let errors = self.assembly.catalog.errors();
        let paths = manifest::list(&self.paths);
        if errors > 0 {
            output::warn(format_args!(
                "{paths}: {}, so some of the older unions are not compared; see `kube-unions lint` with these files",
                count(errors, "error")
            ));
        }
        let (changes, compared) = diagnostic::compare(&self.assembly, new);
        // What one revision lacks may be in a file that cannot be read.
        let is_known = |change: &Diagnostic| {
            self.problems.is_empty() || !matches!(change.rule, FaultKind::OnlyInOld | FaultKind::OnlyInNew)
        };
        diagnostics.extend(changes.into_iter().filter(is_known));
        if compared == 0 {
            return Err(format!(
                "nothing to compare: no kind is both in {paths} and in the new files, at the same version"
            ));
        }
        Ok(Some(compared))
    }
}
