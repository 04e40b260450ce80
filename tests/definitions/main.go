// Command definitions compares the CRDs that kube-unions reads out of XRDs and ResourceGraphDefinitions with those that Crossplane and kro
// make of them.
//
//	definitions PROGRAM FOLDER
//
// It annotates each document of the folder, has its CRDs made by the packages of Crossplane and kro, and writes these into files. `explain`
// and `compile` have to say the same of the document and of the files, `lint` has to accept both, and the annotation and the rules that
// `compile --to cel` puts into a document have to be in the CRDs.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	xv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	"github.com/gobuffalo/flect"
	"github.com/kubernetes-sigs/kro/api/v1alpha1"
	"github.com/kubernetes-sigs/kro/pkg/graph/crd"
	"github.com/kubernetes-sigs/kro/pkg/simpleschema"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const annotation = "kube-unions.dev/unions"

// Kinds whose plurals kro forms by rules, and some that it knows as exceptions.
const kinds = `Access Analysis Application Archive Bounty Box Branch Bus Button Cache Canary Child Cluster Company Criterion Daemon Dashboard
	Database Deployment Device Directive Edge Equipment Fish Gateway Glass Hash House Human Index Information Ingress Key Knife Leaf
	Location Matrix Medium Mesh Money Mouse News Office Option Parent Person Photo Policy Potato Process Proxy Quota Region Release Rice
	Route Schema Series Server Service Session Shop Source Status Stadium Storage Task Tenant Topology Tooth Version Vertex Woman Zone`

type comparison struct {
	program, made string
	crds, rules   int
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "definitions:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 2 {
		return errors.New("usage: definitions PROGRAM FOLDER")
	}
	files, err := filepath.Glob(filepath.Join(arguments[1], "*.yaml"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, fmt.Errorf("no documents in %s", arguments[1]))
	}
	made, err := os.MkdirTemp("", "definitions")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	comparison := &comparison{program: arguments[0], made: made}
	for _, file := range files {
		if err := comparison.compare(file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	fmt.Printf("%d documents become %d CRDs with the annotation, which say the same; %d rules arrive\n", len(files), comparison.crds, comparison.rules)
	return comparison.comparePlurals()
}

func (c *comparison) compare(file string) error {
	annotated := filepath.Join(c.made, filepath.Base(file))
	text, err := c.run("annotate", file)
	if err != nil {
		return err
	}
	if err := os.WriteFile(annotated, text, 0o600); err != nil {
		return err
	}
	crds, err := madeOf(text)
	if err != nil {
		return err
	}
	folder := annotated + ".crds"
	if err := write(folder, crds); err != nil {
		return err
	}
	for _, crd := range crds {
		if crd.Annotations[annotation] == "" {
			return fmt.Errorf("the CRD %s has no annotation", crd.Name)
		}
		c.crds++
	}
	for _, arguments := range [][]string{
		{"explain", "-o", "json", "--from"}, {"compile", "--to", "policies", "--from"}, {"lint", "--strict", "--require"},
	} {
		of, err := c.run(append(slices.Clone(arguments), annotated)...)
		if err != nil {
			return err
		}
		expected, err := c.run(append(slices.Clone(arguments), folder)...)
		if err != nil {
			return err
		}
		if !bytes.Equal(of, expected) {
			return fmt.Errorf("%s says of the document:\n%s\nand of the CRDs:\n%s", arguments[0], of, expected)
		}
	}
	// kro has no place for rules.
	if !bytes.Contains(text, []byte("kind: CompositeResourceDefinition")) {
		return nil
	}
	ruled, err := c.run("compile", "--to", "cel", "--from", annotated)
	if err != nil {
		return err
	}
	crds, err = madeOf(ruled)
	if err != nil {
		return err
	}
	// A claim has the rules of its composite.
	rules := bytes.Count(ruled, []byte("// kube-unions")) * len(crds)
	if rules == 0 {
		return errors.New("no rules")
	}
	arrived := 0
	for _, crd := range crds {
		text, err := json.Marshal(crd)
		if err != nil {
			return err
		}
		arrived += bytes.Count(text, []byte("// kube-unions"))
	}
	if arrived != rules {
		return fmt.Errorf("%d of %d rules arrive", arrived, rules)
	}
	c.rules += rules
	return nil
}

// comparePlurals has policies compiled for a kind of each name, and looks up the resource that each is for.
func (c *comparison) comparePlurals() error {
	var text strings.Builder
	expected := map[string]bool{}
	for _, kind := range strings.Fields(kinds) {
		fmt.Fprintf(&text, `---
apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: %s}
spec:
  schema:
    apiVersion: v1
    kind: %s
    metadata: {annotations: {kube-unions.dev/unions: '{"v1": {"/properties/spec": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]}}'}}
    spec: {a: string, b: string}
`, strings.ToLower(kind), kind)
		expected[flect.Pluralize(strings.ToLower(kind))] = true
	}
	file := filepath.Join(c.made, "plurals.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return err
	}
	policies, err := c.run("compile", "--to", "vap", "--allow-partial", "--from", file)
	if err != nil {
		return err
	}
	found := map[string]bool{}
	for _, document := range strings.Split(string(policies), "\n---\n") {
		var policy struct {
			Spec struct {
				MatchConstraints struct {
					ResourceRules []struct{ Resources []string }
				}
			}
		}
		if err := yaml.Unmarshal([]byte(document), &policy); err != nil {
			return err
		}
		for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
			for _, resource := range rule.Resources {
				if !expected[resource] {
					return fmt.Errorf("kro has no resource %s", resource)
				}
				found[resource] = true
			}
		}
	}
	if len(found) < len(expected)/2 {
		return fmt.Errorf("only %d of %d plurals are known", len(found), len(expected))
	}
	fmt.Printf("%d of %d plurals are known, as kro forms them\n", len(found), len(expected))
	return nil
}

// run returns what the program prints to standard output.
func (c *comparison) run(arguments ...string) ([]byte, error) {
	command := exec.Command(c.program, arguments...)
	var output, messages bytes.Buffer
	command.Stdout, command.Stderr = &output, &messages
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%v: %w\n%s%s", arguments, err, &output, &messages)
	}
	return output.Bytes(), nil
}

// madeOf returns the CRDs that Crossplane or kro makes of a document.
func madeOf(text []byte) ([]*extv1.CustomResourceDefinition, error) {
	if !bytes.Contains(text, []byte("kind: CompositeResourceDefinition")) {
		crd, err := ofGraph(text)
		return []*extv1.CustomResourceDefinition{crd}, err
	}
	var definition xv1.CompositeResourceDefinition
	if err := yaml.Unmarshal(text, &definition); err != nil {
		return nil, err
	}
	// An API server sets the default of the version.
	if strings.HasSuffix(definition.APIVersion, "/v2") && definition.Spec.Scope == nil {
		scope := xv1.CompositeResourceScopeNamespaced
		definition.Spec.Scope = &scope
	}
	composite, err := xcrd.ForCompositeResource(&definition)
	if err != nil || definition.Spec.ClaimNames == nil {
		return []*extv1.CustomResourceDefinition{composite}, err
	}
	claim, err := xcrd.ForCompositeResourceClaim(&definition)
	return []*extv1.CustomResourceDefinition{composite, claim}, err
}

func ofGraph(text []byte) (*extv1.CustomResourceDefinition, error) {
	var definition v1alpha1.ResourceGraphDefinition
	if err := yaml.Unmarshal(text, &definition); err != nil {
		return nil, err
	}
	schema := definition.Spec.Schema
	var fields, types map[string]any
	if err := json.Unmarshal(schema.Spec.Raw, &fields); err != nil {
		return nil, err
	}
	if schema.Types.Raw != nil {
		if err := json.Unmarshal(schema.Types.Raw, &types); err != nil {
			return nil, err
		}
	}
	spec, err := simpleschema.ToOpenAPISpec(fields, types)
	if err != nil {
		return nil, err
	}
	scope := extv1.NamespaceScoped
	if schema.Scope == v1alpha1.ResourceScopeCluster {
		scope = extv1.ClusterScoped
	}
	return crd.SynthesizeCRD(schema.Group, schema.APIVersion, schema.Kind, *spec, extv1.JSONSchemaProps{}, true, scope, schema), nil
}

// write writes each CRD to a file of its own.
func write(folder string, crds []*extv1.CustomResourceDefinition) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for _, crd := range crds {
		crd.APIVersion, crd.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
		text, err := yaml.Marshal(crd)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, crd.Name+".yaml"), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
