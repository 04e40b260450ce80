// Command markers compares the unions that `kube-unions generate` declares for the markers of declarative validation with the code that
// validation-gen generates for them.
//
//	markers PROGRAM [OBJECTS [SEED]]
//
// It reads the packages with which validation-gen itself is tested. Each marker of unions has to be declared or reported, and none may be
// reported as invalid. Then it validates OBJECTS random objects of each type by the generated code, and audits them by the declared unions.
// The verdicts have to be equal, or differ for a known reason; the reasons are counted.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/code-generator/cmd/validation-gen/testscheme"
)

const group = "markers.example.com"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "markers:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 || len(arguments) > 3 {
		return errors.New("usage: markers PROGRAM [OBJECTS [SEED]]")
	}
	numbers := []uint64{300, rand.Uint64()}
	for at, text := range arguments[1:] {
		number, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return err
		}
		numbers[at] = number
	}
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/code-generator").Output()
	if err != nil {
		return err
	}
	root := filepath.Join(strings.TrimSpace(string(module)), tags)
	made, err := os.MkdirTemp("", "markers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	comparison := &comparison{
		program: arguments[0], root: root, made: made, objects: int(numbers[0]),
		random: rand.New(rand.NewPCG(numbers[1], 0)), differences: map[string]int{},
	}
	read, err := comparison.everyPackage()
	if err != nil {
		return err
	}
	for _, marked := range markedPackages {
		if err := comparison.compare(marked); err != nil {
			return fmt.Errorf("%s (seed %d): %w", marked.folder, numbers[1], err)
		}
	}
	fmt.Printf("%d packages, %d of them with markers of unions: %d markers declared, %d reported\n",
		read, len(markedPackages), comparison.declared, comparison.reported)
	fmt.Printf("seed %d: %d objects of %d types, %d rejected by both, %d accepted by both\n",
		numbers[1], comparison.judged, comparison.types, comparison.rejected, comparison.accepted)
	for _, difference := range slices.Sorted(maps.Keys(comparison.differences)) {
		fmt.Printf("%s: %d objects differ\n", difference, comparison.differences[difference])
	}
	return nil
}

// comparison has the results so far.
type comparison struct {
	program, root, made               string
	objects                           int
	random                            *rand.Rand
	declared, reported                int
	types, judged, rejected, accepted int
	differences                       map[string]int
}

// report is the report of generate.
type report struct {
	Kinds    []kindReport `json:"kinds"`
	Findings []finding    `json:"findings"`
}

type kindReport struct {
	Kind   string  `json:"kind"`
	Unions []union `json:"unions"`
}

type union struct {
	Path          string   `json:"path"`
	Type          string   `json:"type"`
	Discriminator string   `json:"discriminator"`
	Members       []string `json:"members"`
	Choices       []struct {
		Value string `json:"value"`
	} `json:"choices"`
}

type finding struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Path string `json:"path"`
	// Definition is the CRD.
	Definition string `json:"definition"`
	Rule       string `json:"rule"`
	Message    string `json:"message"`
}

// everyPackage checks that markedPackages has each package with a marker of unions, and that none of the others has an invalid marker.
func (c *comparison) everyPackage() (int, error) {
	known := sets.New[string]()
	for _, marked := range markedPackages {
		known.Insert(marked.folder)
	}
	read := 0
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(c.root, folder), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.Name() != "doc.go" {
				return err
			}
			read++
			name, _ := filepath.Rel(c.root, filepath.Dir(path))
			lines, err := markerLines(path)
			if err != nil || known.Has(name) == (len(lines) > 0) {
				return err
			}
			return fmt.Errorf("%s has %d markers of unions: correct markedPackages", name, len(lines))
		})
		if err != nil {
			return 0, err
		}
	}
	return read, nil
}

// compare generates the unions of a package, and judges random objects.
func (c *comparison) compare(marked markedPackage) error {
	folder := filepath.Join(c.root, marked.folder)
	var definitions []any
	for _, object := range marked.types {
		definitions = append(definitions, definition(reflect.TypeOf(object).Elem()))
	}
	plain, declared := filepath.Join(c.made, "plain.yaml"), filepath.Join(c.made, "declared.yaml")
	if err := writeDocuments(plain, definitions); err != nil {
		return err
	}
	command := exec.Command(c.program, "generate", "-o", "json", "--go", folder, plain)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	// 1 means that something was left out.
	if err := command.Run(); command.ProcessState == nil || command.ProcessState.ExitCode() > 1 {
		return fmt.Errorf("generate: %w: %s", err, stderr.String())
	}
	if err := os.WriteFile(declared, stdout.Bytes(), 0o644); err != nil {
		return err
	}
	var made report
	if err := json.Unmarshal(stderr.Bytes(), &made); err != nil {
		return fmt.Errorf("generate: %w: %s", err, stderr.String())
	}
	reported, err := c.checkMarkers(filepath.Join(folder, "doc.go"), made)
	if err != nil {
		return err
	}
	scheme := testscheme.New()
	if err := marked.register(scheme); err != nil {
		return err
	}
	for _, object := range marked.types {
		if err := c.judge(scheme, reflect.TypeOf(object).Elem(), marked.folder, declared, made, reported); err != nil {
			return err
		}
	}
	return nil
}

// checkMarkers checks that each marker is declared or reported, and returns those that are reported.
func (c *comparison) checkMarkers(path string, made report) ([]markerLine, error) {
	lines, err := markerLines(path)
	if err != nil {
		return nil, err
	}
	var reported []markerLine
	for _, found := range made.Findings {
		if found.Rule == "invalid-marker" || found.Rule == "unreached-struct" || found.Rule == "kind-not-found" {
			return nil, fmt.Errorf("%s:%d: %s: %s", found.File, found.Line, found.Rule, found.Message)
		}
	}
	for _, marker := range lines {
		isDeclared := slices.ContainsFunc(made.Kinds, func(kind kindReport) bool {
			return slices.ContainsFunc(kind.Unions, marker.isIn)
		})
		// A note about the condition of a marker does not say that it is left out.
		isReported := slices.ContainsFunc(made.Findings, func(found finding) bool {
			return found.Rule != "conditional-marker" && marker.isAt(found)
		})
		switch {
		case isDeclared:
			c.declared++
		case isReported:
			reported = append(reported, marker)
		default:
			return nil, fmt.Errorf("%s:%d: the marker is neither declared nor reported: %s", path, marker.line, marker.text)
		}
	}
	c.reported += len(reported)
	return reported, nil
}

// judge compares the verdicts about random objects of a type.
func (c *comparison) judge(
	scheme *testscheme.Scheme, kind reflect.Type, folder, declared string, made report, reported []markerLine,
) error {
	texts := []string{"", "Unknown", "succeeded", "failed"}
	for _, known := range made.Kinds {
		for _, union := range known.Unions {
			for _, choice := range union.Choices {
				texts = append(texts, choice.Value)
			}
		}
	}
	var objects []any
	var refusals []field.ErrorList
	for number := range c.objects {
		object := reflect.New(kind)
		fill(c.random, object.Elem(), texts)
		refusals = append(refusals, refusal(scheme, object.Interface()))
		text, err := json.Marshal(object.Interface())
		if err != nil {
			return err
		}
		fields := map[string]any{}
		if err := json.Unmarshal(text, &fields); err != nil {
			return err
		}
		fields["apiVersion"], fields["kind"] = group+"/v1", kind.Name()
		fields["metadata"] = map[string]any{"name": strconv.Itoa(number)}
		objects = append(objects, fields)
	}
	violations, err := c.audit(declared, objects, made)
	if err != nil {
		return fmt.Errorf("%s: %w", kind.Name(), err)
	}
	c.types++
	for number, errors := range refusals {
		c.judged++
		found := violations[strconv.Itoa(number)]
		switch {
		case len(errors) > 0 && len(found) > 0:
			c.rejected++
		case len(errors) == 0 && len(found) == 0:
			c.accepted++
		default:
			reason := known(errors, found, kind.Name(), reported)
			if reason == "" {
				text, _ := json.Marshal(objects[number])
				return fmt.Errorf("%s: %s\n  generated code: %v\n  declared unions: %v", kind.Name(), text, errors, found)
			}
			c.differences[folder+": "+reason]++
		}
	}
	return nil
}

// audit returns the violations of the declared unions, by the name of the object.
func (c *comparison) audit(declared string, objects []any, made report) (map[string][]string, error) {
	violations := map[string][]string{}
	if !slices.ContainsFunc(made.Kinds, func(kind kindReport) bool { return len(kind.Unions) > 0 }) {
		return violations, nil
	}
	path := filepath.Join(c.made, "objects.yaml")
	if err := writeDocuments(path, objects); err != nil {
		return nil, err
	}
	command := exec.Command(c.program, "audit", "--from", declared, "--from", path, "-o", "json")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if command.ProcessState == nil || command.ProcessState.ExitCode() > 1 {
		return nil, fmt.Errorf("audit: %w: %s", err, stderr.String())
	}
	var audit struct {
		Findings []struct {
			Name, Finding, Rule, Field, Message string
		} `json:"findings"`
	}
	if err := json.Unmarshal(output, &audit); err != nil {
		return nil, fmt.Errorf("audit: %w: %s", err, stderr.String())
	}
	for _, found := range audit.Findings {
		if found.Finding != "invalid" {
			return nil, fmt.Errorf("%s: %s: %s", found.Name, found.Finding, found.Message)
		}
		violations[found.Name] = append(violations[found.Name], found.Field+": "+found.Message)
	}
	return violations, nil
}

// known returns the reason why the verdicts about an object differ, or the empty string.
func known(errors field.ErrorList, violations []string, kind string, reported []markerLine) string {
	if len(errors) == 0 {
		if slices.ContainsFunc(violations, func(it string) bool { return !strings.Contains(it, "Unsupported value") }) {
			return ""
		}
		return "the value is none of the union's, which the generated code leaves to other validations"
	}
	for _, refused := range errors {
		if !slices.ContainsFunc(reported, func(marker markerLine) bool { return marker.refuses(kind, refused.Field) }) {
			return ""
		}
	}
	return "the union is left out and reported"
}

// refusal returns the errors of unions in an object, with every option and without.
func refusal(scheme *testscheme.Scheme, object any) field.ErrorList {
	var refused field.ErrorList
	for _, enabled := range []bool{true, false} {
		options := map[string]bool{"FeatureX": enabled, "FeatureZ": enabled}
		for _, found := range scheme.Validate(context.Background(), options, object) {
			switch found.Origin {
			case "union", "zeroOrOneOf", "dependentForbidden":
				refused = append(refused, found)
			case "":
				// Modes forbid and require.
				if found.Type == field.ErrorTypeForbidden || found.Type == field.ErrorTypeRequired {
					refused = append(refused, found)
				}
			}
		}
	}
	return refused
}
