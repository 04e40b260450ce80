package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rollout brings an image to the devices of a fleet.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Rollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RolloutSpec `json:"spec,omitempty"`
}

// RolloutSpec is what is wanted.
type RolloutSpec struct {
	// Image is what the devices shall run.
	Image string `json:"image"`

	// +optional
	Strategy Strategy `json:"strategy,omitempty"`
}

// StrategyType is how the devices get the image. There was no canary yet.
//
// +kubebuilder:validation:Enum=AllAtOnce;Rolling
type StrategyType string

const (
	AllAtOnce StrategyType = "AllAtOnce"
	Rolling   StrategyType = "Rolling"
)

// Strategy had one member, by another name than in v1.
type Strategy struct {
	// +unionDiscriminator
	// +optional
	Type StrategyType `json:"type,omitempty"`

	// +unionMember,optional
	// +optional
	Rolling *int32 `json:"rolling,omitempty"`

	// RollingUpdate is the new name, which was an ordinary field here.
	// +optional
	RollingUpdate *int32 `json:"rollingUpdate,omitempty"`
}
