package v1

type Half struct {
