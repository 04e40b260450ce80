// Package v1 has a kind with generic structs, which controller-gen can't read.
//
// +kubebuilder:object:generate=true
// +groupName=tuning.fleet.example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Tuning sets what devices can be set to.
//
// +kubebuilder:object:root=true
type Tuning struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec TuningSpec `json:"spec,omitempty"`
}

// TuningSpec has the same generic struct for several types, and a generic list.
type TuningSpec struct {
	// +optional
	Volume *Setting[int32] `json:"volume,omitempty"`
	// +optional
	Cooling *Setting[Cooling] `json:"cooling,omitempty"`
	// +listType=map
	// +listMapKey=name
	// +optional
	Named List[Alarm] `json:"named,omitempty"`
	// +optional
	Extra Pair[string, *Setting[string]] `json:"extra,omitempty"`
}

// Mode is where a setting comes from.
//
// +kubebuilder:validation:Enum=Factory;Value;Lookup
type Mode string

const (
	ModeFactory Mode = "Factory"
	ModeValue   Mode = "Value"
	ModeLookup  Mode = "Lookup"
)

// Setting is a value, or where it comes from.
type Setting[T any] struct {
	// +unionDiscriminator
	// +required
	Mode Mode `json:"mode"`

	// +unionMember
	// +optional
	Value *T `json:"value,omitempty"`

	// +unionMember=Lookup
	// +optional
	From *Lookup `json:"from,omitempty"`
}

// Lookup is a key somewhere.
type Lookup struct {
	Key string `json:"key"`
}

// CoolingType is how.
//
// +kubebuilder:validation:Enum=Fan;Water
type CoolingType string

const (
	CoolingFan   CoolingType = "Fan"
	CoolingWater CoolingType = "Water"
)

// Cooling is a union in the argument of a type.
type Cooling struct {
	// +unionDiscriminator
	// +required
	Type CoolingType `json:"type"`

	// +unionMember
	// +optional
	Fan *Fan `json:"fan,omitempty"`

	// +unionMember,optional
	// +optional
	Water *Water `json:"water,omitempty"`
}

// Fan is one.
type Fan struct {
	Speed int32 `json:"speed"`
}

// Water is some.
type Water struct {
	// +optional
	Flow int32 `json:"flow,omitempty"`
}

// List has items of any type.
type List[E any] []E

// Alarm is an item of a generic list.
type Alarm struct {
	Name string `json:"name"`

	// +unionDeprecated
	// +optional
	Above *int32 `json:"above,omitempty"`

	// +unionDeprecated
	// +optional
	Below *int32 `json:"below,omitempty"`
}

// Pair has two parameters.
type Pair[K comparable, V any] struct {
	// +optional
	Left K `json:"left,omitempty"`
	// +optional
	Right V `json:"right,omitempty"`
}
