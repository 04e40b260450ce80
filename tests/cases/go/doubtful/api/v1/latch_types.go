package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Latch has members that are marked, and values that nobody confirms.
//
// +kubebuilder:object:root=true
type Latch struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec LatchSpec `json:"spec,omitempty"`
}

// LatchSpec is a union in the way of 2022, less the enum.
type LatchSpec struct {
	// +unionDiscriminator
	// +required
	Type string `json:"type"`

	// +unionMember
	// +optional
	Spring *Spring `json:"spring,omitempty"`

	// +unionMember=Magnetic
	// +optional
	Magnet *Magnet `json:"magnet,omitempty"`
}

// Spring is one.
type Spring struct {
	Force int32 `json:"force"`
}

// Magnet is one.
type Magnet struct {
	Force int32 `json:"force"`
}
