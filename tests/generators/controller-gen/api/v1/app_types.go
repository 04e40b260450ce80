// +groupName=generators.example.com
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
type App struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AppSpec `json:"spec"`
}

type AppSpec struct {
	Source Source `json:"source"`
}

// +kubebuilder:validation:ExactlyOneOf=git;image
type Source struct {
	Git   *Git   `json:"git,omitempty"`
	Image *Image `json:"image,omitempty"`
}

type Git struct {
	URL string `json:"url"`
}

type Image struct {
	Ref string `json:"ref"`
}
