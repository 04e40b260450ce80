package strategicpatch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// deepest is the number of levels to compare. Deeper values are replaced as a whole.
const deepest = 64

// operation is one operation of a JSON Patch.
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// JSONPatch returns the JSON Patch (RFC 6902) that turns original into modified, to send to an API server. Values stay as they
// are written.
//
// If original has a metadata.resourceVersion, the patch sets it. The API server then answers 409 Conflict if somebody else
// changed the object since it was read.
//
// The patch names single fields and, in lists that keep their length, single items. It therefore keeps fields that the Go type
// of the object lacks.
func JSONPatch(original, modified []byte) ([]byte, error) {
	operations := []operation{}
	var object struct {
		Metadata struct {
			ResourceVersion json.RawMessage `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(original, &object); err != nil {
		return nil, fmt.Errorf("cannot read the original: %w", err)
	}
	if version := object.Metadata.ResourceVersion; version != nil {
		operations = append(operations, operation{"replace", "/metadata/resourceVersion", version})
	}
	operations, err := difference(operations, "", deepest, original, modified)
	if err != nil {
		return nil, err
	}
	return marshalPlainly(operations)
}

// difference appends the operations that turn one value into another.
func difference(to []operation, path string, levels int, original, modified json.RawMessage) ([]operation, error) {
	original, modified = bytes.TrimSpace(original), bytes.TrimSpace(modified)
	if bytes.Equal(original, modified) {
		return to, nil
	}
	kinds := [2]byte{first(original), first(modified)}
	switch {
	case levels == 0:
	case kinds == [2]byte{'"', '"'}:
		// The same text may be escaped differently.
		var before, after string
		if err := unmarshalBoth(original, modified, &before, &after); err != nil {
			return nil, err
		}
		if before == after {
			return to, nil
		}
	case kinds == [2]byte{'{', '{'}:
		return differenceOfObjects(to, path, levels-1, original, modified)
	case kinds == [2]byte{'[', '['}:
		var before, after []json.RawMessage
		if err := unmarshalBoth(original, modified, &before, &after); err != nil {
			return nil, err
		}
		if len(before) != len(after) {
			break
		}
		var err error
		for i := range before {
			if to, err = difference(to, path+"/"+strconv.Itoa(i), levels-1, before[i], after[i]); err != nil {
				return nil, err
			}
		}
		return to, nil
	}
	return append(to, operation{"replace", path, modified}), nil
}

func differenceOfObjects(to []operation, path string, levels int, original, modified json.RawMessage) ([]operation, error) {
	var before, after map[string]json.RawMessage
	if err := unmarshalBoth(original, modified, &before, &after); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, stays := after[name]; !stays {
			to = append(to, operation{Op: "remove", Path: below(path, name)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		value, known := before[name]
		if !known {
			to = append(to, operation{"add", below(path, name), after[name]})
			continue
		}
		var err error
		if to, err = difference(to, below(path, name), levels, value, after[name]); err != nil {
			return nil, err
		}
	}
	return to, nil
}

func unmarshalBoth[T any](original, modified json.RawMessage, before, after *T) error {
	if err := json.Unmarshal(original, before); err != nil {
		return fmt.Errorf("cannot read the original: %w", err)
	}
	if err := json.Unmarshal(modified, after); err != nil {
		return fmt.Errorf("cannot read the modified object: %w", err)
	}
	return nil
}

// below returns the JSON Pointer (RFC 6901) of a field.
func below(path, name string) string {
	return path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// first returns the first byte of a value, which tells its type.
func first(value []byte) byte {
	if len(value) == 0 {
		return 0
	}
	return value[0]
}

// marshalPlainly returns JSON without the escapes for HTML.
func marshalPlainly(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}
