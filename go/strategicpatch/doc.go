// Package strategicpatch creates and applies Kubernetes strategic merge patches for any kind, custom resources included.
//
// The merge rules come from a CRD with its unions, from an OpenAPI document of the API server, or from a JSON schema. The
// engine is the Rust crate strategic-merge-patch. It runs as a WebAssembly module inside the process, by wazero: without cgo
// and without another process. The module has no access to files, network, environment or clock.
//
// An [Engine] holds the compiled module and a pool of its instances. A [Schema] holds the merge rules of one kind. Both are
// safe for concurrent use:
//
//	engine, err := strategicpatch.New(ctx, wasm)
//	defer engine.Close(ctx)
//	gateways, err := engine.Schema(ctx, strategicpatch.CustomResourceDefinition{Document: crd, Version: "v1"})
//	patched, err := gateways.Apply(ctx, live, patch)
//
// Documents are JSON text. Numbers and the order of keys stay as they are written. A nil document counts as absent.
package strategicpatch
