package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Filter has two members that are chosen by one value.
//
// +kubebuilder:object:root=true
type Filter struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FilterSpec `json:"spec,omitempty"`
}

// FilterType is one.
//
// +kubebuilder:validation:Enum=Coarse;Fine
type FilterType string

const (
	FilterCoarse FilterType = "Coarse"
	FilterFine   FilterType = "Fine"
)

// FilterSpec is a union.
type FilterSpec struct {
	// +unionDiscriminator
	// +required
	Type FilterType `json:"type"`

	// +unionMember=Fine
	// +optional
	Paper *Paper `json:"paper,omitempty"`

	// +unionMember=Fine
	// +optional
	Cloth *Cloth `json:"cloth,omitempty"`
}

// Paper is some.
type Paper struct {
	Microns int32 `json:"microns"`
}

// Cloth is some.
type Cloth struct {
	Threads int32 `json:"threads"`
}
