package main

import (
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// thing is the kind whose schema every request for server-side apply names.
var thing = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}

// objectMeta has the types of the fields of metadata, as OpenAPI documents publish them.
const objectMeta = `{"type": "object", "properties": {
	"annotations": {"type": "object", "additionalProperties": {"type": "string", "default": ""}},
	"creationTimestamp": {"type": "string", "format": "date-time"},
	"finalizers": {"type": "array", "items": {"type": "string", "default": ""}, "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"},
	"generation": {"type": "integer", "format": "int64"},
	"labels": {"type": "object", "additionalProperties": {"type": "string", "default": ""}},
	"managedFields": {"type": "array", "items": {"type": "object", "additionalProperties": {}}, "x-kubernetes-list-type": "atomic"},
	"name": {"type": "string"},
	"ownerReferences": {"type": "array", "items": {"$ref": "#/definitions/OwnerReference"}, "x-kubernetes-list-map-keys": ["uid"],
		"x-kubernetes-list-type": "map", "x-kubernetes-patch-merge-key": "uid", "x-kubernetes-patch-strategy": "merge"},
	"uid": {"type": "string"}}}`

const ownerReference = `{"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
	"apiVersion": {"type": "string", "default": ""}, "controller": {"type": "boolean"}, "kind": {"type": "string", "default": ""},
	"name": {"type": "string", "default": ""}, "uid": {"type": "string", "default": ""}}}`

// fieldManager returns the field manager of the last schema, which the first request for it makes.
var fieldManager func() (*managedfields.FieldManager, error)

type conflict struct {
	Message string `json:"message"`
	Field   string `json:"field"`
}

// newFieldManager makes the API server's own field manager for a schema with definitions.
func newFieldManager(kind map[string]any) (*managedfields.FieldManager, error) {
	var root, meta, owner spec.Schema
	text, err := json.Marshal(kind)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(json.Unmarshal(text, &root), json.Unmarshal([]byte(objectMeta), &meta), json.Unmarshal([]byte(ownerReference), &owner)); err != nil {
		return nil, err
	}
	models := map[string]*spec.Schema{"Thing": &root, "ObjectMeta": &meta, "OwnerReference": &owner}
	for name, definition := range root.Definitions {
		models[name] = &definition
	}
	root.SetProperty("apiVersion", *spec.StringProperty())
	root.SetProperty("kind", *spec.StringProperty())
	root.SetProperty("metadata", *spec.RefSchema("#/definitions/ObjectMeta"))
	root.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{"group": thing.Group, "version": thing.Version, "kind": thing.Kind}})
	converter, err := managedfields.NewTypeConverter(models, false)
	if err != nil {
		return nil, err
	}
	return managedfieldstest.NewFakeFieldManager(converter, thing), nil
}

// write answers an apply or an update of the object with managed fields.
func write(asked request) (got answer) {
	fields, err := fieldManager()
	if err != nil {
		return answer{Error: err.Error()}
	}
	var live, written unstructured.Unstructured
	if err := errors.Join(live.UnmarshalJSON(asked.Current), written.UnmarshalJSON(asked.Modified)); err != nil {
		return answer{Error: err.Error()}
	}
	var stored runtime.Object
	if asked.Op == "server-side-apply" {
		stored, err = fields.Apply(&live, &written, asked.Manager, asked.Overwrite)
	} else {
		stored, err = fields.Update(&live, &written, asked.Manager)
	}
	var status *apierrors.StatusError
	if errors.As(err, &status) && apierrors.IsConflict(status) {
		got.Error = err.Error()
		for _, cause := range status.ErrStatus.Details.Causes {
			got.Conflicts = append(got.Conflicts, conflict{cause.Message, cause.Field})
		}
		return got
	}
	if err == nil {
		got.Result, err = json.Marshal(stored)
	}
	if err != nil {
		return answer{Error: fmt.Sprint(err)}
	}
	return got
}
