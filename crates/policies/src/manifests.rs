//! The variables of a policy with what manifests set, and the path to an object in them.

use crate::cel::{concat, text, texts};
use crate::members::Algorithm;
use crate::root::Purpose;
use crate::target::{PolicyTarget, VersionScope};
use crate::value::UserValue;
use crate::variables::{Variables, camel};
use kube_unions_core::declaration::LAST_APPLIED;
use kube_unions_core::union::{ItemKey, Part, Union};

/// The field manager of the oldest updates, which the API server merges when there are many.
const MERGED_UPDATES: &str = "ancient-changes";

/// The variable with the field sets of the whole object, as an expression: a list of `{by, fields}`.
pub(crate) const MANIFESTS: &str = "variables.manifests";

/// The variable with the manifest of a client-side apply, as an expression. It is empty for another request.
const APPLYING: &str = "variables.applying";

/// The variable with a regular expression for fields of an object in JSON, as an expression.
const FIELDS: &str = "variables.fields";

/// The number of times that [`FIELD`] is put into itself, with all that is in it already.
const DOUBLED: usize = 3;

/// The number of objects inside one another of which [`FIELDS`] finds the end.
const DEPTH: usize = 1 << DOUBLED;

/// The variable with the manifest of a client-side apply that is repeated, as an expression.
pub(crate) const REPEATED: &str = "variables.repeated";

/// The variable that is true for a request that may be a server-side apply, as an expression.
pub(crate) const SERVER_SIDE: &str = "variables.serverSide";

/// The product of the lengths of a text and of the regular expressions for it: nine tenths of what an API server lets one expression cost.
const BUDGET: usize = 36_000_000;

/// The shortest limit of texts, in characters, with which a path is looked for.
const SHORTEST: usize = 8_000;

/// Explains a variable with claims.
pub(crate) const COMMENT: &str = "the fields that manifests set in it, behind the word for whose they are";

/// The claims that the unions of a policy depend on, besides the manifest of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ManifestNeeds {
    /// Updates by the same field manager set a discriminator, or a member that can also have a value without an owner.
    pub(crate) updates: bool,
    /// Members can be cleared for an added one, so the earlier manifest and those of other managers count.
    pub(crate) contests: bool,
    /// Members can come with an apply that no manager owns.
    pub(crate) yields: bool,
}

impl ManifestNeeds {
    /// Returns the evidence that some unions depend on.
    pub(crate) fn of<'u>(unions: impl Iterator<Item = &'u Union> + Clone, purpose: Purpose) -> Self {
        let clears = purpose == Purpose::Mutation;
        let yields = clears && unions.clone().any(|union| union.ownerless().next().is_some());
        let mut algorithms = unions.map(Algorithm::of);
        Self {
            updates: yields || algorithms.clone().any(|algorithm| algorithm != Algorithm::Undiscriminated),
            contests: algorithms.any(|algorithm| !matches!(algorithm, Algorithm::Map(_))),
            yields,
        }
    }
}

/// Adds the variables of the manifests of a request for a part of an object. `counts` is the condition of the version of an `entry` that
/// counts, `roots` are the fields to the root of the policy's paths, of which one leads to it.
pub(crate) fn add(
    part: Part,
    counts: Option<&str>,
    evidence: ManifestNeeds,
    roots: &[Vec<&str>],
    list_functions: bool,
    variables: &mut Variables,
) {
    variables.add("manager", "request.?options.?fieldManager.orValue(\"\")", "");
    let subresource = match part {
        Part::Main => "",
        Part::Status => "status",
    };
    let (is_read, by, comment) = match evidence {
        ManifestNeeds { updates: false, .. } => (
            "entry.operation == \"Apply\"",
            "entry.manager == variables.manager ? \"own\" : \"other\"",
            "what manifests of server-side applies set: `own` is that of the request, `earlier own` the one before",
        ),
        ManifestNeeds { contests: false, .. } => (
            "entry.manager == variables.manager",
            "entry.operation == \"Apply\" ? \"own\" : \"updated\"",
            "what who writes has set: `own` by the manifest of a server-side apply, `updated` otherwise",
        ),
        ManifestNeeds { .. } => (
            "(entry.operation == \"Apply\" || entry.manager == variables.manager)",
            "entry.operation == \"Update\" ? \"updated\" : entry.manager == variables.manager ? \"own\" : \"other\"",
            "what manifests of server-side applies set: `own` is that of the request, `earlier own` the one before; `updated`\n\
             is what its writer has set otherwise",
        ),
    };
    let fields: Vec<UserValue> = roots
        .iter()
        .map(|root| root.iter().fold("entry.?fieldsV1".to_owned(), |fields, name| fields + &field_step(name)))
        .map(UserValue::optional)
        .collect();
    let counts = counts.map(|counts| format!("{counts} && ")).unwrap_or_default();
    let entries = |object: &str, by: &str| {
        format!(
            "{object}.?metadata.?managedFields.orValue([]).map(entry, {is_read} &&\n    \
             {counts}entry.?subresource.orValue(\"\") == {}, {{\n  \
             \"by\": dyn({by}),\n  \"fields\": {}.orValue(dyn({{}}))\n}})",
            text(subresource),
            UserValue::first_of(&fields).text()
        )
    };
    let manifests = match (evidence.contests, list_functions) {
        (false, _) => entries("object", by),
        (true, true) => {
            format!(
                "[object, oldObject].transformList(i, o, {}).flatten()",
                entries("o", &format!("[\"\", \"earlier \"][i] + ({by})"))
            )
        }
        (true, false) => {
            format!("{} +\n{}", entries("object", by), entries("oldObject", &format!("\"earlier \" + ({by})")))
        }
    };
    variables.add("manifests", &manifests, comment);
    if evidence.yields {
        variables.add(
            "serverSide",
            &format!(
                "{MANIFESTS}.exists(it, it.by == \"own\") ||\n  \
                 variables.manager != \"\" && !variables.manager.startsWith(\"kubectl-\") &&\n  \
                 object.?metadata.?managedFields.orValue([]).size() > 0 && !object.metadata.managedFields.exists(entry,\n    \
                 entry.manager == {} || entry.manager == variables.manager && entry.?subresource.orValue(\"\") == {})",
                text(MERGED_UPDATES),
                text(subresource)
            ),
            "whether the request may be a server-side apply: one of nothing but empty lists has no entry, like an update of nothing else",
        );
    }
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
        "applying",
        &format!(
            "!variables.manifests.exists(it, it.by == \"own\") &&\n    \
             (variables.manager == \"kubectl-client-side-apply\" || !variables.manager.startsWith(\"kubectl-\") &&\n    \
             object.?metadata.?managedFields.orValue([]).exists(entry,\n      \
             entry.manager == variables.manager && entry.operation == \"Update\" &&\n      \
             entry.?fieldsV1[?\"f:metadata\"][?\"f:annotations\"][?{}].hasValue()))\n  \
             ? variables.lastApplied[0] : \"\"",
            text(&format!("f:{LAST_APPLIED}"))
        ),
        "that of the request, if it is such an apply",
    );
    variables.add(
        "repeated",
        &format!("{APPLYING} == variables.lastApplied[1] ? {APPLYING} : \"\""),
        "the same manifest, if the request applies it again",
    );
    let doubled = ".map(f, f.replace(\"@\", f))".repeat(DOUBLED);
    variables.add(
        "fields",
        &format!("[{}]{doubled}[0].replace(\"@\", \"\")", text(FIELD)),
        "finds fields of an object in JSON: `@` stands for those of an object in it",
    );
}

/// A regular expression for fields of an object in JSON, with `@` for those of an object in one of them. Brackets in texts end nothing.
const FIELD: &str = r#"(?:[^{}"]|"(?:[^"\\]|\\.)*"|\{@\})*"#;

/// Returns the variable with the claims of the text of a client-side apply on the object at the end of fields: `"git":` says that it sets
/// `git`. `None`: the path is too long to be looked for in a text of a usual length.
///
/// It goes from the beginning of the text over whole texts and objects, so it never takes a part of a text, the key of a map or a field of another
/// object for the one that it looks for. In an object that is deeper than [`DEPTH`], it finds less.
pub(crate) fn of_text(names: &[&str], variables: &mut Variables) -> Option<String> {
    let longest = longest_text(names)?;
    let mut begin = vec![text(r"^\{")];
    for name in names {
        begin.extend([FIELDS.to_owned(), text(&format!(r"{}:\{{", quoted(name)))]);
    }
    let begin = concat(&begin);
    let field = concat(&[text(r#""(?:[^"\\]|\\.)*":?(?:null)?|\{"#), FIELDS.to_owned(), text(r"\}")]);
    let claims = format!(
        "[({APPLYING}.size() > {longest} ? \"\" : {APPLYING}).find({begin})].filter(it, it != \"\").map(it,\n  \
         {APPLYING}.substring(it.size()).find(\"^\" + {FIELDS})\n    \
         .findAll({field}))[?0].orValue([])"
    );
    let word = names.last().copied().unwrap_or("object");
    let comment = "the fields that the text of a client-side apply sets in it, in the words of JSON";
    Some(variables.add(&camel(&[word, "text"]), &claims, comment))
}

/// Returns the length of the longest text in which a path is looked for, in characters. `None`: it is less than [`SHORTEST`].
pub(crate) fn longest_text(names: &[&str]) -> Option<usize> {
    let of_fields = FIELD.len().saturating_mul(DEPTH);
    let add = |sum: usize, name: &&str| sum.saturating_add(of_fields).saturating_add(name.len());
    let length = names.iter().fold(of_fields.saturating_mul(2), add);
    Some(BUDGET.checked_div(length)? / 1000 * 1000).filter(|longest| *longest >= SHORTEST)
}

/// Returns a name as JSON has it, as a regular expression.
fn quoted(name: &str) -> String {
    let quoted = serde_json::Value::from(name).to_string();
    let escaped = |it: char| if it.is_ascii_punctuation() && it != '"' { format!("\\{it}") } else { it.to_string() };
    quoted.chars().map(escaped).collect()
}

/// Returns the condition of an `entry` that is of a version at which a write is judged by the same unions. The API server converts an
/// object for a policy, and never the field sets in it. `None` if all versions are so.
pub(crate) fn counts(target: &PolicyTarget<'_>) -> Option<String> {
    let among = |versions: &[&str]| {
        let at = |version: &&str| target.gvk.group_kind().at(version).api_version();
        let versions: Vec<String> = versions.iter().map(at).collect();
        format!("entry.apiVersion in {}", texts(versions.iter().map(String::as_str)))
    };
    match &target.scope {
        VersionScope::AllExcept(versions) if versions.is_empty() => None,
        VersionScope::AllExcept(versions) => Some(format!("!({})", among(versions))),
        VersionScope::Only(versions) => Some(among(versions)),
        VersionScope::TooMany(_) => None,
    }
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
pub(crate) fn item_step(keys: &[ItemKey<'_>], typed: bool, value: impl Fn(&str) -> UserValue) -> String {
    let mut sorted = keys.to_vec();
    sorted.sort_unstable_by_key(|key| key.name);
    let mut parts = Vec::new();
    for key in sorted {
        let begin = if parts.is_empty() { "k:{" } else { "," };
        parts.push(text(&format!("{begin}{}:", serde_json::Value::from(key.name))));
        let value = value(key.name);
        let value = value.text();
        parts.push(match (key.is_string, typed) {
            (true, _) => format!("strings.quote({value})"),
            (false, true) => format!("string({value})"),
            (false, false) => format!("(type({value}) == string ? strings.quote(string({value})) : string({value}))"),
        });
    }
    format!("[?{} + \"}}\"]", parts.join(" + "))
}

/// Returns the claims of the fields at the end of steps: a list of texts, or a list of such lists.
pub(crate) fn of_fields(manifests: &str, steps: &str, nested: bool) -> String {
    let default = if steps.is_empty() { "" } else { ".orValue(dyn({}))" };
    joined(format!("{manifests}.map(it, it.fields{steps}{default}.map(f, it.by + \" \" + f))"), nested)
}

/// Returns the claims of what is owned as a whole at the end of steps, likewise. No field of it has an entry, so a claim says who owns it, and
/// one more that it has the discriminator. `named`: the discriminator, and true if the object has it.
pub(crate) fn of_whole(manifests: &str, steps: &str, named: Option<(&str, &str)>, nested: bool) -> String {
    let claims = match named {
        Some((name, is_there)) => {
            format!("{is_there} ? [it.by, dyn(it.by + {})] : [it.by]", text(&format!(" f:{name}")))
        }
        None => "[it.by]".to_owned(),
    };
    joined(format!("{manifests}.map(it, it.fields{steps}.hasValue(), {claims})"), nested)
}

fn joined(lists: String, nested: bool) -> String {
    if nested { lists } else { lists + ".flatten()" }
}
