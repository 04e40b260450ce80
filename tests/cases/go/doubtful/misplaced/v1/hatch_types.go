package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Hatch has markers where nothing reads them, beside a union that is right.
//
// +kubebuilder:object:root=true
type Hatch struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec HatchSpec `json:"spec,omitempty"`
}

// HatchType is one.
//
// +kubebuilder:validation:Enum=Round;Square
type HatchType string

const (
	HatchRound  HatchType = "Round"
	HatchSquare HatchType = "Square"
)

// HatchSpec is a union with two members, and ordinary fields.
type HatchSpec struct {
	// +unionDiscriminator
	// +required
	Type HatchType `json:"type"`

	// +unionMember
	// +optional
	Round *Opening `json:"round,omitempty"`

	// +unionMember
	// +optional
	Square *Opening `json:"square,omitempty"`

	// +optional
	Handle *Handle `json:"handle,omitempty"` // +unionMember

	// Window is open or closed.
	// +unionMember

	// It was a member once, and much has been said since.

	// +optional
	Window *Handle `json:"window,omitempty"`

	/*
		+unionMember
		+optional
	*/
	Lamp *Handle `json:"lamp,omitempty"`
}

// Handle is what to pull at.
type Handle struct {
	Colour string `json:"colour"`
}

// Opening is how far.
type Opening struct {
	Percent int32 `json:"percent"`
}
