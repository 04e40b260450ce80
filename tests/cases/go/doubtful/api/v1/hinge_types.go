package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Hinge has a discriminator, and no field that it could choose.
//
// +kubebuilder:object:root=true
type Hinge struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec HingeSpec `json:"spec,omitempty"`
}

// HingeType is one.
//
// +kubebuilder:validation:Enum=Left;Right
type HingeType string

const (
	HingeLeft  HingeType = "Left"
	HingeRight HingeType = "Right"
)

// HingeSpec has a discriminator and no field that it could choose.
type HingeSpec struct {
	// +unionDiscriminator
	// +required
	Side HingeType `json:"side"`

	// +optional
	Screws *int32 `json:"screws,omitempty"`
}
