//go:build enterprise

package v1

// Placement is where the machine stands; here a cage can be described.
type Placement struct {
	// +unionDiscriminator
	// +required
	Type PlacementType `json:"type"`

	// +unionMember
	// +optional
	Rack *int32 `json:"rack,omitempty"`

	// +unionMember
	// +optional
	Cage *string `json:"cage,omitempty"`
}
