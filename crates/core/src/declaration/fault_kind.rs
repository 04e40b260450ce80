//! Kinds of faults, with their names for reports.

use super::Severity;

/// Defines the kinds of something that is reported: variant, name, severity and meaning of each.
#[doc(hidden)]
#[macro_export]
macro_rules! report_kinds {
    ($(#[$attribute:meta])* $kinds:ident: $($variant:ident $name:literal $severity:ident $meaning:literal,)*) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $kinds {
            $(#[doc = $meaning] $variant,)*
        }

        impl $kinds {
            /// Every kind, sorted by subject.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the name, the severity of everything of this kind, and the meaning as a sentence.
            pub const fn row(self) -> (&'static str, $crate::declaration::Severity, &'static str) {
                match self {
                    $(Self::$variant => ($name, $crate::declaration::Severity::$severity, $meaning),)*
                }
            }

            /// Returns the name, which never changes.
            pub const fn name(self) -> &'static str {
                self.row().0
            }

            /// Returns the severity of everything of this kind.
            pub const fn severity(self) -> $crate::declaration::Severity {
                self.row().1
            }

            /// Returns the meaning as a sentence.
            pub const fn meaning(self) -> &'static str {
                self.row().2
            }
        }

        impl std::fmt::Display for $kinds {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

report_kinds! {
    /// Kind of a [`Fault`](super::Fault), or of a problem of an input, the last ones. It is the rule of a diagnostic. Its name never
    /// changes.
    FaultKind:
    UnreadableCrd "unreadable-crd" Error "A CRD cannot be read.",
    DuplicateKind "duplicate-kind" Error "Several CRDs define one kind.",
    IgnoredCrd "ignored-crd" Error "The API server does not let the CRD define its kind.",
    ExemptKind "exempt-kind" Warning "Objects of the kind are never sent to the webhook.",
    MalformedExtension "malformed-extension" Error "The value of `x-kubernetes-unions` cannot be read.",
    NotAnObject "not-an-object" Error "A union in the 2019 form is not at an object.",
    NotAProperty "not-a-property" Error "A union in the 2022 form is not at a property.",
    DiscriminatorType "discriminator-type" Error "The discriminator is not a string.",
    UnknownDiscriminator "unknown-discriminator" Error "The object has no property with the name of the discriminator.",
    UnknownMember "unknown-member" Error "The object has no property with the name of a member.",
    MemberElsewhere "member-elsewhere" Error "A member or the discriminator is a field of another object.",
    DiscriminatorAsMember "discriminator-as-member" Error "The discriminator is a member of its own union.",
    RequiredMember "required-member" Error "A member is a required field, so it can never be cleared.",
    DefaultedMember "defaulted-member" Error "A member has a default, which restores it whenever it is cleared.",
    SharedField "shared-field" Error "A field belongs to two unions.",
    DuplicateValue "duplicate-value" Error "Two members have the same value.",
    EmptyValue "empty-value" Error "The value of a member is empty.",
    UnknownValue "unknown-value" Error "A value is not in the `enum` of the discriminator.",
    MissingValue "missing-value" Error "The `enum` of the discriminator has a value that the union lacks.",
    UnconfirmedValues "unconfirmed-values" Error "No `enum` confirms the values that a built-in type publishes.",
    NoMembers "no-members" Error "A union has no members.",
    OnlyMember "only-member" Warning "A union has one member, and keeps nothing apart.",
    TooManyMembers "too-many-members" Error "A union has more than 128 members.",
    TooManyUnions "too-many-unions" Error "An object or a version has too many unions.",
    TooManyVersions "too-many-versions" Error "A kind with unions has more than 64 served versions.",
    LongPath "long-path" Error "The path of a union is too long.",
    DefaultedDiscriminator "defaulted-discriminator" Warning "The discriminator has a default, which a client seems to choose by leaving it out.",
    OpenDiscriminator "open-discriminator" Warning "The discriminator has no `enum`.",
    OpenDiscriminatorOfTarget "open-discriminator-of-target" Note "The discriminator of a UnionDeclaration has no `enum` in the schema of the target.",
    KeylessList "keyless-list" Warning "A union is in a list without keys, where nothing can be cleared.",
    UnjudgedVersion "unjudged-version" Note "A version is served without unions beside one with unions.",
    ScaledMember "scaled-member" Note "The scale subresource sets a member of a union, and no webhook or policy judges it.",
    KeylessListOfTarget "keyless-list-of-target" Note "A union of a UnionDeclaration is in a list without keys, where nothing can be cleared.",
    EmbeddedResource "embedded-resource" Warning "A union is in an embedded resource, where it has no effect.",
    InvalidAnnotation "invalid-annotation" Error "The annotation, or a JSON Pointer in it, cannot be read.",
    DuplicateEntry "duplicate-entry" Warning "The annotation has a version, a JSON Pointer or another key twice.",
    UnknownVersion "unknown-version" Error "The annotation names a version that the CRD does not have.",
    UnknownPlace "unknown-place" Error "The schema has no place of this path.",
    StaleLastApplied "stale-last-applied" Warning "The last-applied configuration does not fit the schema.",
    Contradiction "contradiction" Error "Another declaration of the same union is in force.",
    UnreadableDeclaration "unreadable-declaration" Error "A UnionDeclaration cannot be read.",
    InvalidTarget "invalid-target" Error "The target of a UnionDeclaration names no kind, or a version twice.",
    MissingTarget "missing-target" Error "No file describes the target of a UnionDeclaration.",
    UnusableTarget "unusable-target" Error "The schema of the target of a UnionDeclaration cannot be read.",
    TargetNotInstalled "target-not-installed" Note "The cluster does not have the target of a UnionDeclaration.",
    InvalidActions "invalid-actions" Error "The actions of a UnionDeclaration contradict or repeat each other.",
    NoUnions "no-unions" Error "A UnionDeclaration declares nothing.",
    InvalidUnion "invalid-union" Error "A union of a UnionDeclaration is invalid in itself.",
    InvalidPodTemplate "invalid-pod-template" Error "The path of a pod template cannot be used, or is there twice.",
    UndescribedPlace "undescribed-place" Error "The schema keeps unknown fields and does not describe a place, and the union is not `schemaless`.",
    ConflictingType "conflicting-type" Error "A `schemaless` union takes a field for another type than the schema does.",
    ConflictingKeys "conflicting-keys" Error "Two UnionDeclarations, or one and the schema, give a list different keys.",
    TooManyFields "too-many-fields" Error "The `schemaless` unions of a kind have too many fields.",
    EmbeddedPlace "embedded-place" Error "A `schemaless` union is in an embedded resource.",
    VersionLeftOut "version-left-out" Note "The target does not have or serve a version that a UnionDeclaration names.",
    PlaceLeftOut "place-left-out" Note "The schema of the target lacks the place of a union, which is left out.",
    MemberLeftOut "member-left-out" Note "The schema of the target lacks a member, which is left out.",
    KeysLeftOut "keys-left-out" Note "The schema of the target decides otherwise than `listKeys`, which has no effect there.",
    DiscriminatorLeftOut "discriminator-left-out" Note "The schema of the target lacks the discriminator of a union, which is left out.",
    UnionRemoved "union-removed" Error "A union is not declared any more.",
    UnionMoved "union-moved" Error "A union is at another path.",
    UnionOverFields "union-over-fields" Warning "A union is declared over fields that an object may hold together.",
    UnionAdded "union-added" Note "A union is declared over new fields.",
    UnionBecameRequired "union-became-required" Error "An object must have a choice, and none was needed before.",
    UnionBecameOptional "union-became-optional" Note "An object need not have a choice any more.",
    FormChanged "form-changed" Error "A union changes between the forms of 2019 and 2022.",
    DiscriminatorRemoved "discriminator-removed" Error "A union has no discriminator any more.",
    DiscriminatorRenamed "discriminator-renamed" Error "A union has another discriminator.",
    DiscriminatorAdded "discriminator-added" Warning "A union of the 2019 form has a discriminator now.",
    ValueRemoved "value-removed" Error "A value of the discriminator is no choice any more.",
    ValueAdded "value-added" Note "A value of the discriminator is a new choice.",
    MemberRemoved "member-removed" Error "A field is no member any more.",
    MemberOverField "member-over-field" Warning "A field that objects may have becomes a member.",
    MemberAdded "member-added" Note "A new field is a member.",
    MemberDeselected "member-deselected" Error "A value does not select a member any more.",
    MemberBecameRequired "member-became-required" Error "A value needs a member that it could do without.",
    MemberBecameOptional "member-became-optional" Note "A value can do without a member that it needed.",
    GroupSplit "group-split" Error "Members that could be set together exclude each other.",
    GroupJoined "group-joined" Error "Members that excluded each other may be set together.",
    EmptyBecameSet "empty-became-set" Error "The empty value of a member counts as set.",
    EmptyBecameUnset "empty-became-unset" Error "The empty value of a member counts as not set.",
    NormalizationDisabled "normalization-disabled" Error "Nothing is cleared any more.",
    NormalizationEnabled "normalization-enabled" Note "The members that a write does not choose are cleared.",
    ActionBecameDeny "action-became-deny" Warning "Violations are refused that were accepted.",
    ActionRelaxed "action-relaxed" Note "Violations are accepted that were refused.",
    OnlyInOld "only-in-old" Note "Only the old files describe a version with unions.",
    OnlyInNew "only-in-new" Note "Only the new files describe a version with unions.",
    MoreErrors "more-errors" Error "There are more errors than the report has.",
    MoreWarnings "more-warnings" Warning "There are more warnings than the report has.",
    MoreNotes "more-notes" Note "There are more notes than the report has.",
    MisspeltName "misspelt-name" Error "A keyword or an annotation resembles one that declares unions, and has no effect.",
    MisspeltKind "misspelt-kind" Error "The kind of a document resembles one that declares unions, and is not checked.",
    MisplacedAnnotation "misplaced-annotation" Error "The annotation is where the CRD that is made of the document does not get it.",
    RulesTooWeak "rules-too-weak" Warning "The validations of a CRD are about a union, and allow an object that it rejects.",
    RulesTooStrong "rules-too-strong" Warning "The validations of a CRD are about a union, and reject an object that it allows.",
    RulesUndecided "rules-undecided" Note "A validation of a CRD is about a union, and cannot be compared with it.",
    RulesFail "rules-fail" Note "A rule of a CRD fails for an object that a union rejects, too, so its message is not shown.",
    RefusedSchema "refused-schema" Error "The API server refuses the schema of a CRD.",
    UndeclaredUnion "undeclared-union" Note "A CRD has `oneOf` or `anyOf` of required fields, and declares no union.",
    UnreadableInput "unreadable-input" Error "A file or a document cannot be read.",
}

impl FaultKind {
    /// Returns true if a fault of this kind reports that the target lacks a part of the declaration, which then has no effect.
    pub(crate) const fn is_left_out(self) -> bool {
        matches!(
            self,
            Self::TargetNotInstalled
                | Self::VersionLeftOut
                | Self::PlaceLeftOut
                | Self::MemberLeftOut
                | Self::KeysLeftOut
                | Self::DiscriminatorLeftOut
        )
    }

    /// Returns true if a fault of this kind is a difference between two revisions of a union, see
    /// [`RevisedKind::changes_since`](crate::revision::RevisedKind::changes_since).
    pub fn is_revision(self) -> bool {
        (Self::UnionRemoved..=Self::OnlyInNew).contains(&self)
    }

    /// Returns true if the other revision does not have the version at all.
    pub(crate) const fn is_lone(self) -> bool {
        matches!(self, Self::OnlyInOld | Self::OnlyInNew)
    }

    /// Returns the kind of a fault that stands for several faults of this severity.
    pub(crate) fn more(severity: Severity) -> Self {
        match severity {
            Severity::Error => Self::MoreErrors,
            Severity::Warning => Self::MoreWarnings,
            Severity::Note => Self::MoreNotes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_in_kebab_case() {
        let names: BTreeSet<&str> = FaultKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), FaultKind::ALL.len());
        for kind in FaultKind::ALL {
            assert!(kind.name().chars().all(|c| c == '-' || c.is_ascii_lowercase()), "{kind}");
            assert!(kind.meaning().ends_with('.'), "{kind}");
        }
    }
}
