// Package v1beta1 has what v1 was before.
//
// +kubebuilder:object:generate=true
// +groupName=fleet.example.com
package v1beta1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is what objects of this package say in apiVersion.
var GroupVersion = schema.GroupVersion{Group: "fleet.example.com", Version: "v1beta1"}
