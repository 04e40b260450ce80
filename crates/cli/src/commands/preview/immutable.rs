//! Unions of built-in kinds that the API server lets no update change.

use super::apply_way::ApplyWay;
use super::kind_rules::{ApiServerAnswer, PreviewedKind};
use super::prediction::PredictedFault;
use super::remedies::Remedy;
use super::trial::PreviewTrial;
use kube_unions_offline::HelpPage;
use serde_json::{Map, Value, json};

/// A part of a kind that no update changes.
struct ImmutablePart {
    group: &'static str,
    kinds: &'static [&'static str],
    /// The JSON Pointer of the part.
    pointer: &'static str,
    /// The part as the message of the API server names it, and the message.
    refusal: (&'static str, &'static str),
    help: HelpPage,
    /// Returns what is compared of the values at the pointer, before and after the update.
    fixed: fn(PreviewedKind<'_>, [Value; 2]) -> [Value; 2],
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
        fixed: |kind, specs| {
            let mut sources = specs.map(|spec| -> Value {
                kind.members_at_spec().filter_map(|name| Some((name.to_owned(), spec.get(name)?.clone()))).collect()
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
        fixed: |_, templates| {
            templates.map(|mut template| {
                template.get_mut("spec").into_iter().for_each(unset_defaults);
                template
            })
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
                unset_defaults(spec);
                remove_at(spec, "", if is_gated { &MUTABLE_OF_GATED } else { &MUTABLE });
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

/// What an update of a Pod may change, beside images. A change of `enableServiceLinks` is a default that is written out.
const MUTABLE: [&str; 4] = ["activeDeadlineSeconds", "enableServiceLinks", "schedulingGates", "tolerations"];
/// What it may also change of a Pod that is not scheduled yet.
const MUTABLE_OF_GATED: [&str; 6] =
    ["activeDeadlineSeconds", "affinity", "enableServiceLinks", "nodeSelector", "schedulingGates", "tolerations"];

/// The fields that are no pointers in Go, so that `false`, 0 and `{}` are as if they were not set.
const ZERO_IS_UNSET: [&str; 19] = [
    "annotations",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostPort",
    "initialDelaySeconds",
    "labels",
    "limits",
    "matchLabels",
    "metadata",
    "nodeSelector",
    "overhead",
    "readOnly",
    "requests",
    "resources",
    "stdin",
    "stdinOnce",
    "tty",
    "volumeAttributes",
];

/// The defaults of the `spec` of a pod that no union sees, and those of its containers.
fn defaults() -> [Value; 2] {
    [
        json!({
            "dnsPolicy": "ClusterFirst",
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 30,
        }),
        json!({"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}),
    ]
}

/// Removes what an API server stores as if it were not there, and makes one number of each spelling of a quantity.
fn unset_zeros(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                unset_zeros(value);
                if let (Value::Object(quantities), "limits" | "requests") = (value, name.as_str()) {
                    quantities.values_mut().for_each(|it| *it = quantity(it).map_or_else(|| it.take(), Value::from));
                }
            }
            fields.retain(|name, value| {
                let is_zero = *value == json!(false) || *value == json!(0) || *value == json!({});
                let is_nothing = value.is_null() || *value == json!("") || *value == json!([]);
                !(is_nothing || is_zero && ZERO_IS_UNSET.contains(&name.as_str()))
            });
        }
        Value::Array(items) => items.iter_mut().for_each(unset_zeros),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the number that a quantity means, for example 0.5 of `500m`.
fn quantity(value: &Value) -> Option<f64> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let number = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let power = |base: f64, prefixes: &str, prefix: char| {
        let at = prefixes.chars().position(|it| it == prefix)?;
        Some(base.powi(i32::try_from(at).ok()? + 1))
    };
    let suffix: Vec<char> = text.get(number.len()..)?.chars().collect();
    let number: f64 = number.parse().ok()?;
    Some(match suffix[..] {
        [] => number,
        ['m'] => number / 1000.0,
        [prefix] => number * power(1000.0, "kMGTPE", prefix)?,
        [prefix, 'i'] => number * power(1024.0, "KMGTPE", prefix)?,
        _ => return None,
    })
}

/// Removes the defaults of the API server from the `spec` of a pod.
fn unset_defaults(spec: &mut Value) {
    let [of_pod, of_container] = defaults();
    let unset = |fields: &mut Map<String, Value>, defaults: &Value| {
        fields.retain(|name, value| defaults.get(name) != Some(value));
    };
    each_container(spec, |container| {
        unset(container, &of_container);
        let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
        let name = image.rsplit('/').next().unwrap_or_default();
        let is_latest = !name.contains([':', '@']) || name.ends_with(":latest");
        let policy = if is_latest { "Always" } else { "IfNotPresent" };
        unset(container, &json!({"imagePullPolicy": policy}));
    });
    if let Some(fields) = spec.as_object_mut() {
        unset(fields, &of_pod);
        // The older name of the field.
        if let Some(account) = fields.shift_remove("serviceAccount") {
            fields.entry("serviceAccountName").or_insert(account);
        }
    }
}

fn each_container(spec: &mut Value, act: impl Fn(&mut Map<String, Value>)) {
    for list in ["/containers", "/initContainers"] {
        let containers = spec.pointer_mut(list).and_then(Value::as_array_mut);
        containers.into_iter().flatten().filter_map(Value::as_object_mut).for_each(&act);
    }
}

fn remove(fields: &mut Map<String, Value>, names: &[&str]) {
    fields.retain(|name, _| !names.contains(&name.as_str()));
}

fn remove_at(value: &mut Value, pointer: &str, names: &[&str]) {
    value.pointer_mut(pointer).and_then(Value::as_object_mut).into_iter().for_each(|fields| remove(fields, names));
}

/// Removes what an update may change in the template of a Job that is suspended.
fn without_scheduling(template: &mut Value) {
    remove_at(template, "/metadata", &["annotations", "labels"]);
    remove_at(template, "/spec/affinity", &["nodeAffinity"]);
    remove_at(template, "/spec", &["nodeSelector", "schedulingGates", "tolerations"]);
    if let Some(spec) = template.get_mut("spec") {
        each_container(spec, |container| remove(container, &["resources"]));
        if spec.get("affinity") == Some(&json!({})) {
            remove_at(spec, "", &["affinity"]);
        }
    }
    if template.get("metadata") == Some(&json!({})) {
        remove_at(template, "", &["metadata"]);
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
        let is_job = &*name.kind == "Job";
        let is_suspended = is_job && live.pointer("/spec/suspend") == Some(&json!(true));
        let mut sides = [live, after].map(|object| object.pointer(part.pointer).cloned().unwrap_or_default());
        for side in &mut sides {
            unset_zeros(side);
            if is_suspended {
                without_scheduling(side);
            }
        }
        let [before, fixed] = (part.fixed)(self.kind, sides);
        // The API server generates labels in the template, which a replace drops.
        let is_dropped = || {
            let has_own = |object: &Value| object.pointer("/spec/manualSelector") == Some(&json!(true));
            is_job && self.way == ApplyWay::Replace && self.documents.live.is_none() && !has_own(after)
        };
        (before != fixed || is_dropped()).then_some(part)
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
