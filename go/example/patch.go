package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/kube-unions/kube-unions/go/strategicpatch"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// strategicMergePatch is a client.Patch that applies a strategic merge patch to the object that the client read, and sends the
// difference as a JSON Patch. The API server answers 409 Conflict if somebody else changed the object meanwhile.
type strategicMergePatch struct {
	ctx    context.Context
	schema *strategicpatch.Schema
	patch  []byte
}

// Type implements client.Patch.
func (p strategicMergePatch) Type() types.PatchType { return types.JSONPatchType }

// Data implements client.Patch.
func (p strategicMergePatch) Data(object client.Object) ([]byte, error) {
	live, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	patched, err := p.schema.Apply(p.ctx, live, p.patch)
	if err != nil {
		return nil, err
	}
	return strategicpatch.JSONPatch(live, patched)
}

// attempts while others change the object. The delays differ, so that several clients do not meet again.
var attempts = wait.Backoff{Steps: 100, Duration: 10 * time.Millisecond, Factor: 1.1, Jitter: 1, Cap: time.Second}

// patchObject reads the object, patches it, and fills it with the answer. On a conflict it starts again.
func patchObject(ctx context.Context, c client.Client, schema *strategicpatch.Schema, object client.Object, patch []byte) error {
	key := client.ObjectKeyFromObject(object)
	return retry.RetryOnConflict(attempts, func() error {
		if err := c.Get(ctx, key, object); err != nil {
			return err
		}
		return c.Patch(ctx, object, strategicMergePatch{ctx, schema, patch})
	})
}
