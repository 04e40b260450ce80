package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Lamp has a member that comes back whenever it is cleared.
//
// +kubebuilder:object:root=true
type Lamp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec LampSpec `json:"spec,omitempty"`
}

// LampType is one.
//
// +kubebuilder:validation:Enum=White;Coloured
type LampType string

const (
	LampWhite    LampType = "White"
	LampColoured LampType = "Coloured"
)

// LampSpec is a union.
type LampSpec struct {
	// +unionDiscriminator
	// +required
	Type LampType `json:"type"`

	// +unionMember=White
	// +kubebuilder:default=4000
	// +optional
	Kelvin *int32 `json:"kelvin,omitempty"`

	// +unionMember=Coloured
	// +optional
	Colour *string `json:"colour,omitempty"`
}
