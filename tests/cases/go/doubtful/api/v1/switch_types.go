package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Switch has two discriminators, and members that do not say whose they are.
//
// +kubebuilder:object:root=true
type Switch struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec SwitchSpec `json:"spec,omitempty"`
}

// SwitchMode is one.
//
// +kubebuilder:validation:Enum=Timer;Sensor
type SwitchMode string

const (
	SwitchTimer  SwitchMode = "Timer"
	SwitchSensor SwitchMode = "Sensor"
)

// SwitchSpec is one union, or two.
type SwitchSpec struct {
	// +unionDiscriminator
	// +required
	Day SwitchMode `json:"day"`

	// +unionDiscriminator
	// +required
	Night SwitchMode `json:"night"`

	// +unionMember
	// +optional
	Timer *Timer `json:"timer,omitempty"`

	// +unionMember
	// +optional
	Sensor *Sensor `json:"sensor,omitempty"`
}

// Timer is one.
type Timer struct {
	Minutes int32 `json:"minutes"`
}

// Sensor is one.
type Sensor struct {
	Lux int32 `json:"lux"`
}
