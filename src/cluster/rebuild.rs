//! Rebuilds one subject: its unions and faults follow from the inputs and from nothing else, so that replicas agree.
//!
//! Pure: no clock, no requests, no shared state. [`inputs`](super::inputs) collects the inputs, and
//! [`state`](super::state) puts the results in force.

use super::inputs::{StoredDefinition, SubjectInputs};
use crate::causes::with_causes;
use kube_unions_core::catalog::CompiledDefinition;
use kube_unions_core::declaration::{
    Acceptance, ClaimedKind, Declaration, Definition, DefinitionError, Fault, FaultKind, Source,
};
use kube_unions_core::names::GroupKind;
use std::sync::Arc;

/// Maximum memory to compile one CRD, in bytes. CRDs that people write take a few MiB.
pub(super) const MAX_COMPILE_MEMORY: usize = 32 * 1024 * 1024;

/// The result of rebuilding a subject.
#[derive(Debug)]
pub(super) enum RebuiltSubject {
    /// The unions in force, and the faults of the others.
    Compiled(Box<CompiledDefinition>),
    /// The schema cannot be used: one fault of the subject and one of each declaration.
    Rejected(Vec<Fault>),
    /// The CRD does not define the kind that it claims. The reason is set if the CRD mentions unions.
    Ignored(GroupKind, Option<String>),
    /// The API server has not accepted the CRD yet.
    Pending,
    /// No document describes the built-in kind.
    NotDescribed,
}

/// Returns the unions and faults of a subject.
pub(super) fn rebuild(inputs: &SubjectInputs) -> RebuiltSubject {
    match inputs {
        SubjectInputs::Definition { name, definition, declarations } => match &definition.acceptance {
            Ok(Acceptance::Accepted(claim)) => {
                let compiled = read_definition(name, definition, claim).map(|it| compile(it, declarations));
                compiled.unwrap_or_else(|error| reject(name, &claim.kind, declarations, &error))
            }
            Ok(Acceptance::Pending) => RebuiltSubject::Pending,
            Ok(Acceptance::Ignored(kind, why)) => {
                RebuiltSubject::Ignored(kind.clone(), definition.mentions_unions.then(|| why.clone()))
            }
            Err(message) => RebuiltSubject::Rejected(vec![Fault::new(FaultKind::UnreadableCrd, name, message.clone())]),
        },
        SubjectInputs::Builtin { kind, documents, published, declarations } => {
            let read = documents.iter().map(AsRef::as_ref);
            match Definition::from_openapi(read, &kind.group, &kind.kind, *published) {
                Ok(definition) => compile(definition, declarations),
                Err(DefinitionError::NotDescribed(_)) => RebuiltSubject::NotDescribed,
                Err(error) => reject(&kind.to_string(), kind, declarations, &error),
            }
        }
    }
}

fn read_definition(name: &str, stored: &StoredDefinition, claim: &ClaimedKind) -> Result<Definition, DefinitionError> {
    if stored.compiling_cost > MAX_COMPILE_MEMORY {
        let message =
            "to compile its schemas would take more than 32 MiB of memory, so that no union of it counts; make \
                       them smaller"
                .to_owned();
        return Err(DefinitionError::Malformed { path: "spec.versions".to_owned(), message });
    }
    Definition::with_accepted_names(claim.clone(), name, &stored.annotations, &stored.spec)
}

fn compile(mut definition: Definition, declarations: &[Arc<Declaration>]) -> RebuiltSubject {
    for declaration in declarations {
        definition.declare(declaration);
    }
    RebuiltSubject::Compiled(Box::new(CompiledDefinition::new(definition)))
}

/// No declaration about a kind is in force while its schema cannot be used, so each gets a fault, too.
fn reject(name: &str, kind: &GroupKind, declarations: &[Arc<Declaration>], error: &DefinitionError) -> RebuiltSubject {
    let of_subject = Fault::new(FaultKind::UnreadableCrd, name, with_causes(error));
    let of_declarations = declarations.iter().map(|declaration| Fault {
        declaration: Some(declaration.name().to_owned()),
        source: Some(Source::Declaration),
        pointer: "/spec/target".to_owned(),
        ..Fault::new(FaultKind::UnusableTarget, name, format!("the schema of `{kind}` cannot be used; mend it"))
    });
    RebuiltSubject::Rejected(std::iter::once(of_subject).chain(of_declarations).collect())
}

/// Returns the note on a declaration whose target the cluster does not have. Nothing is wrong: a library of declarations can be
/// applied before the CRDs.
pub(super) fn missing_target(kind: &GroupKind, declaration: &str) -> Fault {
    let message = format!(
        "the cluster has no kind `{kind}`; install its CRD, and the declaration takes effect, or correct the target"
    );
    Fault {
        declaration: Some(declaration.to_owned()),
        source: Some(Source::Declaration),
        pointer: "/spec/target".to_owned(),
        ..Fault::new(FaultKind::TargetNotInstalled, &kind.to_string(), message)
    }
}

#[cfg(test)]
mod tests {
    use super::super::inputs::{Inputs, KindDocuments, Subject};
    use super::super::raw::{RawDeclaration, RawDefinition};
    use super::*;
    use kube_unions_core::catalog::{Builder, Catalog};
    use kube_unions_core::declaration::{BuiltinGroups, OpenApi, Severity};
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    const CRD: &str = "things.g.example";

    fn kind() -> GroupKind {
        GroupKind::new("g.example", "Thing")
    }

    /// A CRD without unions, and its status.
    fn crd() -> Value {
        let condition = |name: &str| json!({"type": name, "status": "True", "reason": "r", "message": "m"});
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
        json!({
            "metadata": {"name": CRD},
            "spec": {
                "group": "g.example", "scope": "Cluster", "names": {"kind": "Thing", "plural": "things"},
                "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}}],
            },
            "status": {
                "acceptedNames": {"kind": "Thing", "plural": "things"},
                "conditions": [condition("NamesAccepted"), condition("Established")],
            },
        })
    }

    fn declaration(member: &str) -> RawDeclaration {
        let object = json!({"metadata": {"name": "d"}, "spec": {
            "target": {"group": "g.example", "kind": "Thing"},
            "unions": [{"path": "", "fieldsToDiscriminateBy": {"a": "A", member: "B"}}],
        }});
        RawDeclaration::read(&object.to_string())
    }

    fn document() -> Arc<OpenApi> {
        let document = json!({"openapi": "3.0.0", "paths": {}, "components": {"schemas": {"Thing": {
            "type": "object",
            "x-kubernetes-group-version-kind": [{"group": "g.example", "version": "v1", "kind": "Thing"}],
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}],
        }}}});
        Arc::new(OpenApi::parse(&document.to_string()).unwrap())
    }

    /// A catalog that has nothing but this subject.
    fn catalog(subject: &Subject, rebuilt: RebuiltSubject) -> Catalog {
        let mut builder = Builder::new();
        match rebuilt {
            RebuiltSubject::Compiled(compiled) => builder.insert(*compiled),
            RebuiltSubject::Rejected(faults) => builder.reject_all(&subject.to_string(), faults),
            RebuiltSubject::Ignored(kind, why) => builder.ignore(&subject.to_string(), kind, why),
            RebuiltSubject::Pending => {
                builder.report("", vec![Fault::new(FaultKind::UnreadableCrd, "", "pending".to_owned())]);
            }
            RebuiltSubject::NotDescribed => {
                builder.report("", vec![Fault::new(FaultKind::UnreadableCrd, "", "not described".to_owned())]);
            }
        }
        builder.build()
    }

    #[test]
    fn a_crd_is_rebuilt_from_what_is_stored() {
        /// Description, change of the CRD, member of the declaration, number of unions, parts of the errors.
        type Row = (&'static str, fn(&mut Value), Option<&'static str>, usize, &'static [&'static str]);
        let union = |crd: &mut Value| {
            crd["metadata"]["annotations"] = json!({"kube-unions.dev/unions": json!({
                "v1": {"": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]}
            }).to_string()});
        };
        let rows: [Row; 9] = [
            ("no unions", |_| {}, None, 0, &[]),
            ("an annotation", union, None, 1, &[]),
            ("a declaration", |_| {}, Some("b"), 1, &[]),
            ("a declaration with a member that the schema lacks", |_| {}, Some("typo"), 0, &[]),
            ("not established", |crd| crd["status"]["conditions"][1]["status"] = "False".into(), None, 0, &["pending"]),
            ("no schema", |crd| crd["spec"]["versions"] = json!([]), None, 0, &["has no schema"]),
            (
                "no schema, and a declaration",
                |crd| crd["spec"]["versions"] = json!([]),
                Some("b"),
                0,
                &["has no schema", "cannot be used"],
            ),
            ("no group", |crd| crd["spec"]["group"] = json!(7), None, 0, &["spec.group"]),
            (
                "more memory than a CRD takes that people write",
                |crd| {
                    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
                    schema["allOf"] = vec![json!({}); 100_000].into();
                },
                None,
                0,
                &["more than 32 MiB of memory, so that no union of it counts; make them smaller"],
            ),
        ];
        for (what, change, declared, unions, messages) in rows {
            let mut stored = crd();
            change(&mut stored);
            let raw = RawDefinition::read(&stored.to_string());
            let subject = Subject::Definition(CRD.into());
            // In either order of arrival.
            let results = [true, false].map(|crd_first| {
                let mut inputs = Inputs::default();
                if crd_first {
                    assert!(inputs.put_definition(&raw));
                }
                declared.map(|member| inputs.put_declaration(&declaration(member)));
                inputs.put_definition(&raw);
                catalog(&subject, rebuild(&inputs.subject(&subject).unwrap()))
            });
            for catalog in &results {
                assert_eq!(
                    catalog.entries().iter().map(|entry| entry.plan().unions().len()).sum::<usize>(),
                    unions,
                    "{what}"
                );
                let errors: Vec<String> = catalog
                    .faults()
                    .iter()
                    .filter(|it| it.severity() == Severity::Error)
                    .map(ToString::to_string)
                    .collect();
                assert_eq!(errors.len(), messages.len(), "{what}: {errors:?}");
                assert!(messages.iter().zip(&errors).all(|(part, whole)| whole.contains(part)), "{what}: {errors:?}");
            }
        }
    }

    #[test]
    fn a_crd_in_a_group_of_the_api_server_is_ignored_and_counts_again_when_the_group_is_not() {
        let mut inputs = Inputs::default();
        let mut crd = crd();
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-unions"] = json!([]);
        inputs.put_definition(&RawDefinition::read(&crd.to_string()));
        let subject = Subject::Definition(CRD.into());
        let own = BuiltinGroups::Listed(BTreeSet::from(["g.example".into()]));
        let changed = inputs.set_builtin_groups(own.clone());
        assert_eq!(changed, [(CRD.into(), Some(kind()))]);
        let RebuiltSubject::Ignored(_, Some(why)) = rebuild(&inputs.subject(&subject).unwrap()) else {
            panic!("it counts")
        };
        assert!(why.contains("serves this group from its own code"), "{why}");
        assert!(inputs.set_builtin_groups(own).is_empty());
        assert_eq!(inputs.set_builtin_groups(BuiltinGroups::Listed(BTreeSet::new())), [(CRD.into(), None)]);
        assert!(matches!(rebuild(&inputs.subject(&subject).unwrap()), RebuiltSubject::Compiled(_)));
    }

    #[test]
    fn a_builtin_kind_is_rebuilt_from_its_documents() {
        let subject = Subject::Builtin(kind());
        for (what, documents, published, declared, unions, described) in [
            ("no document", vec![], false, true, 0, false),
            ("a declaration", vec![document()], false, true, 1, true),
            ("published unions that count", vec![document()], true, false, 1, true),
            ("published unions that do not count", vec![document()], false, false, 0, true),
        ] {
            let mut inputs = Inputs::default();
            assert!(inputs.subject(&subject).is_none(), "nothing was fetched");
            inputs.put_documents(&kind(), KindDocuments { urls: Vec::new(), documents });
            if declared {
                inputs.put_declaration(&declaration("b"));
            }
            if published {
                inputs.set_publishing(BTreeSet::from([kind()]));
            }
            let rebuilt = rebuild(&inputs.subject(&subject).unwrap());
            assert_eq!(!matches!(rebuilt, RebuiltSubject::NotDescribed), described, "{what}");
            let catalog = catalog(&subject, rebuilt);
            assert_eq!(
                catalog.entries().iter().map(|entry| entry.plan().unions().len()).sum::<usize>(),
                unions,
                "{what}"
            );
        }
    }
}
