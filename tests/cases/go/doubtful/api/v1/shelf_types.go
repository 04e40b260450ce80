package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Shelf has a union of which nothing but the name is there.
//
// +kubebuilder:object:root=true
type Shelf struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ShelfSpec `json:"spec,omitempty"`
}

// ShelfSpec has neither a discriminator nor members.
//
// +union
type ShelfSpec struct {
	// +optional
	Wood *Wood `json:"wood,omitempty"`

	// +optional
	Steel *Steel `json:"steel,omitempty"`

	// +optional
	Label *string `json:"label,omitempty"`
}

// Wood is some.
type Wood struct {
	Tree string `json:"tree"`
}

// Steel is some.
type Steel struct {
	Grade string `json:"grade"`
}
