// Command example patches a custom resource by a strategic merge patch, which the API server itself answers with 415:
//
//	go run . -module strategic-merge-patch.wasm gateways.samples.kube-unions.dev default dns \
//	  '{"spec": {"exposure": {"$retainKeys": ["type"], "type": "Internal"}}}'
//
// The file patch.go is the part to copy into a controller.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/kube-unions/kube-unions/go/strategicpatch"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	module := flag.String("module", "strategic-merge-patch.wasm", "the WebAssembly module of a release")
	flag.Parse()
	if flag.NArg() != 4 {
		return errors.New("give the name of a CRD, a namespace, the name of an object, and a patch in JSON")
	}
	wasm, err := os.ReadFile(*module)
	if err != nil {
		return err
	}
	engine, err := strategicpatch.New(ctx, wasm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close(ctx)) }()
	settings, err := config.GetConfig()
	if err != nil {
		return err
	}
	c, err := client.New(settings, client.Options{})
	if err != nil {
		return err
	}
	kind, rules, err := describe(ctx, c, engine, flag.Arg(0))
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	object.SetNamespace(flag.Arg(1))
	object.SetName(flag.Arg(2))
	if err := patchObject(ctx, c, rules, object, []byte(flag.Arg(3))); err != nil {
		return err
	}
	output := json.NewEncoder(os.Stdout)
	output.SetIndent("", "  ")
	return output.Encode(object)
}

// describe returns the kind of a CRD and its merge rules, which contain the unions that the CRD declares.
func describe(ctx context.Context, c client.Client, engine *strategicpatch.Engine, name string) (schema.GroupVersionKind, *strategicpatch.Schema, error) {
	var kind schema.GroupVersionKind
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		return kind, nil, err
	}
	document, err := crd.MarshalJSON()
	if err != nil {
		return kind, nil, err
	}
	var read struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Served bool
			}
		}
	}
	if err := json.Unmarshal(document, &read); err != nil {
		return kind, nil, err
	}
	for _, version := range read.Spec.Versions {
		if version.Served {
			kind = schema.GroupVersionKind{Group: read.Spec.Group, Version: version.Name, Kind: read.Spec.Names.Kind}
			rules, err := engine.Schema(ctx, strategicpatch.CustomResourceDefinition{Document: document, Version: version.Name})
			return kind, rules, err
		}
	}
	return kind, nil, fmt.Errorf("%s serves no version", name)
}
