package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rail has groups that share a field.
//
// +kubebuilder:object:root=true
type Rail struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RailSpec `json:"spec,omitempty"`
}

// RailSpec has a group beside.
//
// +kubebuilder:validation:AtMostOneOf=iron;wood
// +kubebuilder:validation:AtMostOneOf=wood;rope
// +kubebuilder:validation:AtMostOneOf=left;right
type RailSpec struct {
	// +optional
	Iron *int32 `json:"iron,omitempty"`
	// +optional
	Wood *int32 `json:"wood,omitempty"`
	// +optional
	Rope *int32 `json:"rope,omitempty"`
	// +optional
	Left *int32 `json:"left,omitempty"`
	// +optional
	Right *int32 `json:"right,omitempty"`
	// +optional
	Post *Post `json:"post,omitempty"`
}

// PostType has no constants.
//
// +kubebuilder:validation:Enum=Round;Square
type PostType string

// Post is a union, and a group has one of its members.
//
// +kubebuilder:validation:AtMostOneOf=round;cap
type Post struct {
	// +unionDiscriminator
	// +required
	Type PostType `json:"type"`
	// +unionMember
	// +optional
	Round *int32 `json:"round,omitempty"`
	// +unionMember
	// +optional
	Square *int32 `json:"square,omitempty"`
	// +optional
	Cap *int32 `json:"cap,omitempty"`
}
