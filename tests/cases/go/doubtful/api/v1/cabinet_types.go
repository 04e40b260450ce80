package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cabinet has no field that is named as a value is, so that no member can be told.
//
// +kubebuilder:object:root=true
type Cabinet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec CabinetSpec `json:"spec,omitempty"`
}

// CabinetProfileType is one.
//
// +kubebuilder:validation:Enum=Standard;Local;Open
type CabinetProfileType string

const (
	CabinetStandard CabinetProfileType = "Standard"
	CabinetLocal    CabinetProfileType = "Local"
	CabinetOpen     CabinetProfileType = "Open"
)

// CabinetSpec has a member for Local, as a reader knows and a program can not.
//
// +union
type CabinetSpec struct {
	// +unionDiscriminator
	// +required
	Type CabinetProfileType `json:"type"`

	// +optional
	LocalProfile *string `json:"localProfile,omitempty"`
}
