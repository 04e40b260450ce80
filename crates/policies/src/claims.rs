//! The fields that manifests set, for policies: a manifest that is applied again must change nothing.
//!
//! A claim is a field set of `metadata.managedFields` at a place, as `{by, fields}`. `by` is `own` for the manifest of a server-side
//! apply, `earlier` for the apply by the same field manager before, `updated` for its updates, and `other` for the applies of other field
//! managers.
//!
//! CEL cannot read JSON, so the manifest of a client-side apply is known only as text. A request with the same text as before is an
//! apply that is repeated, and a field counts as set by its manifest if the text has its name.

use crate::cel::text;
use crate::members::Members;
use crate::variables::Variables;
use kube_unions_core::union::Part;

/// The annotation of client-side apply.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The variable with the claims of the whole object, as an expression.
pub(crate) const CLAIMS: &str = "variables.claims";

/// Adds the variables of the manifests of a request for a part of an object.
pub(crate) fn add(part: Part, variables: &mut Variables) {
    let subresource = match part {
        Part::Main => "",
        Part::Status => "status",
    };
    variables.add("manager", "request.?options.?fieldManager.orValue(\"\")".to_owned());
    variables.add(
        "entries",
        "[object, oldObject].map(o, o == null ? [] : o.?metadata.?managedFields.orValue([]).filter(e, \"fieldsV1\" in e))"
            .to_owned(),
    );
    let is_of_version =
        format!("e.apiVersion == object.apiVersion && e.?subresource.orValue(\"\") == {}", text(subresource));
    variables
        .add("applies", format!("variables.entries.map(l, l.filter(e, e.operation == \"Apply\" && {is_of_version}))"));
    let claim = |by: &str| format!("{{\"by\": dyn({by}), \"fields\": dyn(e.fieldsV1)}}");
    variables.add(
        "claims",
        format!(
            "!variables.applies[0].exists(e, e.manager == variables.manager) ? [] : \
             variables.applies[0].map(e, {}) + variables.applies[1].filter(e, e.manager == variables.manager).map(e, {}) + \
             variables.entries[0].filter(e, e.manager == variables.manager && e.operation == \"Update\" && {is_of_version}).map(e, {})",
            claim("e.manager == variables.manager ? \"own\" : \"other\""),
            claim("\"earlier\""),
            claim("\"updated\"")
        ),
    );
    let repeated = match part {
        // The annotation tells nothing about the status.
        Part::Status => "\"\"".to_owned(),
        Part::Main => {
            let annotation =
                format!("o == null ? \"\" : o.?metadata.?annotations[?{}].orValue(\"\")", text(LAST_APPLIED));
            variables.add("last_applied", format!("[object, oldObject].map(o, {annotation})"));
            let owns = format!(
                "variables.entries[0].exists(e, e.manager == variables.manager && e.operation == \"Update\" && \
                 e.fieldsV1[?\"f:metadata\"][?\"f:annotations\"][?{}].hasValue())",
                text(&format!("f:{LAST_APPLIED}"))
            );
            format!(
                "variables.last_applied[0] == variables.last_applied[1] && size(variables.claims) == 0 && \
                 (variables.manager == \"kubectl-client-side-apply\" || !variables.manager.startsWith(\"kubectl-\") && {owns}) ? variables.last_applied[0] : \"\""
            )
        }
    };
    variables.add("repeated", repeated);
}

/// Returns the claims at the end of these fields of a place with these claims.
pub(crate) fn of_fields(claims: &str, names: &[&str]) -> String {
    if names.is_empty() {
        return claims.to_owned();
    }
    let steps: Vec<String> = names.iter().map(|name| format!("[?{}]", text(&format!("f:{name}")))).collect();
    inside(claims, &steps.concat())
}

/// Returns the claims of the value of a map with the key `k`.
pub(crate) fn of_value(claims: &str) -> String {
    inside(claims, "[?\"f:\" + k]")
}

/// Returns the claims of the item `n` of a list with these keys.
pub(crate) fn of_item(claims: &str, keys: &[&str]) -> String {
    let mut sorted: Vec<&str> = keys.to_vec();
    sorted.sort_unstable();
    let pairs: Vec<String> = sorted.iter().map(|key| pair(key)).collect();
    inside(claims, &format!("[?\"k:{{\" + {} + \"}}\"]", pairs.join(" + \",\" + ")))
}

fn inside(claims: &str, steps: &str) -> String {
    format!("{claims}.map(c, {{\"by\": c.by, \"fields\": c.fields{steps}.orValue(dyn({{}}))}})")
}

/// Returns a key and its value as JSON.
fn pair(key: &str) -> String {
    let name = text(&format!("{}:", text(key)));
    let value = format!("n[?{}].orValue(dyn(\"\"))", text(key));
    let escaped = format!("string({value}).replace(\"\\\\\", \"\\\\\\\\\").replace(\"\\\"\", \"\\\\\\\"\")");
    format!("{name} + (type({value}) == string ? \"\\\"\" + {escaped} + \"\\\"\" : string({value}))")
}

/// Expressions of the claims of one union. `object` is the expression of a map with `claims`.
pub(crate) struct ClaimExpressions<'a> {
    pub(crate) members: &'a Members<'a>,
    pub(crate) object: &'a str,
}

impl ClaimExpressions<'_> {
    /// Returns true if a manifest sets the member `member`, an expression.
    pub(crate) fn claims(&self, by: &str, member: &str) -> String {
        format!("{}.claims.exists(c, c.by == \"{by}\" && \"f:\" + {member} in c.fields)", self.object)
    }

    /// Returns true if the manifest of the request sets the member `m`.
    pub(crate) fn sets(&self) -> String {
        let names_are_plain = !self.members.union.members().any(|name| name.contains(['"', '\\']));
        // The names as JSON has them.
        let name =
            if names_are_plain { "m" } else { "m.replace(\"\\\\\", \"\\\\\\\\\").replace(\"\\\"\", \"\\\\\\\"\")" };
        format!("({} || variables.repeated.contains(\"\\\"\" + {name} + \"\\\":\"))", self.claims("own", "m"))
    }

    fn claims_value(&self, by: &str) -> String {
        let name = self.members.union.discriminator().unwrap_or_default();
        format!("{}.claims.exists(c, c.by == \"{by}\" && {} in c.fields)", self.object, text(&format!("f:{name}")))
    }

    /// Returns true if the manifest of the request sets the discriminator to `now`, an expression, and that is a choice.
    pub(crate) fn sets_value(&self, now: &str) -> String {
        if self.members.union.discriminator().is_none() {
            return "false".to_owned();
        }
        let declares_none = self.members.union.choices().iter().any(|choice| choice.value().is_empty());
        let is_choice = if declares_none { String::new() } else { format!("{now} != \"\" && ") };
        format!("({is_choice}{})", self.manifest_names_value())
    }

    fn manifest_names_value(&self) -> String {
        let name = self.members.union.discriminator().unwrap_or_default();
        let repeated = format!("variables.repeated.contains({})", text(&format!("{}:", text(name))));
        format!("({} || {repeated})", self.claims_value("own"))
    }

    /// Returns true if the field manager names the discriminator, in its manifest or in an update. Otherwise its new value is a default.
    pub(crate) fn names_value(&self) -> String {
        format!("({} || {})", self.manifest_names_value(), self.claims_value("updated"))
    }

    /// Returns true if the request changed the discriminator of `p.new` to a value that is not empty. A value that does not select the
    /// member of the manifest, and that the field manager does not name, is a default and counts as unchanged.
    pub(crate) fn changed(&self) -> String {
        let members = self.members;
        let now = members.discriminator_in("p.new");
        let sets = format!("{}[m] != {now} && {} && {}", members.value, members.is_set("p.new"), self.sets());
        format!("{} && ({} || !{}.exists(m, {sets}))", members.changed(), self.names_value(), members.all)
    }

    /// Returns true if the manifest of another field manager sets the discriminator.
    pub(crate) fn other_sets_value(&self) -> String {
        self.claims_value("other")
    }

    /// Returns true if the manifest of the request set the member `member` before, and sets it again.
    pub(crate) fn sets_again(&self, member: &str) -> String {
        format!("{} && {}", self.claims("own", member), self.claims("earlier", member))
    }
}
