package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/kube-unions/kube-unions/go/strategicpatch"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	native "k8s.io/apimachinery/pkg/util/strategicpatch"
)

// deployments has the merge rules of the fields that the benchmark uses.
const deployments = `{"properties": {"spec": {"properties": {"template": {"properties": {"spec": {"properties": {"containers": {
	"type": "array", "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name", "items": {"properties": {
	"name": {"type": "string"}, "image": {"type": "string"}, "env": {"type": "array", "x-kubernetes-patch-strategy": "merge",
	"x-kubernetes-patch-merge-key": "name", "items": {"type": "object"}}}}}}}}}}}}}`

// deployment returns a Deployment with so many containers and environment variables in each.
func deployment(containers, variables int, image string) []byte {
	object := appsv1.Deployment{}
	object.APIVersion, object.Kind, object.Name = "apps/v1", "Deployment", "bench"
	for i := range containers {
		container := corev1.Container{Name: fmt.Sprintf("container-%d", i), Image: image}
		for j := range variables {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("NAME_%d", j), Value: "value"})
		}
		object.Spec.Template.Spec.Containers = append(object.Spec.Template.Spec.Containers, container)
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return text
}

// BenchmarkDeployment creates and applies patches by the module and by Go's own package, of one container with 5 variables and of
// 10 containers with 50 each.
func BenchmarkDeployment(b *testing.B) {
	ctx := context.Background()
	wasm, err := os.ReadFile(os.Getenv("STRATEGIC_MERGE_PATCH_WASM"))
	if err != nil {
		b.Skipf("set STRATEGIC_MERGE_PATCH_WASM to the module: %v", err)
	}
	engine, err := strategicpatch.New(ctx, wasm)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := engine.Close(ctx); err != nil {
			b.Error(err)
		}
	}()
	rules, err := engine.Schema(ctx, strategicpatch.JSONSchema{Document: []byte(deployments), Name: "Deployment"})
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range []struct{ containers, variables int }{{1, 5}, {10, 50}} {
		old, changed := deployment(size.containers, size.variables, "app:1"), deployment(size.containers, size.variables, "app:2")
		patch, err := rules.CreateTwoWay(ctx, old, changed)
		if err != nil {
			b.Fatal(err)
		}
		for _, row := range []struct {
			name string
			call func() ([]byte, error)
		}{
			{"apply/module", func() ([]byte, error) { return rules.Apply(ctx, old, patch) }},
			{"apply/native", func() ([]byte, error) { return native.StrategicMergePatch(old, patch, appsv1.Deployment{}) }},
			{"create/module", func() ([]byte, error) { return rules.CreateTwoWay(ctx, old, changed) }},
			{"create/native", func() ([]byte, error) { return native.CreateTwoWayMergePatch(old, changed, appsv1.Deployment{}) }},
		} {
			b.Run(fmt.Sprintf("%dx%d/%s", size.containers, size.variables, row.name), func(b *testing.B) {
				b.SetBytes(int64(len(old)))
				b.RunParallel(func(parallel *testing.PB) {
					for parallel.Next() {
						if _, err := row.call(); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}
