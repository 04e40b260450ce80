package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"example.com/fleet/common"
)

// Rollout brings an image to the devices of a fleet.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
type Rollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   RolloutSpec   `json:"spec,omitempty"`
	Status RolloutStatus `json:"status,omitempty"`
}

// RolloutList is several of them.
//
// +kubebuilder:object:root=true
type RolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Rollout `json:"items"`
}

// RolloutSpec is what is wanted.
type RolloutSpec struct {
	// Image is what the devices shall run.
	Image string `json:"image"`

	// +optional
	Strategy Strategy `json:"strategy,omitempty"`

	// +optional
	Notice *Notice `json:"notice,omitempty"`
}

// NoticeType is who is told. That nobody is has no constant: it is what a NoticeType is that nobody has set.
//
// +kubebuilder:validation:Enum="";Mail;Pager
type NoticeType string

const (
	NoticeMail  NoticeType = "Mail"
	NoticePager NoticeType = "Pager"
)

// Notice tells somebody that a rollout has ended.
type Notice struct {
	// +unionDiscriminator
	// +optional
	Type NoticeType `json:"type,omitempty"`

	// +unionMember
	// +optional
	Mail *string `json:"mail,omitempty"`

	// +unionMember,optional
	// +optional
	Pager *bool `json:"pager,omitempty"`

	// Language is that of the text, whoever is told.
	// +optional
	Language string `json:"language,omitempty"`
}

// StrategyType is how the devices get the image.
//
// +enum
// +kubebuilder:validation:Enum=AllAtOnce;RollingUpdate;Canary
type StrategyType string

const (
	// AllAtOnceStrategy asks for nothing more.
	AllAtOnceStrategy StrategyType = "AllAtOnce"
	// RollingUpdateStrategy takes some devices after the other.
	RollingUpdateStrategy StrategyType = "RollingUpdate"
	// CanaryStrategy begins with few.
	CanaryStrategy StrategyType = "Canary"
)

// Strategy has two members, which nothing marks as such, and ordinary fields beside them.
//
// +union
type Strategy struct {
	// Timeout is how long to wait, whatever the type.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// Type is how.
	// +unionDiscriminator
	// +optional
	Type StrategyType `json:"type,omitempty"`

	// +optional
	RollingUpdate *RollingUpdate `json:"rollingUpdate,omitempty"`

	// Tolerated is how many devices may fail, whatever the type.
	// +optional
	Tolerated *intstr.IntOrString `json:"tolerated,omitempty"`

	// +optional
	Canary *common.Canary `json:"canary,omitempty"`

	// Regions are taken in this order, whatever the type.
	// +optional
	Regions []string `json:"regions,omitempty"`
}

// RollingUpdate is how many devices at a time.
type RollingUpdate struct {
	// +optional
	BatchSize *int32 `json:"batchSize,omitempty"`
}

// RolloutStatus is what was seen.
type RolloutStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	Outcome *Outcome `json:"outcome,omitempty"`
}

// OutcomeState is how far it got.
//
// +kubebuilder:validation:Enum=Pending;Running;Finished;Failed
type OutcomeState string

// The states, of which the first has nothing to tell.
const (
	OutcomePending  OutcomeState = "Pending"
	OutcomeRunning  OutcomeState = "Running"
	OutcomeFinished OutcomeState = "Finished"
	OutcomeFailed   OutcomeState = "Failed"
)

// Outcome tells how far it got.
type Outcome struct {
	// +unionDiscriminator
	// +required
	State OutcomeState `json:"state"`

	// +unionMember
	// +optional
	Running *int32 `json:"running,omitempty"`

	// +unionMember,optional
	// +optional
	Finished *metav1.Time `json:"finished,omitempty"`

	// +unionMember=Failed
	// +optional
	Failure *string `json:"failure,omitempty"`

	// Reporter is who tells it; an ordinary field, although it has the looks of a member.
	// +optional
	Reporter *string `json:"reporter,omitempty"`
}
