//! The `spec` of a Pod as an API server compares it: without defaults and without what is as if it were not set.

use serde_json::{Map, Value, json};

/// The fields that an update of a Pod may change, beside images. `enableServiceLinks` is one, because an update may write out its default.
pub(super) const MUTABLE: [&str; 4] = ["activeDeadlineSeconds", "enableServiceLinks", "schedulingGates", "tolerations"];

/// The other fields that an update may change while the Pod has a scheduling gate.
pub(super) const MUTABLE_AT_A_GATE: [&str; 2] = ["affinity", "nodeSelector"];

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

/// The defaults of the `spec` of a Pod and of its containers, beside those of unions.
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

/// Removes the fields that an API server stores as if they were not set, and replaces each quantity by its number.
pub(super) fn remove_unset(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                remove_unset(value);
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
        Value::Array(items) => items.iter_mut().for_each(remove_unset),
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
pub(super) fn remove_defaults(spec: &mut Value) {
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

pub(super) fn each_container(spec: &mut Value, act: impl Fn(&mut Map<String, Value>)) {
    for list in ["/containers", "/initContainers"] {
        let containers = spec.pointer_mut(list).and_then(Value::as_array_mut);
        containers.into_iter().flatten().filter_map(Value::as_object_mut).for_each(&act);
    }
}

pub(super) fn remove(fields: &mut Map<String, Value>, names: &[&str]) {
    fields.retain(|name, _| !names.contains(&name.as_str()));
}

pub(super) fn remove_at(value: &mut Value, pointer: &str, names: &[&str]) {
    if let Some(fields) = value.pointer_mut(pointer).and_then(Value::as_object_mut) {
        remove(fields, names);
    }
}

/// Removes the fields of a pod template that an update may change while its Job is suspended.
pub(super) fn remove_scheduling(template: &mut Value) {
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
