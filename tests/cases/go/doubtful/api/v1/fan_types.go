package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fan has a discriminator that is no string.
//
// +kubebuilder:object:root=true
type Fan struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FanSpec `json:"spec,omitempty"`
}

// FanSpec is a union.
type FanSpec struct {
	// +unionDiscriminator
	// +optional
	Fast bool `json:"fast,omitempty"`

	// +unionMember
	// +optional
	Slowly *Speed `json:"slowly,omitempty"`

	// +unionMember
	// +optional
	Quickly *Speed `json:"quickly,omitempty"`
}

// Speed is one.
type Speed struct {
	PerMinute int32 `json:"perMinute"`
}
