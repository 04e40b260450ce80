package v1

type K struct {
	S *S `json:"s"`
}

type Base string
type T = Base

// +union
type S struct {
	// +unionDiscriminator
	// +kubebuilder:validation:Enum=A;B;""
	T T `json:"t"`
	A *A `json:"a,omitempty"`
	B []B `json:"b,omitempty"`
	// +unionDiscriminatedBy=T
	R *A `json:"r"`
}

type (
	A struct{ *A }
	B B
)
