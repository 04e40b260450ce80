// Package v1 has kinds with markers where none has effect, and markers that can not be read.
//
// +kubebuilder:object:generate=true
// +groupName=misplaced.doubtful.example.com
package v1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is what objects of this package say in apiVersion.
var GroupVersion = schema.GroupVersion{Group: "misplaced.doubtful.example.com", Version: "v1"}
