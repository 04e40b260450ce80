//! The fields that manifests set, for policies: a manifest that is applied again must change nothing.
//!
//! A claim is a text: who sets a field, and the field as `metadata.managedFields` names it, for example `own f:type`. `own` is the manifest
//! of a server-side apply, `earlier own` the one by the same field manager before, `updated` its updates, and `other` the manifests of other
//! field managers. The claim of an object that is owned as a whole ends there, for example `own`, and stands for all of its members.
//!
//! CEL cannot read JSON, so the manifest of a client-side apply is known only as text. Fields of the object at the end of a path of fields are
//! found in it: `"type":` is the claim of one, as it is in JSON. Elsewhere, a request with the same text as before is an apply that
//! is repeated, and a field counts as set by its manifest if the text has its name.

use crate::cel::{all, any, text};
use crate::manifests::{REPEATED, SERVER_SIDE};
use crate::members::Algorithm;
use crate::place::UnionObjects;
use crate::variables::Variables;
use kube_unions_core::union::Part;

impl UnionObjects<'_> {
    /// Returns true if a client-side apply that is repeated counts: the status has no manifest.
    fn repeats(&self) -> bool {
        self.part == Part::Main
    }

    /// Returns true if the manifest of the request sets the member `m`.
    pub(crate) fn applies(&self) -> String {
        // Names as JSON has them.
        let name = if self.members.needs_escapes() { "strings.quote(m) + \":\"" } else { "'\"' + m + '\":'" };
        let repeated = if self.repeats() { format!("{REPEATED}.contains({name})") } else { "false".to_owned() };
        any(&[&self.claims("own", "m"), &self.is_in_text(name), &repeated])
    }

    /// Returns the variable with the members that are set and that the manifest of the request sets.
    pub(crate) fn applied(&self, variables: &mut Variables) -> String {
        let applied = format!("{}.filter(m, {})", self.set, self.applies());
        self.define("applied", &applied, "what the manifest of the request sets of them", variables)
    }

    /// Returns true if the manifest of the request names the discriminator, in parentheses.
    pub(crate) fn names_value(&self) -> String {
        let name = self.members.union.discriminator().unwrap_or_default();
        let own = self.claims_value("own");
        if !self.repeats() {
            return format!("({own})");
        }
        let name = text(&format!("{}:", serde_json::Value::from(name)));
        any(&[&own, &self.is_in_text(&name), &format!("{REPEATED}.contains({name})")])
    }

    /// Returns true if the manifest of the request sets the discriminator to a choice.
    pub(crate) fn sets_value(&self) -> String {
        if self.members.union.discriminator().is_none() {
            return "false".to_owned();
        }
        let names = self.names_value();
        if self.members.declares_none() { names } else { format!("({} != \"\" && {names})", self.value) }
    }

    /// Returns true if the field manager of the request has set the discriminator by an update. A client-side apply is an update itself.
    pub(crate) fn updates_value(&self) -> String {
        let updated = self.claims_value("updated");
        if !self.repeats() {
            return updated;
        }
        let has_no_text = match self.claims.as_ref().filter(|_| self.has_claims_of_text) {
            None => "true".to_owned(),
            Some(claims) if self.has_nested_claims => {
                format!("!{claims}.exists(them, them.exists(it, it.startsWith('\"')))")
            }
            Some(claims) => format!("!{claims}.exists(it, it.startsWith('\"'))"),
        };
        all(&[&updated, &format!("{REPEATED} == \"\""), &has_no_text])
    }

    /// Returns true if the field manager of the request has set the discriminator by an update, and its manifest does not name it.
    pub(crate) fn only_updates_value(&self) -> String {
        format!("{} && !({})", self.updates_value(), self.claims_value("own"))
    }

    /// Returns the variable that is true if the request changed the discriminator to a value that is not empty. A value that does not
    /// select the member of the manifest, and that the field manager does not name, is a default and counts as unchanged.
    pub(crate) fn changed(&self, variables: &mut Variables) -> String {
        let UnionObjects { value, old_value, members, .. } = self;
        let name = members.union.discriminator().unwrap_or_default();
        let applied = self.applied(variables);
        let is_default = format!("{applied}.exists(m, {}[m] != {value})", members.value);
        let updated = format!("({})", self.updates_value());
        let named = any(&[&self.names_value(), &updated, &format!("!{is_default}")]);
        self.define(
            "changed",
            &format!("{value} != \"\" && {value} != {old_value} && {named}"),
            &format!("whether the request sets a new `{name}`, and not a default"),
            variables,
        )
    }

    /// Takes the members out of those that are set that a server-side apply leaves although nobody chooses them. Returns these: members that
    /// come and that nobody owns, beside a value or a member of the manifest, or beside any member if the manifest sets none. They may have been
    /// cleared before, and come back.
    pub(crate) fn take_residue(&mut self, variables: &mut Variables) -> Option<String> {
        let UnionObjects { set, value, had, old_set, members, .. } = &*self;
        let ownerless = members.ownerless().filter(|_| self.has_identity())?;
        let owned = any(&[&self.claims("own", "m"), &self.claims("updated", "m")]);
        let came = format!("{ownerless}.filter(m, m in {set} && !(m in {old_set}) && !{owned})");
        let mut clashes = members.clashes_with("o");
        if let Some(non_null) = &self.non_null {
            clashes = format!("o in {non_null} && {clashes}");
        }
        if members.union.has_groups() {
            // Others go together with what the manifest sets.
            let [sets, sets_any] = ["o", "p"].map(|member| self.claims("own", member));
            clashes = format!("{clashes} && ({sets} || !{set}.exists(p, {sets_any}))");
        }
        let beside = format!("{came}.filter(m, {set}.exists(o, {clashes}))");
        let unselected = |rejects: &str| format!("{came}.filter(m, {rejects})");
        let residue = match Algorithm::of(members.union) {
            Algorithm::Map(_) => unselected(&members.is_not(&members.selected(value))),
            Algorithm::Discriminated(_) => {
                let rejects = format!("{}[m] != {value}", members.value);
                format!("({} ? {} :\n{beside})", self.sets_value(), unselected(&rejects))
            }
            Algorithm::Undiscriminated => beside,
        };
        // A null of a member that the manifest sets is left to the schema, and nothing else is changed.
        let sets_no_null = self.non_null.as_ref().map(|non_null| {
            let sets_no_null = format!("!{set}.exists(m, !(m in {non_null}) && {})", self.claims("own", "m"));
            self.define("setsNoNull", &sets_no_null, "whether the manifest of the request sets none to null", variables)
        });
        let sets_no_null = sets_no_null.as_deref().unwrap_or("true");
        let residue = self.define(
            "residue",
            &format!("{} ?\n{residue} : []", all(&[had, SERVER_SIDE, sets_no_null])),
            "members that come with a server-side apply and that nobody owns, beside another choice: empty lists and defaults",
            variables,
        );
        let chosen = format!("{set}.filter(m, {})", all(&[sets_no_null, &format!("!(m in {residue})")]));
        self.set = self.define("chosen", &chosen, "", variables);
        Some(residue)
    }

    /// Returns true if the manifest of another field manager sets the discriminator.
    pub(crate) fn others_set_value(&self) -> String {
        self.claims_value("other")
    }

    /// Returns true if the manifest of another field manager sets the member `m`.
    pub(crate) fn others_set(&self) -> String {
        self.claims("other", "m")
    }

    /// Returns true if the manifest of the request set a member before, and sets it again. `member` is an expression.
    pub(crate) fn sets_again(&self, member: &str) -> String {
        format!("{} && {}", self.claims("own", member), self.claims("earlier own", member))
    }

    /// Returns true if manifests set a member, an expression.
    fn claims(&self, by: &str, member: &str) -> String {
        let claim = self.is_in(&format!("\"{by} f:\" + {member}"));
        if self.owned_as_a_whole { any(&[&claim, &self.is_in(&text(by))]) } else { claim }
    }

    fn claims_value(&self, by: &str) -> String {
        let name = self.members.union.discriminator().unwrap_or_default();
        self.is_in(&text(&format!("{by} f:{name}")))
    }

    fn is_in_text(&self, claim: &str) -> String {
        if self.has_claims_of_text { self.is_in(claim) } else { "false".to_owned() }
    }

    fn is_in(&self, claim: &str) -> String {
        // Nothing of a manifest belongs to an item without an identity.
        match &self.claims {
            None => "false".to_owned(),
            Some(claims) if self.has_nested_claims => format!("{claims}.exists(them, {claim} in them)"),
            Some(claims) => format!("{claim} in {claims}"),
        }
    }
}
