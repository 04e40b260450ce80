package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Tunnel joins two sites. Its markers stand in every place where a comment counts.
//
// +kubebuilder:object:root=true
type Tunnel struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec TunnelSpec `json:"spec,omitempty"`
}

// TunnelSpec has three ways to say what is meant.
type TunnelSpec struct {
	// +optional
	Transport *Transport `json:"transport,omitempty"`
	// +optional
	Peering *Peering `json:"peering,omitempty"`
	// +optional
	Keys *Keys `json:"keys,omitempty"`
}

// TransportType is a protocol.
//
//+kubebuilder:validation:Enum=WireGuard;IPsec;Plain
type TransportType string

const (
	TransportWireGuard TransportType = "WireGuard"
	TransportIPsec     TransportType = "IPsec"
	TransportPlain     TransportType = "Plain"
)

// Transport has its markers with more or less space.
type Transport struct {
	//+unionDiscriminator
	//+required
	Type TransportType `json:"type"`

	//   +unionMember
	//   +optional
	WireGuard *WireGuard `json:"wireGuard,omitempty"`

	//	+unionMember=IPsec,optional
	//+optional
	Sec *IPsec `json:"sec,omitempty"`

	// This is no marker: +unionMember in the middle of a line.
	// +optional
	MTU *Limits `json:"mtu,omitempty"`
}

// WireGuard is one.
type WireGuard struct {
	PublicKey string `json:"publicKey"`
}

// IPsec is one.
type IPsec struct {
	// +optional
	Profile string `json:"profile,omitempty"`
}

// Limits are some.
type Limits struct {
	Bytes int32 `json:"bytes"`
}

// PeeringType is how the other end is found.
//
// +kubebuilder:validation:Enum=Static;DNS

// The values follow; nothing else is accepted.
type PeeringType string

const (
	PeeringStatic PeeringType = "Static"
	PeeringDNS    PeeringType = "DNS"
)

// Peering has its markers at some distance.

// +union

// Peering is how the other end is found.
type Peering struct {
	// +unionDiscriminator

	// Type stands after an empty line, as the style of Kubernetes' own types was.
	// +required
	Type PeeringType `json:"type"`

	// Static is a list of addresses.
	//
	// It is taken as it is:
	//
	//   - nothing is looked up,
	//   - nothing is sorted.
	//
	// +optional
	Static *StaticPeers `json:"static,omitempty"`

	/* DNS is a name, and this is a comment of the other sort. */
	// +optional
	DNS *NamedPeers `json:"dns,omitempty"`
}

// StaticPeers are addresses.
type StaticPeers struct {
	Addresses []string `json:"addresses"`
}

// NamedPeers are behind a name.
type NamedPeers struct {
	Name string `json:"name"`
}

// KeysFrom is where keys come from.
//
// +kubebuilder:validation:Enum=Secret;Vault
type KeysFrom string

const (
	KeysFromSecret KeysFrom = "Secret"
	KeysFromVault  KeysFrom = "Vault"
)

// Keys have more than one comment before a field.
type Keys struct {
	// +unionDiscriminator
	// +required
	From KeysFrom `json:"from"`

	// +unionMember
	/* Secret is in the same namespace; a + or a +unionMember in this text is none. */
	// +optional
	Secret *SecretKeys `json:"secret,omitempty"`

	// +unionMember

	// Vault is asked for each key.
	//
	// +optional
	Vault *VaultKeys `json:"vault,omitempty"`

	// Rotation was a member once:
	//
	//	// +unionMember
	//	Rotation *Rotation
	//
	// +optional
	Rotation *Rotation `json:"rotation,omitempty"`
}

// SecretKeys is one.
type SecretKeys struct {
	Name string `json:"name"`
}

// VaultKeys is one.
type VaultKeys struct {
	Path string `json:"path"`
}

// Rotation is how often.
type Rotation struct {
	Days int32 `json:"days"`
}
