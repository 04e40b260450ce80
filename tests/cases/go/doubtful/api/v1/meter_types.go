package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Meter has a member that must be there.
//
// +kubebuilder:object:root=true
type Meter struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec MeterSpec `json:"spec,omitempty"`
}

// MeterType is one.
//
// +kubebuilder:validation:Enum=Analog;Digital
type MeterType string

const (
	MeterAnalog  MeterType = "Analog"
	MeterDigital MeterType = "Digital"
)

// MeterSpec is a union.
type MeterSpec struct {
	// +unionDiscriminator
	// +required
	Type MeterType `json:"type"`

	// +unionMember
	// +optional
	Analog *Dial `json:"analog,omitempty"`

	// +unionMember
	Digital Display `json:"digital"`
}

// Dial is one.
type Dial struct {
	Max int32 `json:"max"`
}

// Display is one.
type Display struct {
	Digits int32 `json:"digits"`
}
