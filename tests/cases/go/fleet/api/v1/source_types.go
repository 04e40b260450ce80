package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	objects "example.com/fleet/common/object-store"
)

// Source is where devices get their configuration from. All its unions have the form of 2019.
//
// +kubebuilder:object:root=true
type Source struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec SourceSpec `json:"spec,omitempty"`
}

// SourceSpec has a union without a discriminator among other fields.
type SourceSpec struct {
	// +optional
	Every *metav1.Duration `json:"every,omitempty"`

	// +unionDeprecated
	// +optional
	Git *string `json:"git,omitempty"`

	// +unionDeprecated
	// +optional
	OCI *string `json:"oci,omitempty"`

	// Proxy is an ordinary field between two members.
	// +optional
	Proxy *Proxy `json:"proxy,omitempty"`

	// +unionDeprecated
	// +optional
	Bucket *objects.Bucket `json:"bucket,omitempty"`

	// +optional
	Verification *Verification `json:"verification,omitempty"`

	// +optional
	Credentials Credentials `json:"credentials,omitempty"`

	// Overlays are looked up one after the other.
	// +optional
	Overlays map[string]*Overlay `json:"overlays,omitempty"`
}

// Proxy is what stands between.
type Proxy struct {
	Address string `json:"address"`
}

// VerificationProvider is who says that something is right. Only the constants tell the values.
//
// +enum
type VerificationProvider string

const (
	ProviderCosign   VerificationProvider = "Cosign"
	ProviderNotation VerificationProvider = "Notation"
	// ProviderNobody has no field.
	ProviderNobody VerificationProvider = "Nobody"
)

// Verification has a discriminator and members in the old way.
type Verification struct {
	// +unionDiscriminator
	// +optional
	Provider VerificationProvider `json:"provider,omitempty"`

	// +unionDeprecated
	// +optional
	Cosign *string `json:"cosign,omitempty"`

	// +unionDeprecated
	// +optional
	Notation *string `json:"notation,omitempty"`

	// Exempt has what is let through anyway.
	// +optional
	Exempt *string `json:"exempt,omitempty"`
}

// Credentials are a union whose members are marked and that has no discriminator.
//
// +union
type Credentials struct {
	// User is for the log.
	// +optional
	User *string `json:"user,omitempty"`

	// +unionMember
	// +optional
	Token *string `json:"token,omitempty"`

	// +unionMember=Password
	// +optional
	PasswordRef *string `json:"password,omitempty"`
}

// Overlay is a value of a map.
type Overlay struct {
	// +k8s:zeroOrOneOfMember
	// +optional
	// +k8s:optional
	Inline *string `json:"inline,omitempty"`

	// +k8s:zeroOrOneOfMember
	// +optional
	// +k8s:optional
	ConfigMap *string `json:"configMap,omitempty"`

	// +optional
	Comment string `json:"comment,omitempty"`
}
