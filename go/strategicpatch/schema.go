package strategicpatch

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
)

// Source describes a kind: a [CustomResourceDefinition], an [OpenAPI] document or a [JSONSchema].
type Source interface {
	// source returns the JSON object that the protocol calls `source`.
	source() (json.RawMessage, error)
}

// CustomResourceDefinition is a CRD in JSON. The unions that it declares clear their other members.
type CustomResourceDefinition struct {
	// Document is the CRD.
	Document []byte
	// Version is the name of the version of the objects. It may be empty if the CRD has one version.
	Version string
	// UnionDeclarations are objects of kube-unions.dev/v1alpha1 about the kind.
	UnionDeclarations [][]byte
}

// OpenAPI is an OpenAPI document of version 2 or 3 in JSON, as an API server publishes it.
type OpenAPI struct {
	Document             []byte
	Group, Version, Kind string
}

// JSONSchema is a JSON schema. References resolve to its definitions, $defs or components.schemas.
type JSONSchema struct {
	Document []byte
	// Name stands for the kind in errors.
	Name string
}

// Conflicts is the treatment of a field that both sides of a three-way patch changed differently.
type Conflicts int

const (
	// Overwrite lets the user's change win.
	Overwrite Conflicts = iota
	// Refuse fails with [ReasonConflict].
	Refuse
)

// SchemaOption changes how a [Schema] treats patches.
type SchemaOption func(*defineParams)

// Strict refuses a patch that removes a merge key if several items match.
func Strict() SchemaOption {
	return func(params *defineParams) { params.Strict = true }
}

type defineParams struct {
	Schema string          `json:"schema"`
	Source json.RawMessage `json:"source"`
	Strict bool            `json:"strict,omitempty"`
}

// Schema has the merge rules of one kind. It is safe for concurrent use and needs no closing.
//
// Each instance of the module reads the schema once, and keeps the 64 that were used last.
type Schema struct {
	engine *Engine
	// selects is the parameter that names the schema.
	selects []byte
	// define is the request that makes an instance read the schema.
	define   []byte
	warnings []string
}

// Schema reads the merge rules of a kind.
func (e *Engine) Schema(ctx context.Context, source Source, options ...SchemaOption) (*Schema, error) {
	document, err := source.source()
	if err != nil {
		return nil, err
	}
	if err := checkSize(len(document)); err != nil {
		return nil, err
	}
	name := strconv.FormatUint(e.names.Add(1), 10)
	params := defineParams{Schema: name, Source: document}
	for _, option := range options {
		option(&params)
	}
	text, err := json.Marshal(params)
	if err != nil {
		return nil, unreadableSchema(err)
	}
	schema := &Schema{engine: e, selects: []byte(`"schema":"` + name + `"`), define: request("define", text)}
	result, err := e.call(ctx, schema.define)
	if err != nil {
		return nil, err
	}
	var defined struct {
		Warnings []string `json:"warnings"`
	}
	if err := json.Unmarshal(result, &defined); err != nil {
		return nil, &ModuleError{Err: err}
	}
	schema.warnings = defined.Warnings
	return schema, nil
}

// Warnings returns the declared unions that are not in force, and why.
func (s *Schema) Warnings() []string { return s.warnings }

// Apply returns the original with the patch applied.
func (s *Schema) Apply(ctx context.Context, original, patch []byte) ([]byte, error) {
	return s.call(ctx, "apply", s.selects, parameter{DocumentOriginal, original}, parameter{DocumentPatch, patch})
}

// CreateTwoWay returns the patch that turns original into modified.
func (s *Schema) CreateTwoWay(ctx context.Context, original, modified []byte) ([]byte, error) {
	return s.call(ctx, "createTwoWay", s.selects, parameter{DocumentOriginal, original}, parameter{DocumentModified, modified})
}

// CreateThreeWay returns the patch that makes the user's changes, from original to modified, to current. Changes that others
// made to current stay.
func (s *Schema) CreateThreeWay(ctx context.Context, original, modified, current []byte, conflicts Conflicts) ([]byte, error) {
	treatment := "overwrite"
	if conflicts == Refuse {
		treatment = "refuse"
	}
	params := fmt.Appendf(nil, `%s,"conflicts":"%s"`, s.selects, treatment)
	return s.call(ctx, "createThreeWay", params, parameter{DocumentOriginal, original},
		parameter{DocumentModified, modified}, parameter{DocumentCurrent, current})
}

// call runs a request. If the instance does not have the schema, it first makes the instance read it.
func (s *Schema) call(ctx context.Context, method string, params []byte, documents ...parameter) ([]byte, error) {
	params, err := withDocuments(params, documents...)
	if err != nil {
		return nil, err
	}
	line := request(method, params)
	result, err := s.engine.call(ctx, line)
	if ReasonFor(err) == reasonUnknownSchema {
		result, err = s.engine.call(ctx, s.define, line)
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

func (s CustomResourceDefinition) source() (json.RawMessage, error) {
	declarations := make([]json.RawMessage, len(s.UnionDeclarations))
	for i, declaration := range s.UnionDeclarations {
		declarations[i] = declaration
	}
	return marshal("definition", struct {
		Document          json.RawMessage   `json:"document"`
		Version           string            `json:"version,omitempty"`
		UnionDeclarations []json.RawMessage `json:"unionDeclarations"`
	}{s.Document, s.Version, declarations})
}

func (s OpenAPI) source() (json.RawMessage, error) {
	return marshal("openapi", struct {
		Document json.RawMessage `json:"document"`
		Group    string          `json:"group"`
		Version  string          `json:"version"`
		Kind     string          `json:"kind"`
	}{s.Document, s.Group, s.Version, s.Kind})
}

func (s JSONSchema) source() (json.RawMessage, error) {
	return marshal("jsonSchema", struct {
		Document json.RawMessage `json:"document"`
		Name     string          `json:"name"`
	}{s.Document, s.Name})
}

func marshal(member string, source any) (json.RawMessage, error) {
	text, err := json.Marshal(map[string]any{member: source})
	if err != nil {
		return nil, unreadableSchema(err)
	}
	return text, nil
}

func unreadableSchema(err error) error {
	return &Error{Reason: ReasonInvalidSchema, Message: fmt.Sprintf("cannot read the schema as JSON: %v", err)}
}
