package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// unionMarker is a marker of a union, and those that may stand before it.
var unionMarker = regexp.MustCompile(
	`^//\s*(\+k8s:[^+]*=)*\+k8s:(unionDiscriminator|unionMember|zeroOrOneOfMember|modeDiscriminator|ifMode|dependentForbidden)\b`)

var subfield = regexp.MustCompile(`\+k8s:subfield\("?(\w+)"?\)`)

// markerLine is a marker of a union in the sources.
type markerLine struct {
	line int
	text string
	// structure is the type with the field, and name the field in JSON.
	structure, name string
	// on is the type or field with the marker, if it belongs to a field of that.
	on string
	// fieldLine is the line of the field.
	fieldLine int
}

// markerLines returns the markers of unions in a file.
func markerLines(path string) ([]markerLine, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []markerLine
	add := func(comments *ast.CommentGroup, structure, name string, line int) {
		if comments == nil {
			return
		}
		for _, comment := range comments.List {
			if !unionMarker.MatchString(comment.Text) {
				continue
			}
			marker := markerLine{files.Position(comment.Pos()).Line, comment.Text, structure, name, "", line}
			if inner := subfield.FindStringSubmatch(comment.Text); inner != nil {
				marker.on, marker.structure, marker.name = name, "", inner[1]
			}
			found = append(found, marker)
		}
	}
	for _, declaration := range file.Decls {
		types, ok := declaration.(*ast.GenDecl)
		if !ok || types.Tok != token.TYPE {
			continue
		}
		for _, spec := range types.Specs {
			named := spec.(*ast.TypeSpec)
			add(types.Doc, named.Name.Name, "", files.Position(named.Pos()).Line)
			structure, ok := named.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, field := range structure.Fields.List {
				tag := ""
				if field.Tag != nil {
					tag, _ = strconv.Unquote(field.Tag.Value)
				}
				name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
				add(field.Doc, named.Name.Name, name, files.Position(field.Type.Pos()).Line)
			}
		}
	}
	return found, nil
}

// isIn returns true if a union has the field of the marker.
func (m markerLine) isIn(union union) bool {
	if m.structure == "" {
		if union.Path != m.on {
			return false
		}
	} else if _, structure, _ := strings.Cut(union.Type, "."); structure != m.structure {
		return false
	}
	return union.Discriminator == m.name || slices.Contains(union.Members, m.name)
}

// isAt returns true if a finding is about the marker, or about a union that would have its field.
func (m markerLine) isAt(found finding) bool {
	// The schema may refuse the union of a kind as a whole.
	isRefused := found.Rule == "refused-union" && strings.HasPrefix(found.Definition, strings.ToLower(m.structure)+"s.")
	return found.Line == m.line || found.Line == m.fieldLine || strings.Contains(found.Message, "`"+m.name+"`") || isRefused
}

// refuses returns true if the generated code of the marker may refuse a field of a kind.
func (m markerLine) refuses(kind, path string) bool {
	// Markers on a type are on that of a field.
	isThere := m.structure == kind || m.name == ""
	return isThere && (m.name == "" || m.name == path)
}

// definition returns the CRD of a Go type.
func definition(kind reflect.Type) any {
	name := strings.ToLower(kind.Name())
	root := schema(kind)
	properties := root["properties"].(map[string]any)
	properties["apiVersion"], properties["kind"] = text, text
	properties["metadata"] = map[string]any{"type": "object"}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": name + "s." + group},
		"spec": map[string]any{
			"group": group,
			"names": map[string]any{"kind": kind.Name(), "listKind": kind.Name() + "List", "plural": name + "s", "singular": name},
			"scope": "Cluster",
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": root},
			}},
		},
	}
}

var text = map[string]any{"type": "string"}

// schema returns the schema of a Go type.
func schema(kind reflect.Type) map[string]any {
	switch kind.Kind() {
	case reflect.Pointer:
		inner := schema(kind.Elem())
		inner["nullable"] = true
		return inner
	case reflect.Struct:
		properties := map[string]any{}
		for number := range kind.NumField() {
			field := kind.Field(number)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" {
				name = field.Name
			}
			properties[name] = schema(field.Type)
		}
		return map[string]any{"type": "object", "properties": properties}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schema(kind.Elem()), "nullable": true}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schema(kind.Elem()), "nullable": true}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int:
		return map[string]any{"type": "integer"}
	default:
		panic(fmt.Sprintf("no schema for %s", kind))
	}
}

// fill gives a value random content. Strings are some of texts.
func fill(random *rand.Rand, value reflect.Value, texts []string) {
	switch value.Kind() {
	case reflect.Pointer:
		if random.IntN(2) == 0 {
			value.Set(reflect.New(value.Type().Elem()))
			fill(random, value.Elem(), texts)
		}
	case reflect.Struct:
		for number := range value.NumField() {
			fill(random, value.Field(number), texts)
		}
	case reflect.Slice:
		if length := random.IntN(4) - 1; length >= 0 {
			value.Set(reflect.MakeSlice(value.Type(), length, length))
			for number := range length {
				fill(random, value.Index(number), texts)
			}
		}
	case reflect.Map:
		if length := random.IntN(3) - 1; length >= 0 {
			value.Set(reflect.MakeMap(value.Type()))
			for number := range length {
				element := reflect.New(value.Type().Elem()).Elem()
				fill(random, element, texts)
				value.SetMapIndex(reflect.ValueOf(strconv.Itoa(number)), element)
			}
		}
	case reflect.String:
		value.SetString(texts[random.IntN(len(texts))])
	case reflect.Bool:
		value.SetBool(random.IntN(2) == 0)
	case reflect.Int:
		value.SetInt(int64(random.IntN(2)))
	default:
		panic(fmt.Sprintf("no random %s", value.Type()))
	}
}

// writeDocuments writes a stream of documents.
func writeDocuments(path string, documents []any) error {
	var stream strings.Builder
	for _, document := range documents {
		text, err := json.Marshal(document)
		if err != nil {
			return err
		}
		stream.WriteString("---\n" + string(text) + "\n")
	}
	return os.WriteFile(path, []byte(stream.String()), 0o644)
}
