package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Siren has markers with arguments that nobody knows.
//
// +kubebuilder:object:root=true
type Siren struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec SirenSpec `json:"spec,omitempty"`
}

// SirenType is one.
//
// +kubebuilder:validation:Enum=Bell;Horn;Voice
type SirenType string

const (
	SirenBell  SirenType = "Bell"
	SirenHorn  SirenType = "Horn"
	SirenVoice SirenType = "Voice"
)

// SirenSpec has four unions, each with one thing wrong.
type SirenSpec struct {
	// +optional
	Day *DaySiren `json:"day,omitempty"`
	// +optional
	Night *NightSiren `json:"night,omitempty"`
	// +optional
	Fire *FireSiren `json:"fire,omitempty"`
	// +optional
	Flood *FloodSiren `json:"flood,omitempty"`
}

// DaySiren has an argument in parentheses.
type DaySiren struct {
	// +unionDiscriminator
	// +required
	Type SirenType `json:"type"`

	// +unionMember(colour: "red")
	// +optional
	Bell *Sound `json:"bell,omitempty"`
}

// NightSiren has it in the way of Kubernetes.
type NightSiren struct {
	// +k8s:unionDiscriminator
	// +required
	Type SirenType `json:"type"`

	// +k8s:unionMember(memberName: "Horn", loudness: "low")
	// +optional
	Horn *Sound `json:"horn,omitempty"`
}

// FireSiren has it as JSON.
type FireSiren struct {
	// +unionDiscriminator
	// +required
	Type SirenType `json:"type"`

	// +unionMember={"name": "Voice"}
	// +optional
	Voice *Sound `json:"voice,omitempty"`
}

// FloodSiren has a word after the comma.
type FloodSiren struct {
	// +unionDiscriminator
	// +required
	Type SirenType `json:"type"`

	// +unionMember=Bell,sometimes
	// +optional
	Bell *Sound `json:"bell,omitempty"`
}

// Sound is one.
type Sound struct {
	Tone string `json:"tone"`
}
