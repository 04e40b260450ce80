package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Sign has markers on things that they can't be on.
//
// +kubebuilder:object:root=true
type Sign struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec SignSpec `json:"spec,omitempty"`
}

// SignText is a string, and no string is a union.
//
// +union
type SignText string

// SignColour is the type of a discriminator, not the discriminator.
//
// +unionDiscriminator
// +kubebuilder:validation:Enum=Red;Green
type SignColour string

// One colour is marked, as if it were a member.
const (
	SignRed SignColour = "Red"
	// +unionMember
	SignGreen SignColour = "Green"
)

// SignSpec has no union.
type SignSpec struct {
	// +optional
	Text SignText `json:"text,omitempty"`

	// +optional
	Colour SignColour `json:"colour,omitempty"`

	// +optional
	Lit *bool `json:"lit,omitempty"`
}

// IsRed asks for the colour.
//
// +union
func (spec *SignSpec) IsRed() bool {
	return spec.Colour == SignRed
}
