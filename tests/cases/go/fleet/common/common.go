// Package common has what kinds of several packages are made of.
//
// +kubebuilder:object:generate=true
package common

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Canary is how to begin with few devices.
type Canary struct {
	// Share is how many of a hundred devices are taken first.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=99
	// +optional
	Share *int32 `json:"share,omitempty"`

	// +optional
	Judge *Judge `json:"judge,omitempty"`
}

// Verdict is what decides.
//
// +kubebuilder:validation:Enum=Manual;Metric;Script
type Verdict string

// These are all of them; a person needs no configuration.
const (
	VerdictManual Verdict = "Manual"
	VerdictMetric Verdict = "Metric"
	VerdictScript Verdict = "Script"
)

// Judge decides whether the canary lives. It is a union of this package, reached from kinds of others.
type Judge struct {
	// +unionDiscriminator
	// +required
	By Verdict `json:"by"`

	// +unionMember
	// +optional
	Metric *Metric `json:"metric,omitempty"`

	// +unionMember
	// +optional
	Script *string `json:"script,omitempty"`

	// After is how long to wait first; an ordinary field.
	// +optional
	After *metav1.Duration `json:"after,omitempty"`
}

// Metric is a threshold.
type Metric struct {
	Name string `json:"name"`
	Max  int64  `json:"max"`
}

// Level is how much is written down.
//
// +kubebuilder:validation:Enum=Off;Sample;Full
type Level string

const (
	LevelOff    Level = "Off"
	LevelSample Level = "Sample"
	LevelFull   Level = "Full"
)

// Audited is to be embedded.
type Audited struct {
	// +unionDiscriminator
	// +optional
	Audit Level `json:"audit,omitempty"`

	// +unionMember=Sample
	// +optional
	SampleRate *int32 `json:"sampleRate,omitempty"`

	// +unionMember=Full,optional
	// +optional
	AuditSink *string `json:"auditSink,omitempty"`
}
