package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Heater has a field left over that looks like a member, and a union without a doubt beside.
//
// +kubebuilder:object:root=true
type Heater struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec HeaterSpec `json:"spec,omitempty"`
}

// HeaterSpec has two unions.
type HeaterSpec struct {
	// +optional
	Program *Program `json:"program,omitempty"`
	// +optional
	Power *Power `json:"power,omitempty"`
}

// ProgramType is one.
//
// +kubebuilder:validation:Enum=Off;Eco;Boost
type ProgramType string

const (
	ProgramOff   ProgramType = "Off"
	ProgramEco   ProgramType = "Eco"
	ProgramBoost ProgramType = "Boost"
)

// Program is a union in which Turbo may have been meant by Boost, or be no member at all.
//
// +union
type Program struct {
	// +unionDiscriminator
	// +required
	Type ProgramType `json:"type"`

	// +optional
	Eco *Eco `json:"eco,omitempty"`

	// +optional
	Turbo *Turbo `json:"turbo,omitempty"`
}

// Eco is one.
type Eco struct {
	Degrees int32 `json:"degrees"`
}

// Turbo is one.
type Turbo struct {
	Minutes int32 `json:"minutes"`
}

// PowerType is one.
//
// +kubebuilder:validation:Enum=Mains;Gas
type PowerType string

const (
	PowerMains PowerType = "Mains"
	PowerGas   PowerType = "Gas"
)

// Power is right.
type Power struct {
	// +unionDiscriminator
	// +required
	From PowerType `json:"from"`

	// +unionMember
	// +optional
	Mains *Mains `json:"mains,omitempty"`

	// +unionMember
	// +optional
	Gas *Gas `json:"gas,omitempty"`
}

// Mains is one.
type Mains struct {
	Volts int32 `json:"volts"`
}

// Gas is some.
type Gas struct {
	Bottles int32 `json:"bottles"`
}
