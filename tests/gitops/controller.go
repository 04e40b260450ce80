package main

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// controller applies manifests as a controller with controller-runtime does at every reconcile.
type controller struct{ server client.Client }

func (controller) name() string { return "controller-runtime" }

func (c controller) apply(ctx context.Context, manifest *unstructured.Unstructured) error {
	return c.send(ctx, manifest)
}

// differences compares the stored object with the answer to a dry run.
func (c controller) differences(ctx context.Context, manifest, live *unstructured.Unstructured) map[string]string {
	if err := c.send(ctx, manifest, client.DryRunAll); err != nil {
		return map[string]string{"dry run": err.Error()}
	}
	for _, object := range []*unstructured.Unstructured{live, manifest} {
		object.SetManagedFields(nil)
	}
	from, _ := json.Marshal(live)
	to, _ := json.Marshal(manifest)
	if patch := mergePatch(from, to); patch != "{}" {
		return map[string]string{"dry run": patch}
	}
	return nil
}

// send applies the manifest, and writes the answer into it.
func (c controller) send(ctx context.Context, manifest *unstructured.Unstructured, more ...client.ApplyOption) error {
	options := append([]client.ApplyOption{client.ForceOwnership, client.FieldOwner("tests")}, more...)
	return c.server.Apply(ctx, client.ApplyConfigurationFromUnstructured(manifest), options...)
}
