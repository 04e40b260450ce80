package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Gateway is how a site is reached: unions in lists, maps and each other.
//
// +kubebuilder:object:root=true
type Gateway struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GatewaySpec `json:"spec,omitempty"`
}

// GatewaySpec is what is wanted.
type GatewaySpec struct {
	// +listType=map
	// +listMapKey=name
	// +optional
	Listeners []Listener `json:"listeners,omitempty"`

	// Policies are by host name.
	// +optional
	Policies map[string]Policy `json:"policies,omitempty"`
}

// Listener has a list with keys, and one without.
type Listener struct {
	Name string `json:"name"`

	// +listType=map
	// +listMapKey=path
	// +optional
	Routes Routes `json:"routes,omitempty"`

	// +listType=atomic
	// +optional
	Filters []*Filter `json:"filters,omitempty"`
}

// Routes have a name as a type.
type Routes []Route

// Route is an item of a list in an item of a list, with a union inlined.
type Route struct {
	Path string `json:"path"`

	RouteAction `json:",inline"`
}

// ActionType is what becomes of a request.
//
// +kubebuilder:validation:Enum=Forward;Redirect;Refuse
type ActionType string

// Not all constants need a type of their own.
const (
	ActionForward  = ActionType("Forward")
	ActionRedirect = ActionType("Redirect")
	ActionRefuse   = ActionType("Refuse")
)

// RouteAction has the arguments of its markers as JSON.
type RouteAction struct {
	// +unionDiscriminator={"union": "action"}
	// +required
	Action ActionType `json:"action"`

	// +unionMember={"union": "action", "memberName": "Forward"}
	// +optional
	Backend *string `json:"backend,omitempty"`

	// +unionMember={"union": "action"}
	// +optional
	Redirect *string `json:"redirect,omitempty"`

	// Weight is an ordinary field.
	// +optional
	Weight *int32 `json:"weight,omitempty"`
}

// FilterType is a sort of filter.
//
// +kubebuilder:validation:Enum=SetHeader;RewritePath
type FilterType string

const (
	FilterSetHeader   FilterType = "SetHeader"
	FilterRewritePath FilterType = "RewritePath"
)

// Filter is an item of a list without keys.
type Filter struct {
	// +unionDiscriminator
	// +required
	Type FilterType `json:"type"`

	// +unionMember={"memberName": "SetHeader"}
	// +optional
	Header *string `json:"header,omitempty"`

	// +unionMember={"memberName": "RewritePath"}
	// +optional
	Rewrite *string `json:"rewrite,omitempty"`
}

// AuthType is how clients say who they are.
type AuthType string

const (
	AuthAnyone AuthType = "Anyone"
	AuthBasic  AuthType = "Basic"
	AuthOIDC   AuthType = "OIDC"
)

// LimitType is what is counted.
type LimitType string

const (
	LimitNothing   LimitType = "Nothing"
	LimitPerClient LimitType = "PerClient"
	LimitPerPath   LimitType = "PerPath"
)

// Policy has two unions, whose fields stand in any order; the values of both stand on the fields.
type Policy struct {
	// +unionMember
	// +unionDiscriminatedBy=Auth
	// +optional
	Basic *string `json:"basic,omitempty"`

	// +unionMember,optional
	// +unionDiscriminatedBy=Limit
	// +optional
	PerClient *int32 `json:"perClient,omitempty"`

	// +unionDiscriminator
	// +kubebuilder:validation:Enum=Anyone;Basic;OIDC
	// +required
	Auth AuthType `json:"auth"`

	// +unionDiscriminator
	// +kubebuilder:validation:Enum:="Nothing";"PerClient";"PerPath"
	// +optional
	Limit LimitType `json:"limit,omitempty"`

	// +unionMember=OIDC
	// +unionDiscriminatedBy=Auth
	// +optional
	OpenID *string `json:"openID,omitempty"`

	// +unionMember
	// +unionDiscriminatedBy=Limit
	// +optional
	PerPath *int32 `json:"perPath,omitempty"`
}
