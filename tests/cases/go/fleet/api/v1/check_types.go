package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Check finds out how devices are; its unions are marked as those of Kubernetes itself are.
//
// +kubebuilder:object:root=true
type Check struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec CheckSpec `json:"spec,omitempty"`
}

// CheckSpec is what is wanted.
type CheckSpec struct {
	// +listType=map
	// +listMapKey=name
	// +optional
	Probes []Probe `json:"probes,omitempty"`

	// +optional
	Alarm *Alarm `json:"alarm,omitempty"`

	// +optional
	Window *Window `json:"window,omitempty"`

	// +optional
	Preview *Preview `json:"preview,omitempty"`
}

// ProbeType is how a device is asked.
//
// +kubebuilder:validation:Enum=HttpGet;Exec;Icmp
type ProbeType string

const (
	ProbeHTTP ProbeType = "HttpGet"
	ProbeExec ProbeType = "Exec"
	ProbeICMP ProbeType = "Icmp"
)

// Probe is one question.
type Probe struct {
	Name string `json:"name"`

	// +k8s:unionDiscriminator
	// +required
	Type ProbeType `json:"type"`

	// HTTPGet has the letters of its value in another case.
	// +k8s:unionMember
	// +k8s:optional
	// +optional
	HTTPGet *HTTPGet `json:"httpGet,omitempty"`

	// +k8s:unionMember
	// +k8s:optional
	// +optional
	Exec *string `json:"exec,omitempty"`

	// Every is an ordinary field.
	// +optional
	Every *metav1.Duration `json:"every,omitempty"`
}

// HTTPGet is a page.
type HTTPGet struct {
	Path string `json:"path"`
}

// Channel is how to tell a person.
//
// +kubebuilder:validation:Enum=Mail;Pager
type Channel string

const (
	ChannelMail  Channel = "Mail"
	ChannelPager Channel = "Pager"
)

// Severity is how loudly.
//
// +kubebuilder:validation:Enum=Quiet;Loud
type Severity string

const (
	SeverityQuiet Severity = "Quiet"
	SeverityLoud  Severity = "Loud"
)

// Alarm has two unions, told apart by name.
type Alarm struct {
	// +k8s:unionDiscriminator(union: "channel")
	// +required
	Channel Channel `json:"channel"`

	// +k8s:unionMember(union: "channel", memberName: "Mail")
	// +k8s:optional
	// +optional
	Letter *string `json:"letter,omitempty"`

	// +k8s:unionMember(union: "channel")
	// +k8s:optional
	// +optional
	Pager *string `json:"pager,omitempty"`

	// +k8s:unionDiscriminator(union: "severity")
	// +required
	Severity Severity `json:"severity"`

	// +k8s:unionMember(memberName: "Loud", union: "severity")
	// +k8s:optional
	// +optional
	Siren *int32 `json:"siren,omitempty"`
}

// Window is when not to ask: at most one of its fields, and no discriminator.
type Window struct {
	// Weekly is not set if it is empty.
	// +k8s:zeroOrOneOfMember
	// +k8s:optional
	// +optional
	Weekly string `json:"weekly,omitempty"`

	// +k8s:zeroOrOneOfMember
	// +k8s:optional
	// +optional
	Until *metav1.Time `json:"until,omitempty"`

	// Reason is an ordinary field.
	// +optional
	Reason *string `json:"reason,omitempty"`
}

// PreviewType is a sort of preview.
//
// +kubebuilder:validation:Enum=Shadow;Replay
type PreviewType string

const (
	PreviewShadow PreviewType = "Shadow"
	PreviewReplay PreviewType = "Replay"
)

// Preview is new: its markers say so.
type Preview struct {
	// +k8s:alpha(since: "1.37")=+k8s:unionDiscriminator
	// +required
	Type PreviewType `json:"type"`

	// +k8s:alpha(since: "1.37")=+k8s:unionMember(memberName: "Shadow")
	// +k8s:alpha(since: "1.37")=+k8s:optional
	// +optional
	Mirror *string `json:"mirror,omitempty"`

	// +k8s:alpha(since: "1.37")=+k8s:unionMember
	// +k8s:alpha(since: "1.37")=+k8s:optional
	// +optional
	Replay *string `json:"replay,omitempty"`
}
