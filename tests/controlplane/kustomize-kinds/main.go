// Prints the merge rules of built-in kinds in the OpenAPI document that is compiled into kustomize.
//
// Of the document's definitions it keeps the fields that lead to a list that merges, and the keywords that tell kustomize how.
// kustomize replaces every other list, whether it knows its field or not.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/kustomize/kyaml/openapi"
)

// The keywords that kustomize reads.
const (
	kinds    = "x-kubernetes-group-version-kind"
	strategy = "x-kubernetes-patch-strategy"
	mergeKey = "x-kubernetes-patch-merge-key"
	mapKeys  = "x-kubernetes-list-map-keys"
)

const prefix = "#/definitions/"

type object = map[string]any

func main() {
	rules := rulesOf(openapi.Schema().Definitions)
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(rules); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// rulesOf reduces definitions to those with rules.
func rulesOf(definitions spec.Definitions) object {
	ruled := map[string]bool{}
	// A definition has rules if a field of a definition with rules is in it, so repeat until nothing is added.
	for added := true; added; {
		added = false
		for name, definition := range definitions {
			if !ruled[name] && reduce(definition, ruled) != nil {
				ruled[name] = true
				added = true
			}
		}
	}
	result := object{}
	reached := map[string]bool{}
	for name, definition := range definitions {
		found, ok := definition.Extensions[kinds]
		// kustomize adds its own kinds to every document.
		if ok && ruled[name] && !strings.Contains(fmt.Sprint(found), "kustomize.config.k8s.io") {
			keep(name, definitions, ruled, reached, result)
		}
	}
	return result
}

// keep adds a definition and those that it refers to.
func keep(name string, definitions spec.Definitions, ruled, reached map[string]bool, result object) {
	if reached[name] {
		return
	}
	reached[name] = true
	definition := definitions[name]
	reduced := reduce(definition, ruled)
	if found, ok := definition.Extensions[kinds]; ok {
		reduced[kinds] = found
	}
	result[name] = reduced
	for _, reference := range references(reduced) {
		keep(reference, definitions, ruled, reached, result)
	}
}

// reduce returns the part of a schema with rules, or nil.
func reduce(schema spec.Schema, ruled map[string]bool) object {
	if reference := schema.Ref.String(); reference != "" {
		if !ruled[strings.TrimPrefix(reference, prefix)] {
			return nil
		}
		return object{"$ref": reference}
	}
	if schema.Type.Contains("array") {
		text, _ := schema.Extensions[strategy].(string)
		if !strings.Contains(","+text+",", ",merge,") {
			return nil
		}
		list := object{"type": "array", strategy: text}
		for _, keyword := range []string{mergeKey, mapKeys} {
			if value, ok := schema.Extensions[keyword]; ok {
				list[keyword] = value
			}
		}
		if schema.Items != nil && schema.Items.Schema != nil {
			if items := reduce(*schema.Items.Schema, ruled); items != nil {
				list["items"] = items
			}
		}
		return list
	}
	properties := object{}
	for name, property := range schema.Properties {
		if reduced := reduce(property, ruled); reduced != nil {
			properties[name] = reduced
		}
	}
	if len(properties) > 0 {
		return object{"type": "object", "properties": properties}
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		if values := reduce(*schema.AdditionalProperties.Schema, ruled); values != nil {
			return object{"type": "object", "additionalProperties": values}
		}
	}
	return nil
}

// references returns the names of the definitions that a reduced schema refers to.
func references(value any) []string {
	found := []string{}
	members, _ := value.(object)
	for keyword, inner := range members {
		if text, ok := inner.(string); ok && keyword == "$ref" {
			found = append(found, strings.TrimPrefix(text, prefix))
		} else {
			found = append(found, references(inner)...)
		}
	}
	return found
}
