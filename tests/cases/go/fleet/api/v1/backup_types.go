package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fleet/common"
	objects "example.com/fleet/common/object-store"
)

// Backup writes what devices have to a safe place.
//
// +kubebuilder:object:root=true
type Backup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BackupSpec `json:"spec,omitempty"`
}

// BackupSpec has two structs inlined, with a union in each.
type BackupSpec struct {
	// Devices are the names of those that are backed up.
	// +optional
	Devices []string `json:"devices,omitempty"`

	Schedule       `json:",inline"`
	common.Audited `json:",inline"`

	// +optional
	Destination Destination `json:"destination,omitempty"`

	// Cached is nobody's business.
	Cached *Destination `json:"-"`
}

// Trigger is what begins a backup.
//
// +kubebuilder:validation:Enum=Manual;Cron;Interval
type Trigger string

const (
	TriggerManual   Trigger = "Manual"
	TriggerCron     Trigger = "Cron"
	TriggerInterval Trigger = "Interval"
)

// Schedule is when to begin. Its members are no structs.
type Schedule struct {
	// Trigger has a default, so that a client which leaves it out seems to choose that.
	// +unionDiscriminator
	// +kubebuilder:default=Manual
	// +optional
	Trigger Trigger `json:"trigger,omitempty"`

	// +unionMember=Cron
	// +optional
	CronExpression *string `json:"cron,omitempty"`

	// +unionMember
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// Zone is that of the clock.
	// +optional
	Zone *string `json:"zone,omitempty"`
}

// DestinationType is a sort of place.
//
// +kubebuilder:validation:Enum=S3;GCS;Volume;NFS;SFTP;Discard;""
type DestinationType string

const (
	// S3 and GCS are both spoken to in the same way.
	DestinationS3  DestinationType = "S3"
	DestinationGCS DestinationType = "GCS"

	DestinationVolume DestinationType = "Volume"
	// DestinationNFS is written otherwise than the field is.
	DestinationNFS  DestinationType = "NFS"
	DestinationSFTP DestinationType = "SFTP"
	// DestinationDiscard throws everything away.
	DestinationDiscard DestinationType = "Discard"
	DestinationNone    DestinationType = ""
)

// Destination is a place.
type Destination struct {
	// Compression is an ordinary field that stands before the discriminator.
	// +optional
	Compression *int32 `json:"compression,omitempty"`

	// +unionDiscriminator
	// +required
	Type DestinationType `json:"type"`

	// ObjectStore is chosen by two values.
	// +unionMember=S3
	// +unionMember=GCS
	// +optional
	ObjectStore *objects.Bucket `json:"objectStore,omitempty"`

	// +unionMember,optional
	// +optional
	Volume *string `json:"volume,omitempty"`

	// +unionMember
	// +optional
	Nfs *Export `json:"nfs,omitempty"`

	// +unionMember=SFTP,optional
	// +optional
	SecureShell *string `json:"ssh,omitempty"`

	// Retention is an ordinary field.
	// +optional
	Retention *int32 `json:"retention,omitempty"`
}

// Export is what a server of files has.
type Export struct {
	Server string `json:"server"`
}
