package main

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// lookup finds how fields are merged in a JSON schema without references. A schema that describes no fields, or says that it
// keeps unknown ones, knows nothing of a field, which then merges as a map or is replaced as a list.
type lookup struct{ schema map[string]any }

func (l lookup) field(key, kind string) (map[string]any, error) {
	properties, _ := l.schema["properties"].(map[string]any)
	field, found := properties[key].(map[string]any)
	if !found {
		field, found = l.schema["additionalProperties"].(map[string]any)
	}
	if !found {
		if keeps, _ := l.schema["x-kubernetes-preserve-unknown-fields"].(bool); !keeps && len(properties) > 0 {
			return nil, fmt.Errorf("unable to find api field %q", key)
		}
		return map[string]any{}, nil
	}
	if said, ok := field["type"].(string); ok && said != kind {
		return nil, fmt.Errorf("%q is of type %s, not %s", key, said, kind)
	}
	return field, nil
}

func meta(field map[string]any) strategicpatch.PatchMeta {
	var meta strategicpatch.PatchMeta
	if key, ok := field["x-kubernetes-patch-merge-key"].(string); ok {
		meta.SetPatchMergeKey(key)
	}
	if strategies, ok := field["x-kubernetes-patch-strategy"].(string); ok {
		meta.SetPatchStrategies(strings.Split(strategies, ","))
	}
	return meta
}

func (l lookup) LookupPatchMetadataForStruct(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	field, err := l.field(key, "object")
	if err != nil {
		return nil, strategicpatch.PatchMeta{}, err
	}
	return lookup{field}, meta(field), nil
}

func (l lookup) LookupPatchMetadataForSlice(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	field, err := l.field(key, "array")
	if err != nil {
		return nil, strategicpatch.PatchMeta{}, err
	}
	items, _ := field["items"].(map[string]any)
	return lookup{items}, meta(field), nil
}

func (l lookup) Name() string { return "object" }
