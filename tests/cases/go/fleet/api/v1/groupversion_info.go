// Package v1 has the kinds of a fleet of devices.
//
// +kubebuilder:object:generate=true
// +groupName=fleet.example.com
package v1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is what objects of this package say in apiVersion.
var GroupVersion = schema.GroupVersion{Group: "fleet.example.com", Version: "v1"}
