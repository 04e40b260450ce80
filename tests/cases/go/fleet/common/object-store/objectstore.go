// Package objectstore is named otherwise than its folder.
package objectstore

// Bucket is a place in an object store.
type Bucket struct {
	Name string `json:"name"`
}
