//! Compiles CRDs one after the other, so that each is forgotten before the next is read.
//!
//! A CRD stands alone, unless another document has its name or its kind, or is a `UnionDeclaration` of its kind. All others are
//! compiled together at the end.

use crate::assembly::{Assembly, BuiltinUnions, CompiledAlone, assemble, assemble_beside};
use crate::document::Document;
use kube_unions_core::declaration::Declaration;
use kube_unions_core::names::GroupKind;
use std::collections::BTreeMap;

/// The CRDs that stand alone, and the documents that do not.
///
/// [`survey`](Self::survey) sees all documents first. Then [`compile`](Self::compile) gets them again, in the same order.
#[derive(Debug, Default)]
pub struct StandaloneKinds {
    builtin: BuiltinUnions,
    /// The number of CRDs with a name.
    names: BTreeMap<String, usize>,
    /// The number of CRDs and `UnionDeclaration`s of a kind.
    kinds: BTreeMap<GroupKind, usize>,
    surveyed: usize,
    /// The documents that do not stand alone.
    others: Vec<Document>,
    alone: CompiledAlone,
}

impl StandaloneKinds {
    /// Returns the kinds of no documents.
    pub fn new(builtin: BuiltinUnions) -> Self {
        Self { builtin, ..Self::default() }
    }

    /// Counts a document.
    pub fn survey(&mut self, document: &Document) {
        self.surveyed += 1;
        for definition in document.definitions().into_iter().flatten() {
            if let Some(kind) = defined(&definition) {
                *self.kinds.entry(kind).or_default() += 1;
            }
            *self.names.entry(definition.name.unwrap_or_default()).or_default() += 1;
        }
        if document.is_declaration()
            && let Ok((declaration, _)) = Declaration::from_json(&document.text)
        {
            *self.kinds.entry(declaration.target().group_kind()).or_default() += 1;
        }
    }

    /// Compiles a CRD that stands alone. Keeps another document.
    pub fn compile(&mut self, document: Document) -> Option<Assembly> {
        if self.stands_alone(&document) {
            let assembly = assemble(vec![document.clone()], self.builtin);
            // If it has a problem, another document may describe the kind.
            if assembly.problems.is_empty() {
                self.alone.add(&assembly);
                return Some(assembly);
            }
        }
        self.others.push(document);
        None
    }

    /// Compiles the documents that do not stand alone. The result counts all documents.
    pub fn finish(self) -> Assembly {
        Assembly { documents: self.surveyed, ..assemble_beside(self.others, self.builtin, self.alone) }
    }

    fn stands_alone(&self, document: &Document) -> bool {
        let is_only_name = || self.names.get(document.name.as_deref()?).map(|number| *number == 1);
        let is_only_kind = || self.kinds.get(&defined(document)?).map(|number| *number == 1);
        document.is_definition()
            && self.builtin == BuiltinUnions::Ignored
            && is_only_name() == Some(true)
            && is_only_kind() == Some(true)
    }
}

/// Returns the kind that a CRD defines.
fn defined(definition: &Document) -> Option<GroupKind> {
    let [group, kind] = [&["spec", "group"][..], &["spec", "names", "kind"]].map(|path| definition.text_at(path));
    Some(GroupKind { group: group?.into(), kind: kind?.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::diagnose;
    use crate::file::ManifestFile;
    use std::path::PathBuf;

    fn crd(name: &str, kind: &str, members: &str) -> String {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {name}.example.com}}\nspec:\n  \
             group: example.com\n  names: {{kind: {kind}, plural: {name}}}\n  scope: Namespaced\n  versions:\n  - name: v1\n    \
             served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        \
             properties: {{a: {{type: object}}, b: {{type: object}}}}\n        x-kubernetes-unions: [{{members: {members}}}]\n"
        )
    }

    fn declaration(name: &str, kind: &str, members: &str) -> String {
        format!(
            "apiVersion: kube-unions.dev/v1alpha1\nkind: UnionDeclaration\nmetadata: {{name: {name}}}\nspec:\n  \
             target: {{group: example.com, kind: {kind}}}\n  unions: [{{path: '', fieldMembers: {members}}}]\n"
        )
    }

    /// Compiles documents together and one after the other. Returns the number of CRDs that stand alone.
    #[track_caller]
    fn same(texts: &[String]) -> usize {
        let file = ManifestFile::read(PathBuf::from("a.yaml"), texts.join("---\n").into_bytes()).unwrap();
        let (documents, mut alone) = (file.documents(), StandaloneKinds::new(BuiltinUnions::Ignored));
        for document in &documents {
            alone.survey(document);
        }
        let each: Vec<_> = documents.iter().filter_map(|document| alone.compile(document.clone())).collect();
        let rest = alone.finish();
        let together = assemble(documents, BuiltinUnions::Ignored);
        let mut diagnostics: Vec<_> = each.iter().chain([&rest]).flat_map(diagnose).collect();
        diagnostics.sort();
        assert_eq!(diagnostics, diagnose(&together), "{texts:?}");
        assert_eq!((rest.summary(), rest.documents), (together.summary(), together.documents));
        assert_eq!(rest.missing(&[]), together.missing(&[]));
        let problems = |assembly: &Assembly| assembly.problems.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(problems(&rest), problems(&together));
        each.len()
    }

    #[test]
    fn diagnostics_are_those_of_all_documents_together() {
        let (both, one) = ("[a, b]", "[a, c]");
        let (widgets, gadgets) = (crd("widgets", "Widget", both), crd("gadgets", "Gadget", one));
        let declared = |name: &str, kind: &str| declaration(name, kind, "{A: {name: a}, B: {name: b}}");
        let malformed = widgets.replace("versions:", "version:");
        for (texts, alone) in [
            (vec![widgets.clone(), gadgets.clone()], 2),
            (vec![declared("w", "Widget"), widgets.clone(), declared("v", "Widget"), gadgets.clone()], 1),
            (vec![widgets.clone(), declared("w", "Widgets"), "kind: A\n".to_owned(), declared("w2", "Other")], 1),
            (vec![gadgets.clone(), crd("others", "Gadget", both), widgets.clone()], 1),
            (vec![gadgets.clone(), gadgets.clone(), widgets.clone()], 1),
            (vec![declared("w", "Widget"), declared("w", "Gadget"), widgets.clone(), gadgets.clone()], 0),
            (vec![declared("w", "Widget"), malformed.clone(), gadgets.clone(), declared("x", "Other")], 1),
            (vec![malformed, declared("x", "Other").replace("unions:", "union:"), gadgets], 1),
            (vec![declared("x", "Other")], 0),
            (vec![], 0),
        ] {
            assert_eq!(same(&texts), alone, "{texts:?}");
        }
    }
}
