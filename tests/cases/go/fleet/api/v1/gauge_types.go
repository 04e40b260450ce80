package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Gauge measures; its unions are marked as those of Kubernetes itself are, and few have a discriminator.
//
// +kubebuilder:object:root=true
type Gauge struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GaugeSpec `json:"spec,omitempty"`
}

// GaugeSpec is what is wanted.
type GaugeSpec struct {
	// +optional
	Input *Input `json:"input,omitempty"`

	// +optional
	Scale *Scale `json:"scale,omitempty"`

	// The markers are for the fields of the struct.
	// +k8s:subfield(low)=+k8s:zeroOrOneOfMember
	// +k8s:beta(since: "1.37")=+k8s:subfield(high)=+k8s:zeroOrOneOfMember
	// +optional
	Limit *Limit `json:"limit,omitempty"`

	// +optional
	Reset *Reset `json:"reset,omitempty"`
}

// Input is exactly one of its fields.
type Input struct {
	// +k8s:unionMember
	// +optional
	Pin *int32 `json:"pin,omitempty"`

	// An empty address is none.
	// +k8s:unionMember
	// +optional
	Address string `json:"address,omitempty"`
}

// ScaleMode is how a signal becomes a value.
//
// +kubebuilder:validation:Enum=Linear;Table;Raw
type ScaleMode string

const (
	ScaleLinear ScaleMode = "Linear"
	ScaleTable  ScaleMode = "Table"
	ScaleRaw    ScaleMode = "Raw"
)

// Scale depends on its mode.
type Scale struct {
	// +k8s:modeDiscriminator
	// +required
	Mode ScaleMode `json:"mode"`

	// +k8s:ifMode("Linear")=+k8s:required
	// +k8s:ifMode("Linear")=+k8s:minimum=1
	// +optional
	Factor *int32 `json:"factor,omitempty"`

	// +k8s:ifMode("Table")=+k8s:optional
	// +optional
	Points []int32 `json:"points,omitempty"`
}

// Limit is a struct without markers of its own.
type Limit struct {
	// +optional
	Low *int32 `json:"low,omitempty"`
	// +optional
	High *int32 `json:"high,omitempty"`
}

// Reset is by time or by number.
type Reset struct {
	// +k8s:ifEnabled(ResetByTime)=+k8s:dependentForbidden("count")
	// +optional
	Every *metav1.Duration `json:"every,omitempty"`
	// +optional
	Count int32 `json:"count,omitempty"`
}
