//! Unions of built-in kinds that the API server lets no update change.

use super::kind_rules::{ApiServerAnswer, PreviewedKind};
use super::prediction::PredictedFault;
use super::remedies::Remedy;
use super::trial::PreviewTrial;
use kube_unions_offline::HelpPage;
use serde_json::Value;

/// A part of a kind that no update changes.
struct ImmutablePart {
    group: &'static str,
    kinds: &'static [&'static str],
    /// The JSON Pointer of the part.
    pointer: &'static str,
    /// The part as the message of the API server names it, and the message.
    refusal: (&'static str, &'static str),
    help: HelpPage,
    /// Returns what is compared of the value at the pointer.
    fixed: fn(PreviewedKind<'_>, &Value) -> Value,
}

/// The validation of updates in Kubernetes 1.36: `ValidatePersistentVolumeUpdate`, `ValidateJobSpecUpdate`, `ValidatePodUpdate`,
/// `ValidateResourceClaimUpdate`, `ValidateResourceClaimTemplateUpdate`.
static IMMUTABLE: [ImmutablePart; 4] = [
    ImmutablePart {
        group: "",
        kinds: &["PersistentVolume"],
        pointer: "/spec",
        refusal: ("spec.persistentvolumesource", "Forbidden: spec.persistentvolumesource is immutable after creation"),
        help: HelpPage::IMMUTABLE_SOURCE,
        fixed: |kind, spec| {
            kind.members_at_spec().filter_map(|name| Some((name.to_owned(), spec.get(name)?.clone()))).collect()
        },
    },
    ImmutablePart {
        group: "batch",
        kinds: &["Job"],
        pointer: "/spec/template",
        refusal: ("spec.template", "Invalid value: field is immutable"),
        help: HelpPage::IMMUTABLE,
        fixed: |_, template| template.clone(),
    },
    ImmutablePart {
        group: "",
        kinds: &["Pod"],
        pointer: "/spec",
        refusal: (
            "spec",
            "Forbidden: pod updates may not change fields other than the images of its containers and few others",
        ),
        help: HelpPage::IMMUTABLE,
        fixed: |_, spec| without_mutable(spec.clone()),
    },
    ImmutablePart {
        group: "resource.k8s.io",
        kinds: &["ResourceClaim", "ResourceClaimTemplate"],
        pointer: "/spec",
        refusal: ("spec", "Invalid value: field is immutable"),
        help: HelpPage::IMMUTABLE,
        fixed: |_, spec| spec.clone(),
    },
];

/// Returns the `spec` of a pod without what an update may change.
fn without_mutable(mut spec: Value) -> Value {
    for list in ["/containers", "/initContainers"] {
        let containers = spec.pointer_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            container.remove("image");
        }
    }
    if let Some(fields) = spec.as_object_mut() {
        let mutable = ["activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations"];
        fields.retain(|name, _| !mutable.contains(&name.as_str()));
    }
    spec
}

impl<'d> PreviewTrial<'_, 'd> {
    /// Returns true if an update changes what never changes.
    pub(super) fn changes_immutable_part(&self, after: &Value) -> bool {
        self.changed_part(after).is_some()
    }

    fn changed_part(&self, after: &Value) -> Option<&'static ImmutablePart> {
        let live = self.live.as_ref()?;
        let name = self.kind.name();
        let is_kind = |part: &&ImmutablePart| part.group == &*name.group && part.kinds.contains(&&*name.kind);
        // The API server lets the template of a suspended Job change in parts.
        let is_suspended = live.pointer("/spec/suspend") == Some(&Value::Bool(true));
        let part = IMMUTABLE.iter().find(is_kind).filter(|_| !is_suspended)?;
        let fixed = |object: &Value| object.pointer(part.pointer).map(|value| (part.fixed)(self.kind, value));
        (fixed(live) != fixed(after)).then_some(part)
    }

    /// Returns the refusal of an update that changes what never changes. Then nothing but a new object helps.
    pub(super) fn immutable(&self, after: &Value) -> anyhow::Result<Option<PredictedFault<'d>>> {
        let Some(part) = self.changed_part(after) else { return Ok(None) };
        let (field, violation) = part.refusal;
        let recreate = self.invalid(&self.new.completed)?.is_empty();
        Ok(Some(PredictedFault {
            remedies: recreate.then_some(Remedy::Recreate).into_iter().collect(),
            ..self.refusal(
                part.pointer.to_owned(),
                field.to_owned(),
                violation.to_owned(),
                ApiServerAnswer::Immutable,
                part.help,
            )
        }))
    }
}
