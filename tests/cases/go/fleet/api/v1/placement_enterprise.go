//go:build enterprise

package v1

// Placement is where the machine stands; here a cage can be described.
type Placement struct {
	// +unionDiscriminator
	// +required
	Type PlacementType `json:"type"`

	// +unionMember
	// +optional
	Rack *Rack `json:"rack,omitempty"`

	// +unionMember
	// +optional
	Cage *Cage `json:"cage,omitempty"`
}

// Cage is a place with a door.
type Cage struct {
	Door string `json:"door"`
}
