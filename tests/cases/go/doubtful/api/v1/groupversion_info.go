// Package v1 has kinds whose markers leave a doubt, or are wrong: one kind a file.
//
// +kubebuilder:object:generate=true
// +groupName=doubtful.example.com
package v1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is what objects of this package say in apiVersion.
var GroupVersion = schema.GroupVersion{Group: "doubtful.example.com", Version: "v1"}
