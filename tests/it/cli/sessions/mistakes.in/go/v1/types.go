// +groupName=example.com
package v1

// +kubebuilder:object:root=true
type Rollout struct {
	Spec Spec `json:"spec"`
}

type Spec struct {
	Strategy Strategy `json:"strategy"`
}

// +unoin
type Strategy struct {
	// +unionDiscriminator
	Type string `json:"type"`
	// +unionMember
	Canary *Canary `json:"canary,omitempty"`
}

type Canary struct {
	Steps int `json:"steps"`
}
