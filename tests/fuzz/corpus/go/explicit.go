// +groupName=e
package v1

import m "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
type K struct {
	m.TypeMeta `json:",inline"`
	S          S `json:"s"`
}

// +enum
type T string

const (
	TA T = "A"
	TB   = T("B")
	TC T = ""
)

type S struct {
	// +unionDiscriminator
	T T `json:"t"`
	// +unionMember=A,optional

	// godoc
	A *G[int] `json:"a,omitempty"`
	// +unionMember={"memberName": "B"}
	B *struct{} `json:"b,omitempty"`
	// +k8s:alpha(since: "1.37")=+k8s:zeroOrOneOfMember(union: "u")
	C *string `json:"c,omitempty"`
	// +k8s:zeroOrOneOfMember(union: "u")
	U *string `json:"u,omitempty"`
	// +k8s:ifEnabled(F)=+k8s:modeDiscriminator(modality: "m")
	// +k8s:dependentForbidden("u")
	D bool `json:"d"`
	// +k8s:ifMode(modality: "m", mode: "true")=+k8s:required
	E []string `json:"e,omitempty"`
	// +k8s:subfield("b")=+k8s:zeroOrOneOfMember
	// +k8s:item(a: "b")=+k8s:zeroOrOneOfMember
	F I `json:"f"`
	L []I          `json:"l,omitempty"`
	M map[string]I `json:"m,omitempty"`
}

type G[X any] struct {
	// +unionDeprecated
	B *X `json:"b,omitempty"`
}

type I struct {
	J `json:",inline"`
}

type J struct {
	// +unionDeprecated
	A *struct{} `json:"a,omitempty"`
	// +unionDeprecated
	B *J `json:"b,omitempty"`
}
