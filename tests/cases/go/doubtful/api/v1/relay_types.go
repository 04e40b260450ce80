package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Relay has a member of a discriminator that is not there.
//
// +kubebuilder:object:root=true
type Relay struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RelaySpec `json:"spec,omitempty"`
}

// RelayMode is one.
//
// +kubebuilder:validation:Enum=Pulse;Hold
type RelayMode string

const (
	RelayPulse RelayMode = "Pulse"
	RelayHold  RelayMode = "Hold"
)

// RelaySpec is a union.
type RelaySpec struct {
	// +unionDiscriminator
	// +required
	Mode RelayMode `json:"mode"`

	// +unionMember
	// +unionDiscriminatedBy=Type
	// +optional
	Pulse *Pulse `json:"pulse,omitempty"`

	// +unionMember
	// +unionDiscriminatedBy=Mode
	// +optional
	Hold *Hold `json:"hold,omitempty"`
}

// Pulse is one.
type Pulse struct {
	Millis int32 `json:"millis"`
}

// Hold is one.
type Hold struct {
	Seconds int32 `json:"seconds"`
}
