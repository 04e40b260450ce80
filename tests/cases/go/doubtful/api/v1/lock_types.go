package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Lock has a discriminator of which nobody says what values it has.
//
// +kubebuilder:object:root=true
type Lock struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec LockSpec `json:"spec,omitempty"`
}

// LockSpec is a union.
//
// +union
type LockSpec struct {
	// +unionDiscriminator
	// +required
	Type string `json:"type"`

	// +optional
	Padlock *Padlock `json:"padlock,omitempty"`
}

// Padlock is one.
type Padlock struct {
	Keys int32 `json:"keys"`
}
