package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Valve has constants that the enum does not have.
//
// +kubebuilder:object:root=true
type Valve struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ValveSpec `json:"spec,omitempty"`
}

// ValvePosition has one value more than its enum.
//
// +kubebuilder:validation:Enum=Open;Closed
type ValvePosition string

const (
	ValveOpen   ValvePosition = "Open"
	ValveClosed ValvePosition = "Closed"
	ValveBleed  ValvePosition = "Bleed"
)

// ValveSpec is a union.
type ValveSpec struct {
	// +unionDiscriminator
	// +required
	Position ValvePosition `json:"position"`

	// +unionMember
	// +optional
	Open *Opening `json:"open,omitempty"`
}

// Opening is how far.
type Opening struct {
	Percent int32 `json:"percent"`
}
