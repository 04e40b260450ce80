package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// defaultDoors is Go 1.26: `new` takes an expression.
var defaultDoors = new(int32(7))

// Depot has unions whose members nothing marks: the names of fields, groups of controller-gen, and rules tell them.
//
// +kubebuilder:object:root=true
type Depot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DepotSpec `json:"spec"`
}

// DepotSpec has a union of each kind.
type DepotSpec struct {
	// +optional
	Floor *Floor `json:"floor,omitempty"`
	// +optional
	Gate *Gate `json:"gate,omitempty"`
	// +optional
	Light *Light `json:"light,omitempty"`
	// +optional
	Alert *Alert `json:"alert,omitempty"`
	// +optional
	Freight *Freight `json:"freight,omitempty"`
	// Job is an object of another kind, which has a union itself.
	//
	// +kubebuilder:validation:EmbeddedResource
	// +optional
	Job *Job `json:"job,omitempty"`
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Anything *runtime.RawExtension `json:"anything,omitempty"`
}

// Doors returns the number of doors.
func (spec *DepotSpec) Doors() *int32 {
	if spec == nil {
		return new(*defaultDoors)
	}
	return defaultDoors
}

// FloorType ends with a separator.
//
// +kubebuilder:validation:Enum=Concrete;Wood;Earth;
type FloorType string

// Floor has a rule for one of its members, so only that one is required.
//
// +union
// +kubebuilder:validation:XValidation:rule="self.type == 'Wood' ? has(self.wood) : !has(self.wood)",message="wood is required when type is Wood, and forbidden otherwise"
type Floor struct {
	// +unionDiscriminator
	// +required
	Type FloorType `json:"type"`
	// +optional
	Concrete *Layer `json:"concrete,omitempty"`
	// +optional
	Wood *Layer `json:"wood,omitempty"`
}

// Layer has nothing to set.
type Layer struct{}

// GateType has values in lower case.
//
// +kubebuilder:validation:Enum=roller;swing;none
type GateType string

const (
	RollerGate GateType = "roller"
	SwingGate  GateType = "swing"
	NoGate     GateType = "none"
)

// Gate has members whose JSON names are the values.
//
// +union
type Gate struct {
	// +unionDiscriminator
	// +required
	Kind GateType `json:"kind"`
	// +optional
	RollerShutter *Layer `json:"roller,omitempty"`
	// +optional
	SwingDoor *Layer `json:"swing,omitempty"`
}

// Light needs one of three.
//
// +kubebuilder:validation:ExactlyOneOf=bulb;tube;daylight
type Light struct {
	// +optional
	Bulb *Layer `json:"bulb,omitempty"`
	// +optional
	Tube *Layer `json:"tube,omitempty"`
	// +optional
	Daylight *bool `json:"daylight,omitempty"`
	// +optional
	Watts *int32 `json:"watts,omitempty"`
}

// Alert has two groups, one of which has a field of an inlined struct.
//
// +kubebuilder:validation:AtMostOneOf=bell;siren
// +kubebuilder:validation:AtMostOneOf=mail;pager
type Alert struct {
	AlertTargets `json:",inline"`

	// +optional
	Bell *Layer `json:"bell,omitempty"`
	// +optional
	Siren *Layer `json:"siren,omitempty"`
	// +optional
	Mail *Layer `json:"mail,omitempty"`
}

// AlertTargets is inlined.
type AlertTargets struct {
	// +optional
	Pager *Layer `json:"pager,omitempty"`
}

// FreightType has no constants.
//
// +kubebuilder:validation:Enum=Box;Barrel
type FreightType string

// Freight is marked, and a group says the same again.
//
// +kubebuilder:validation:AtMostOneOf=box;barrel
type Freight struct {
	// +unionDiscriminator
	// +required
	Type FreightType `json:"type"`
	// +unionMember
	// +optional
	Box *Layer `json:"box,omitempty"`
	// +unionMember
	// +optional
	Barrel *Layer `json:"barrel,omitempty"`
}

// Job is an object.
type Job struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	Metadata metav1.ObjectMeta `json:"metadata,omitempty"`
	// +optional
	Freight *Freight `json:"freight,omitempty"`
}
