//! Unions of built-in kinds that the API server lets no update change.

mod pods;

use super::apply_way::ApplyWay;
use super::kind_rules::ApiServerAnswer;
use super::prediction::PredictedFault;
use super::remedies::Remedy;
use super::trial::PreviewTrial;
use kube_unions_offline::HelpPage;
use pods::{
    MUTABLE, MUTABLE_AT_A_GATE, each_container, remove, remove_at, remove_defaults, remove_scheduling, remove_unset,
};
use serde_json::{Value, json};

/// A part of a kind that no update changes.
struct ImmutablePart {
    group: &'static str,
    kinds: &'static [&'static str],
    /// The JSON Pointer of the part.
    pointer: &'static str,
    /// The part as the message of the API server names it, and the message.
    refusal: (&'static str, &'static str),
    help: HelpPage,
    /// Returns what is compared of the values at the pointer, before and after the update. Unset fields are gone from them.
    fixed: fn(&Update<'_, '_>, [Value; 2]) -> [Value; 2],
}

/// A predicted update.
struct Update<'t, 'd> {
    trial: &'t PreviewTrial<'t, 'd>,
    live: &'t Value,
    after: &'t Value,
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
        fixed: |update, specs| {
            let mut sources = specs.map(|spec| -> Value {
                update
                    .trial
                    .kind
                    .members_at_spec()
                    .filter_map(|name| Some((name.to_owned(), spec.get(name)?.clone())))
                    .collect()
            });
            let [before, after] = &mut sources;
            if before.pointer("/csi/controllerExpandSecretRef").is_none() {
                remove_at(after, "/csi", &["controllerExpandSecretRef"]);
            }
            sources
        },
    },
    ImmutablePart {
        group: "batch",
        kinds: &["Job"],
        pointer: "/spec/template",
        refusal: ("spec.template", "Invalid value: field is immutable"),
        help: HelpPage::IMMUTABLE,
        fixed: |update, mut templates| {
            for template in &mut templates {
                if update.live.pointer("/spec/suspend") == Some(&json!(true)) {
                    remove_scheduling(template);
                }
                if let Some(spec) = template.get_mut("spec") {
                    remove_defaults(spec);
                }
            }
            let [before, after] = templates;
            [before, if update.drops_generated_labels() { Value::Null } else { after }]
        },
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
        fixed: |_, mut specs| {
            let is_gated = specs.first().is_some_and(|spec| spec.get("schedulingGates").is_some());
            for spec in &mut specs {
                remove_defaults(spec);
                remove_at(spec, "", &MUTABLE);
                if is_gated {
                    remove_at(spec, "", &MUTABLE_AT_A_GATE);
                }
                each_container(spec, |container| remove(container, &["image", "imagePullPolicy"]));
            }
            specs
        },
    },
    ImmutablePart {
        group: "resource.k8s.io",
        kinds: &["ResourceClaim", "ResourceClaimTemplate"],
        pointer: "/spec",
        refusal: ("spec", "Invalid value: field is immutable"),
        help: HelpPage::IMMUTABLE,
        fixed: |_, specs| specs,
    },
];

impl Update<'_, '_> {
    /// Returns true if a replace drops the labels that the API server generated in the template of a Job.
    fn drops_generated_labels(&self) -> bool {
        let has_own = self.after.pointer("/spec/manualSelector") == Some(&json!(true));
        self.trial.way == ApplyWay::Replace && self.trial.documents.live.is_none() && !has_own
    }
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
        let part = IMMUTABLE.iter().find(is_kind)?;
        let mut sides = [live, after].map(|object| object.pointer(part.pointer).cloned().unwrap_or_default());
        sides.iter_mut().for_each(remove_unset);
        let [before, after] = (part.fixed)(&Update { trial: self, live, after }, sides);
        (before != after).then_some(part)
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
