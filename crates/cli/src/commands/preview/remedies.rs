//! Tries what makes an apply succeed.

use super::left_behind::LeftBehind;
use super::nulls::removed_nulls;
use super::trial::{AttemptedApply, PreviewTrial, WithKubeUnions};
use kube_unions_core::field_path::FieldPath;
use kube_unions_core::union::UnionStep;
use kube_unions_offline::InvalidUnion;
use serde_json::{Map, Value, json};

/// Something that makes the apply succeed. Each was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Remove a member from the new rendering, which sets several.
    KeepOne,
    /// Write no null into the new rendering.
    Omit,
    /// Write nulls for these members into the new rendering.
    Null(Vec<String>),
    /// Run this command once, before the apply.
    Once(String),
    /// Apply the old rendering once in the same way, before the apply.
    OldOnce,
    /// Install kube-unions, with this preset for a built-in kind.
    KubeUnions(Option<String>),
    /// Delete the object, and create it from the new rendering.
    Recreate,
}

impl PreviewTrial<'_, '_> {
    /// Returns what makes a union valid.
    pub(super) fn remedies(
        &self,
        invalid: &InvalidUnion<'_>,
        left_behind: &[LeftBehind],
        is_mended: bool,
    ) -> Vec<Remedy> {
        let is_valid = self.is_valid(invalid, &self.new.completed);
        if left_behind.is_empty() && !is_valid {
            return invalid.has_too_many().then_some(Remedy::KeepOne).into_iter().collect();
        }
        // The objects of a CRD are deleted with it.
        let recreate = is_valid && &*self.kind.name().kind != "CustomResourceDefinition";
        let names: Vec<&String> = left_behind.iter().map(|it| &it.member).collect();
        let preset = || invalid.union.declaration().filter(|_| self.kind.is_built_in()).map(str::to_owned);
        let remedies = [
            self.null(invalid, &names),
            self.once(invalid, &names),
            self.old_once(invalid),
            is_mended.then(|| Remedy::KubeUnions(preset())),
            recreate.then_some(Remedy::Recreate),
        ];
        remedies.into_iter().flatten().collect()
    }

    /// Returns what prevents a null that the API server refuses.
    pub(super) fn remedies_of_null(&self, path: &FieldPath, with_kube_unions: WithKubeUnions) -> Vec<Remedy> {
        let has_null = |object: &Value, completed: &Value| removed_nulls(object, completed).contains(path);
        let (pointer, is_written) = self.new.null_pointer(path);
        let mut omitted = self.new.written.clone();
        if let Some((parent, name)) = pointer.rsplit_once('/')
            && let Some(Value::Object(fields)) = omitted.pointer_mut(parent)
        {
            fields.remove(&name.replace("~1", "/").replace("~0", "~"));
        }
        let omit = is_written && !self.leaves_null(path, &omitted);
        let recreate = !has_null(&self.new.written, &self.new.completed);
        let remedies = [
            omit.then_some(Remedy::Omit),
            (with_kube_unions == WithKubeUnions::Mended).then_some(Remedy::KubeUnions(None)),
            recreate.then_some(Remedy::Recreate),
        ];
        remedies.into_iter().flatten().collect()
    }

    /// Returns true if an apply of a manifest leaves a null that the API server refuses, or if it cannot be predicted.
    fn leaves_null(&self, path: &FieldPath, manifest: &Value) -> bool {
        match self.applied(manifest) {
            Ok(AttemptedApply::Complete(_)) => false,
            Ok(AttemptedApply::Refused(nulls)) => nulls.paths.contains(path),
            Err(_) => true,
        }
    }

    /// Returns what makes a change of a union possible that a rule of the CRD refuses.
    pub(super) fn remedies_of_change(&self, is_mended: bool) -> Vec<Remedy> {
        let recreate = self.invalid(&self.new.completed).is_ok_and(|invalid| invalid.is_empty());
        let remedies = [is_mended.then_some(Remedy::KubeUnions(None)), recreate.then_some(Remedy::Recreate)];
        remedies.into_iter().flatten().collect()
    }

    /// Returns true if a union is valid in the object that an attempt leads to, and no rule may refuse the change. An attempt that fails does
    /// not help.
    fn helps(&self, invalid: &InvalidUnion<'_>, attempt: anyhow::Result<AttemptedApply>) -> bool {
        let Ok(Some(object)) = attempt.map(AttemptedApply::complete) else { return false };
        self.is_valid(invalid, &object) && self.refused_transitions(&object).is_empty()
    }

    fn is_valid(&self, invalid: &InvalidUnion<'_>, object: &Value) -> bool {
        self.invalid(object).is_ok_and(|left| !left.iter().any(|other| other.is_same(invalid)))
    }

    /// Returns the nulls for members, if they help in the new rendering.
    fn null(&self, invalid: &InvalidUnion<'_>, members: &[&String]) -> Option<Remedy> {
        let mut manifest = self.new.written.clone();
        let fields = invalid.address.make(&mut manifest, &self.new.completed)?;
        fields.extend(members.iter().map(|name| ((*name).clone(), Value::Null)));
        let helps = !members.is_empty() && self.helps(invalid, self.applied(&manifest));
        helps.then(|| Remedy::Null(members.iter().map(|name| (*name).clone()).collect()))
    }

    /// Returns the advice to have the client take over the fields of the old rendering first, if that helps.
    fn old_once(&self, invalid: &InvalidUnion<'_>) -> Option<Remedy> {
        let attempt = self.applied_after_old().transpose()?;
        self.helps(invalid, attempt).then_some(Remedy::OldOnce)
    }

    /// Returns the command that switches the union, if its discriminator alone does.
    fn once(&self, invalid: &InvalidUnion<'_>, members: &[&String]) -> Option<Remedy> {
        let name = |step: &UnionStep<'_>| match step {
            UnionStep::Field(name) => Some((*name).to_owned()),
            UnionStep::Items { .. } | UnionStep::Values => None,
        };
        let names: Vec<String> = invalid.steps.iter().map(name).collect::<Option<_>>()?;
        let (discriminator, value) = (invalid.union.discriminator()?, invalid.value.as_deref()?);
        let mut fields = Map::from_iter([(discriminator.to_owned(), json!(value))]);
        fields.extend(members.iter().map(|name| ((*name).clone(), Value::Null)));
        let patch = names.iter().rev().fold(Value::Object(fields), |inner, name| json!({name: inner}));
        if self.creates() || !self.helps(invalid, self.merged(&patch)) {
            return None;
        }
        let new = self.documents.new;
        let (name, namespace) = (new.name.as_deref().unwrap_or_default(), new.namespace.as_deref());
        // A shell would read other characters.
        let is_plain = |text: &str| text.bytes().all(|it| it.is_ascii_alphanumeric() || b"-._".contains(&it));
        if ![name, namespace.unwrap_or_default(), value].into_iter().all(is_plain) {
            return None;
        }
        let kind = self.kind.name();
        let group = if self.kind.is_built_in() { String::new() } else { format!(".{}", kind.group) };
        let resource = format!("{}{group}", kind.kind.to_lowercase());
        let namespace = namespace.map(|namespace| format!(" -n {namespace}")).unwrap_or_default();
        Some(Remedy::Once(format!("kubectl patch {resource} {name}{namespace} --type=merge -p '{patch}'")))
    }
}
