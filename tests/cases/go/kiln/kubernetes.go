// +groupName=kilns.example.com
package v1

// +kubebuilder:object:root=true
type Kiln struct {
	// SPEC
	Spec KilnSpec `json:"spec"`
}

// TYPE
type KilnSpec struct {
	// FIRING
	Firing string `json:"firing"`
	// HOT
	Hot bool `json:"hot"`
	// GLAZE
	Glaze *Program `json:"glaze"`
	// BISQUE
	Bisque string `json:"bisque"`
	// RAKU
	Raku []string `json:"raku"`
}

type Program struct{}

// NAME
type Name int8
