//! The variables of a policy with what manifests set, and the way to an object in them.

use crate::cel::text;
use crate::variables::Variables;
use kube_unions_core::union::{ItemKey, Part};

/// The annotation of client-side apply.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The variable with the field sets of the whole object, as an expression: a list of `{by, fields}`.
pub(crate) const MANIFESTS: &str = "variables.manifests";

/// The variable with the manifest of a client-side apply that is repeated, as an expression.
pub(crate) const REPEATED: &str = "variables.repeated";

/// Explains a variable with claims.
pub(crate) const COMMENT: &str = "the fields that manifests set in it, each behind the word for whose they are";

/// Adds the variables of the manifests of a request for a part of an object. `contests` is true if a union depends on what the same
/// manifest set before and on the manifests of others.
pub(crate) fn add(part: Part, contests: bool, variables: &mut Variables) {
    variables.add("manager", "request.?options.?fieldManager.orValue(\"\")", "who writes");
    let subresource = match part {
        Part::Main => "",
        Part::Status => "status",
    };
    variables.add(
        "entries",
        &format!(
            "[object, oldObject].map(o, o.?metadata.?managedFields.orValue([])\n  \
             .filter(entry, has(entry.fieldsV1) && entry.?subresource.orValue(\"\") == {} &&\n    \
             entry.apiVersion == object.apiVersion))",
            text(subresource)
        ),
        "what each field manager owns of the part and in the version that the request is for, now and before",
    );
    let is_own = "entry.operation == \"Apply\" && entry.manager == variables.manager";
    let (others, by) = if contests {
        (
            "entry.operation == \"Apply\" || entry.manager == variables.manager",
            "entry.operation == \"Update\" ? \"updated\" : entry.manager == variables.manager ? \"own\" : \"other\"",
        )
    } else {
        ("entry.manager == variables.manager", "entry.operation == \"Update\" ? \"updated\" : \"own\"")
    };
    let earlier = format!(
        " +\n  variables.entries[1].map(entry, {is_own}, {{\"by\": dyn(\"earlier\"), \"fields\": dyn(entry.fieldsV1)}})"
    );
    let comment = "what manifests set, if the request is a server-side apply: `own` of them is its manifest";
    variables.add(
        "manifests",
        &format!(
            "!variables.entries[0].exists(entry, {is_own}) ? [] :\n  \
             variables.entries[0].map(entry, {others}, {{\n    \
             \"by\": dyn({by}),\n    \"fields\": dyn(entry.fieldsV1)\n  }}){}",
            if contests { &earlier } else { "" }
        ),
        &if contests {
            format!("{comment}, `earlier` what it\nset before, `updated` what its manager wrote otherwise, and `other` are the manifests of others")
        } else {
            format!("{comment},\n`updated` what its manager wrote otherwise")
        },
    );
    if part == Part::Status {
        // The annotation tells nothing about the status.
        return;
    }
    variables.add(
        "lastApplied",
        &format!("[object, oldObject].map(o, o.?metadata.?annotations[?{}].orValue(\"\"))", text(LAST_APPLIED)),
        "the manifest of a client-side apply, now and before",
    );
    variables.add(
        "repeated",
        &format!(
            "variables.manifests.size() == 0 && variables.lastApplied[0] == variables.lastApplied[1] &&\n    \
             (variables.manager == \"kubectl-client-side-apply\" || !variables.manager.startsWith(\"kubectl-\") &&\n      \
             object.?metadata.?managedFields.orValue([]).exists(entry, entry.manager == variables.manager &&\n        \
             entry.operation == \"Update\" &&\n        \
             entry.?fieldsV1[?\"f:metadata\"][?\"f:annotations\"][?{}].hasValue()))\n  \
             ? variables.lastApplied[0] : \"\"",
            text(&format!("f:{LAST_APPLIED}"))
        ),
        "the same manifest, if the request applies it again",
    );
}

/// Returns the step to a field in a field set.
pub(crate) fn field_step(name: &str) -> String {
    format!("[?{}]", text(&format!("f:{name}")))
}

/// Returns the step to the value of a map, whose key is an expression, in a field set.
pub(crate) fn value_step(key: &str) -> String {
    format!("[?\"f:\" + {key}]")
}

/// Returns the step to an item of a list with these keys in a field set. `value` returns the expression of a key.
pub(crate) fn item_step(keys: &[ItemKey<'_>], typed: bool, value: impl Fn(&str) -> String) -> String {
    let mut sorted = keys.to_vec();
    sorted.sort_unstable_by_key(|key| key.name);
    let mut parts = Vec::new();
    for key in sorted {
        let begin = if parts.is_empty() { "k:{" } else { "," };
        parts.push(text(&format!("{begin}{}:", serde_json::Value::from(key.name))));
        let value = value(key.name);
        parts.push(match (key.is_string, typed) {
            (true, _) => format!("strings.quote({value})"),
            (false, true) => format!("string({value})"),
            (false, false) => format!("(type({value}) == string ? strings.quote(string({value})) : string({value}))"),
        });
    }
    format!("[?{} + \"}}\"]", parts.join(" + "))
}

/// Returns the claims at the end of steps: a list of texts, or a list of such lists.
pub(crate) fn at(manifests: &str, steps: &str, nested: bool) -> String {
    let flatten = if nested { "" } else { ".flatten()" };
    let default = if steps.is_empty() { "" } else { ".orValue(dyn({}))" };
    format!("{manifests}.map(it, it.fields{steps}{default}.map(f, it.by + \" \" + f)){flatten}")
}
