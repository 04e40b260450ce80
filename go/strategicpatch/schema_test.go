package strategicpatch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kube-unions/kube-unions/go/strategicpatch"
)

const crd = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
"metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
"names": {"kind": "Widget", "plural": "widgets"}, "versions": [{"name": "v1", "served": true, "storage": true,
"schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
"ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
"items": {"type": "object", "properties": {"port": {"type": "integer"}, "protocol": {"type": "string"},
"target": {"type": "integer"}}}},
"source": {"type": "object", "properties": {"git": {"type": "string"}, "image": {"type": "string"}}%s}}}}}}}]}}`

const union = `, "x-kubernetes-unions": [{"fields-to-discriminateBy": {"git": "Git", "image": "Image"}}]`

func declaration(kind string) []byte {
	return fmt.Appendf(nil, `{"apiVersion": "kube-unions.dev/v1alpha1", "kind": "UnionDeclaration",
		"metadata": {"name": "d"}, "spec": {"target": {"group": "example.com", "kind": "%s"},
		"unions": [{"path": "spec.source", "fieldsToDiscriminateBy": {"git": "Git", "image": "Image"}}]}}`, kind)
}

func TestACustomResourceMergesListsByAllKeysAndSwitchesUnions(t *testing.T) {
	ctx := context.Background()
	engine := newEngine(t)
	for name, source := range map[string]strategicpatch.CustomResourceDefinition{
		"in the schema":         {Document: fmt.Appendf(nil, crd, union)},
		"with the version":      {Document: fmt.Appendf(nil, crd, union), Version: "v1"},
		"in a UnionDeclaration": {Document: fmt.Appendf(nil, crd, ""), UnionDeclarations: [][]byte{declaration("Widget")}},
	} {
		t.Run(name, func(t *testing.T) {
			widgets, err := engine.Schema(ctx, source)
			if err != nil {
				t.Fatal(err)
			}
			if len(widgets.Warnings()) != 0 {
				t.Errorf("warnings: %q", widgets.Warnings())
			}
			patch, err := widgets.CreateTwoWay(ctx, []byte(`{"spec": {"source": {"git": "main"}}}`),
				[]byte(`{"spec": {"source": {"image": "v1"}}}`))
			wantResult(t, `{"spec":{"source":{"$retainKeys":["image"],"image":"v1","git":null}}}`, patch, err)
			patched, err := widgets.Apply(ctx, []byte(`{"spec": {"ports": [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}}`),
				[]byte(`{"spec": {"ports": [{"$patchMergeKey": ["port", "protocol"], "port": 53, "protocol": "UDP", "target": 1}]}}`))
			wantResult(t, `{"spec":{"ports":[{"port":53,"protocol":"TCP"},{"port":53,"protocol":"UDP","target":1}]}}`, patched, err)
		})
	}
	other, err := engine.Schema(ctx, strategicpatch.CustomResourceDefinition{
		Document: fmt.Appendf(nil, crd, ""), UnionDeclarations: [][]byte{declaration("Gadget")}})
	if err != nil {
		t.Fatal(err)
	}
	if want := "the UnionDeclaration `d` is not about the kind `Widget`"; len(other.Warnings()) != 1 || other.Warnings()[0] != want {
		t.Errorf("got %q, want %q", other.Warnings(), want)
	}
}

func TestABuiltInTypeMergesByTheRulesOfItsOpenAPIDocument(t *testing.T) {
	document := `{"components": {"schemas": {"io.k8s.api.core.v1.Pod": {"type": "object", "properties": {"containers": {
		"type": "array", "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name",
		"items": {"type": "object", "properties": {"name": {"type": "string"}, "image": {"type": "string"}}}}},
		"x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}]}}}}`
	ctx := context.Background()
	pods, err := newEngine(t).Schema(ctx, strategicpatch.OpenAPI{Document: []byte(document), Version: "v1", Kind: "Pod"})
	if err != nil {
		t.Fatal(err)
	}
	patched, err := pods.Apply(ctx, []byte(`{"containers": [{"name": "a"}, {"name": "b"}]}`),
		[]byte(`{"containers": [{"name": "b", "image": "i"}]}`))
	wantResult(t, `{"containers":[{"name":"a"},{"name":"b","image":"i"}]}`, patched, err)
}

func TestNumbersAndTextStayAsTheyAreWritten(t *testing.T) {
	things := newSchema(t, newEngine(t), `{}`)
	patched, err := things.Apply(context.Background(), []byte("{\n \"price\": 1.10,\n \"html\": \"<b>&\u2028\"}"),
		[]byte(`{"id": 123456789012345678901234567890, "small": 1E-7}`))
	wantResult(t, "{\"price\":1.10,\"html\":\"<b>&\u2028\",\"id\":123456789012345678901234567890,\"small\":1E-7}", patched, err)
}

func TestANilDocumentCountsAsAbsent(t *testing.T) {
	things := newSchema(t, newEngine(t), `{}`)
	patched, err := things.Apply(context.Background(), nil, []byte(`{"a": 1, "b": null}`))
	wantResult(t, `{"a":1}`, patched, err)
	patched, err = things.Apply(context.Background(), []byte(`{"a": 1}`), nil)
	wantResult(t, `{"a":1}`, patched, err)
}

func TestErrorsAreTyped(t *testing.T) {
	ctx := context.Background()
	things := newSchema(t, newEngine(t), keyed)
	apply := func(original, patch string) func() ([]byte, error) {
		return func() ([]byte, error) { return things.Apply(ctx, []byte(original), []byte(patch)) }
	}
	three := func(modified, current string, conflicts strategicpatch.Conflicts) func() ([]byte, error) {
		return func() ([]byte, error) {
			return things.CreateThreeWay(ctx, []byte(`{"kind": "A", "a": 1}`), []byte(modified), []byte(current), conflicts)
		}
	}
	rows := []struct {
		call    func() ([]byte, error)
		want    strategicpatch.Error
		message string
	}{
		{apply(`{}`, `{"a": 1`), strategicpatch.Error{Reason: "Unreadable", Document: "patch"}, "cannot read the patch document as JSON: unexpected end of JSON input"},
		{apply(`{} , {}`, `{}`), strategicpatch.Error{Reason: "Unreadable", Document: "original"}, "cannot read the original document as JSON: "},
		{apply(`{}}, "x": {`, `{}`), strategicpatch.Error{Reason: "Unreadable", Document: "original"}, "cannot read the original document as JSON: "},
		{apply(``, `{}`), strategicpatch.Error{Reason: "Unreadable", Document: "original"}, "cannot read the original document as JSON: unexpected end of JSON input"},
		{apply(`{}`, "{\"a\": \"\xff\"}"), strategicpatch.Error{Reason: "Unreadable", Document: "patch"}, "cannot read the patch document as JSON: it is not UTF-8"},
		{apply(`[]`, `{}`), strategicpatch.Error{Reason: "NotAnObject", Document: "original"}, "the original is a list; it must be an object"},
		{apply(`{"items": []}`, `{"items": [{"value": "x"}]}`), strategicpatch.Error{Reason: "Refused", Path: "items[0]"}, "items[0]: the patch has a list item without the merge key `name`"},
		{three(`{"kind": "A", "a": 2}`, `{"kind": "A", "a": 3}`, strategicpatch.Refuse), strategicpatch.Error{Reason: "Conflict", Path: "a"}, "a: conflict: "},
		{three(`{"kind": "B", "a": 1}`, `{"kind": "A", "a": 1}`, strategicpatch.Overwrite), strategicpatch.Error{Reason: "Precondition", Path: "kind"}, "a patch cannot change `kind`"},
	}
	for _, row := range rows {
		result, err := row.call()
		var fault *strategicpatch.Error
		if !errors.As(err, &fault) {
			t.Errorf("got %s and %v, want %s", result, err, row.message)
			continue
		}
		if !strings.HasPrefix(fault.Message, row.message) || fault.Error() != fault.Message {
			t.Errorf("got %q, want %q", fault.Message, row.message)
		}
		row.want.Message = fault.Message
		if *fault != row.want {
			t.Errorf("got %#v, want %#v", *fault, row.want)
		}
		if strategicpatch.IsConflict(fmt.Errorf("wrapped: %w", err)) != (row.want.Reason == strategicpatch.ReasonConflict) {
			t.Errorf("IsConflict is wrong for %v", err)
		}
	}
	overwritten, err := three(`{"kind": "A", "a": 2}`, `{"kind": "A", "a": 3}`, strategicpatch.Overwrite)()
	wantResult(t, `{"a":2}`, overwritten, err)
}

func TestABadSchemaIsAnError(t *testing.T) {
	rows := []struct {
		source  strategicpatch.Source
		message string
	}{
		{strategicpatch.JSONSchema{Document: []byte(`{"a"`)}, "cannot read the schema as JSON: "},
		{strategicpatch.JSONSchema{}, "the document of the schema is not an object"},
		{strategicpatch.JSONSchema{Document: []byte(`{"properties": {"a": {"x-kubernetes-patch-strategy": "upsert"}}}`)}, "a: unexpected patch strategy `upsert`"},
		{strategicpatch.CustomResourceDefinition{Document: []byte(`{"kind": "Pod"}`)}, "not a readable CustomResourceDefinition"},
		{strategicpatch.CustomResourceDefinition{Document: fmt.Appendf(nil, crd, ""), Version: "v2"}, "no version `v2`: `widgets.example.com` has `v1`"},
		{strategicpatch.OpenAPI{Document: []byte(`{"components": {"schemas": {}}}`), Version: "v1", Kind: "Pod"}, "the document does not describe the kind `Pod`"},
	}
	engine := newEngine(t)
	for _, row := range rows {
		schema, err := engine.Schema(context.Background(), row.source)
		if reason := strategicpatch.ReasonFor(err); reason != strategicpatch.ReasonInvalidSchema || schema != nil {
			t.Errorf("got %v of the reason %q, want %s", err, reason, row.message)
		} else if !strings.HasPrefix(err.Error(), row.message) {
			t.Errorf("got %v, want %s", err, row.message)
		}
	}
}

func TestStrictRefusesToGuessWhichItemLosesItsKey(t *testing.T) {
	ctx := context.Background()
	engine := newEngine(t)
	source := strategicpatch.CustomResourceDefinition{Document: fmt.Appendf(nil, crd, "")}
	object := []byte(`{"spec": {"ports": [{"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "UDP"}]}}`)
	patch := []byte(`{"spec": {"ports": [{"$patchMergeKey": ["port", "protocol"], "port": 1, "protocol": null}]}}`)
	lenient, err := engine.Schema(ctx, source)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := lenient.Apply(ctx, object, patch)
	wantResult(t, `{"spec":{"ports":[{"port":1},{"port":1,"protocol":"UDP"}]}}`, patched, err)
	strict, err := engine.Schema(ctx, source, strategicpatch.Strict())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := strict.Apply(ctx, object, patch); strategicpatch.ReasonFor(err) != strategicpatch.ReasonRefused {
		t.Errorf("got %v", err)
	}
}

func TestALargeListMergesByKey(t *testing.T) {
	ctx := context.Background()
	things := newSchema(t, newEngine(t), keyed)
	old, changed := list(30_000, "old"), list(30_000, "new")
	if len(old) < 1<<20 {
		t.Fatalf("%d bytes are not large", len(old))
	}
	patch, err := things.CreateTwoWay(ctx, old, changed)
	if err != nil {
		t.Fatal(err)
	}
	if count := bytes.Count(patch, []byte(`"value":"new"`)); count != 30_000 {
		t.Errorf("the patch changes %d items", count)
	}
	patched, err := things.Apply(ctx, old, patch)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(patched, changed) {
		t.Error("the patched object is not the changed one")
	}
}

func TestADocumentMayBeDeep(t *testing.T) {
	things := newSchema(t, newEngine(t), `{}`)
	deep := func(levels int) []byte {
		return []byte(strings.Repeat(`{"a":`, levels) + `1` + strings.Repeat(`}`, levels))
	}
	patched, err := things.Apply(context.Background(), nil, deep(512))
	wantResult(t, string(deep(512)), patched, err)
	if _, err := things.Apply(context.Background(), nil, deep(513)); strategicpatch.ReasonFor(err) != strategicpatch.ReasonUnreadable {
		t.Errorf("got %v", err)
	}
}
