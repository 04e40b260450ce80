package main

import (
	"context"
	"encoding/json"

	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// flux applies manifests as Flux's kustomize-controller does.
type flux struct {
	manager *ssa.ResourceManager
	options ssa.ApplyOptions
}

func newFlux(server client.Client) flux {
	owner := ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"}
	options := ssa.DefaultApplyOptions()
	// The controller takes over what these managers own.
	options.Cleanup = ssa.ApplyCleanupOptions{
		Annotations: []string{"kubectl.kubernetes.io/last-applied-configuration"},
		FieldManagers: []ssa.FieldManager{
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationApply},
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: "before-first-apply", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: owner.Field, OperationType: metav1.ManagedFieldsOperationUpdate},
		},
	}
	return flux{ssa.NewResourceManager(server, nil, owner), options}
}

func (flux) name() string { return "flux" }

// prepare adds labels to a manifest and normalises it, as the controller does after it has built it.
func (f flux) prepare(manifest *unstructured.Unstructured) error {
	objects := []*unstructured.Unstructured{manifest}
	f.manager.SetOwnerLabels(objects, "tests", "default")
	return normalize.UnstructuredList(objects)
}

func (f flux) apply(ctx context.Context, manifest *unstructured.Unstructured) error {
	if err := f.prepare(manifest); err != nil {
		return err
	}
	_, err := f.manager.ApplyAll(ctx, []*unstructured.Unstructured{manifest}, f.options)
	return err
}

func (f flux) differences(ctx context.Context, manifest, _ *unstructured.Unstructured) map[string]string {
	if err := f.prepare(manifest); err != nil {
		return map[string]string{"diff": err.Error()}
	}
	change, live, merged, err := f.manager.Diff(ctx, manifest, ssa.DefaultDiffOptions())
	if err != nil {
		return map[string]string{"diff": err.Error()}
	}
	if change.Action == ssa.UnchangedAction {
		return nil
	}
	from, _ := json.Marshal(live)
	to, _ := json.Marshal(merged)
	return map[string]string{"diff": change.Action.String() + " " + mergePatch(from, to)}
}
