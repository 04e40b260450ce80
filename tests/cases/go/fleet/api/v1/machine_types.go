package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Machine is one device. What can be said of its place depends on how the program is built.
//
// +kubebuilder:object:root=true
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec MachineSpec `json:"spec,omitempty"`
}

// MachineSpec is what is wanted.
type MachineSpec struct {
	// +optional
	Serial string `json:"serial,omitempty"`

	// +optional
	Placement *Placement `json:"placement,omitempty"`

	*Power `json:",inline"`

	// +listType=map
	// +listMapKey=name
	// +optional
	Parts []Part `json:"parts,omitempty"`
}

// PlacementType is a sort of place.
//
// +kubebuilder:validation:Enum=Anywhere;Rack;Cage
type PlacementType string

const (
	PlacementAnywhere PlacementType = "Anywhere"
	PlacementRack     PlacementType = "Rack"
	PlacementCage     PlacementType = "Cage"
)

// PowerType is where the current comes from.
//
// +kubebuilder:validation:Enum=Mains;Battery;Solar
type PowerType string

const (
	PowerMains   PowerType = "Mains"
	PowerBattery PowerType = "Battery"
	PowerSolar   PowerType = "Solar"
)

// Power is embedded by a pointer, and nothing but `+union` marks its members.
//
// +union
type Power struct {
	// +unionDiscriminator
	// +optional
	PowerFrom PowerType `json:"powerFrom,omitempty"`

	// +optional
	Battery *Battery `json:"battery,omitempty"`

	// +optional
	Solar *Panel `json:"solar,omitempty"`

	// Watts is how much, wherever from.
	// +optional
	Watts *int32 `json:"watts,omitempty"`
}

// Battery is one.
type Battery struct{}

// Panel is one.
type Panel struct{}

// Part has parts, which the schema does not follow any further.
type Part struct {
	Name string `json:"name"`

	// +unionDeprecated
	// +optional
	Model *string `json:"model,omitempty"`

	// +unionDeprecated
	// +optional
	DrawingRef *string `json:"drawing,omitempty"`

	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Parts []Part `json:"parts,omitempty"`
}
