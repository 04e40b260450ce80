// +groupName=kilns.example.com
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
type Kiln struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec KilnSpec `json:"spec,omitempty"`
}

// +kubebuilder:validation:Enum=Cold;Glaze;Bisque
type FiringType string

type KilnSpec struct {
	// +unionDiscriminator
	// +required
	Firing FiringType `json:"firing"`
	// +unionMember
	// +optional
	Glaze *Program `json:"glaze,omitempty"`
	// +unionMember
	// +optional
	Bisque *Program `json:"bisque,omitempty"`
}

type Program struct {
	Degrees int32 `json:"degrees"`
}
