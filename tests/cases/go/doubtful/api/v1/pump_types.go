package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pump has a member whose name is no value.
//
// +kubebuilder:object:root=true
type Pump struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PumpSpec `json:"spec,omitempty"`
}

// PumpType is one.
//
// +kubebuilder:validation:Enum=Vacuum;Piston
type PumpType string

const (
	PumpVacuum PumpType = "Vacuum"
	PumpPiston PumpType = "Piston"
)

// PumpSpec is a union.
type PumpSpec struct {
	// +unionDiscriminator
	// +required
	Type PumpType `json:"type"`

	// +unionMember=Vacum
	// +optional
	Vacuum *Vacuum `json:"vacuum,omitempty"`

	// +unionMember
	// +optional
	Piston *Piston `json:"piston,omitempty"`
}

// Vacuum is one.
type Vacuum struct {
	Pascal int32 `json:"pascal"`
}

// Piston is one.
type Piston struct {
	Strokes int32 `json:"strokes"`
}
