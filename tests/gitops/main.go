// Command gitops applies manifests as Flux, Argo CD and controllers with controller-runtime do, by their own packages.
//
//	gitops KUBECONFIG <cases.jsonl
//
// Each line of standard input is a case: an object to store, and a manifest to apply over it several times. Each way to apply
// plays each case on an object of its own. The program prints one JSON line for each step, and judges nothing: tests/e2e/gitops.rs
// does. flux.go, argo.go and controller.go have the ways.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// applies is how often each manifest is applied.
const applies = 3

// testCase is a stored object, and a manifest of the same kind and name.
type testCase struct {
	Case string `json:"case"`
	// Stored is created by another client. Without it, StoredByApply is applied in the same way as the manifest.
	Stored        map[string]any `json:"stored"`
	StoredByApply map[string]any `json:"storedByApply"`
	Manifest      map[string]any `json:"manifest"`
	// Over is the only way that plays the case: it takes over an object that has the name of the manifest and is there already.
	Over string `json:"over"`
}

// step is the result of a case in one way.
type step struct {
	Way  string `json:"way"`
	Case string `json:"case"`
	// Refusals has the error of each apply. Null: the manifest was stored.
	Refusals [applies]*string `json:"refusals"`
	// Generations and ResourceVersions are those of the stored object, and then those after each apply.
	Generations      [applies + 1]int64  `json:"generations"`
	ResourceVersions [applies + 1]string `json:"resourceVersions"`
	// Differences has a merge patch for each diff of the tool that still finds something after the last apply, or its error.
	Differences map[string]string `json:"differences"`
	// Object is the stored object after the last apply.
	Object map[string]any `json:"object"`
}

// way applies and compares manifests as one tool does.
type way interface {
	name() string
	// apply stores the manifest as the tool does at each reconcile.
	apply(ctx context.Context, manifest *unstructured.Unstructured) error
	// differences returns what each diff of the tool still finds.
	differences(ctx context.Context, manifest, live *unstructured.Unstructured) map[string]string
}

// migrating is a way that takes over the fields of another client before it applies.
type migrating interface {
	migrate(ctx context.Context, server client.Client, live *unstructured.Unstructured) error
}

func main() {
	log.SetLogger(logr.Discard())
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gitops:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) != 1 {
		return errors.New("usage: gitops KUBECONFIG <cases.jsonl")
	}
	config, err := clientcmd.BuildConfigFromFlags("", arguments[0])
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 1000, 1000
	// Each apply that clears a member is answered with a warning.
	config.WarningHandler = rest.NoWarnings{}
	cases, err := read(os.Stdin)
	if err != nil {
		return err
	}
	server, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	argo, err := newArgo(config)
	if err != nil {
		return err
	}
	defer argo.close()
	ways := []way{newFlux(server), argo.clientSide(), argo.serverSide(), controller{server}}

	var printing sync.Mutex
	output := json.NewEncoder(os.Stdout)
	group, ctx := errgroup.WithContext(ctx)
	for _, way := range ways {
		group.Go(func() error {
			for number, testCase := range cases {
				if testCase.Over != "" && testCase.Over != way.name() {
					continue
				}
				step, err := play(ctx, server, way, number, testCase)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", way.name(), testCase.Case, err)
				}
				printing.Lock()
				err = output.Encode(step)
				printing.Unlock()
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func read(input io.Reader) ([]testCase, error) {
	decoder := json.NewDecoder(input)
	decoder.DisallowUnknownFields()
	var cases []testCase
	for {
		var next testCase
		if err := decoder.Decode(&next); errors.Is(err, io.EOF) {
			return cases, nil
		} else if err != nil {
			return nil, fmt.Errorf("case %d: %w", len(cases), err)
		}
		cases = append(cases, next)
	}
}

// play stores the object of a case, applies the manifest, and compares.
func play(ctx context.Context, server client.Client, way way, number int, testCase testCase) (*step, error) {
	named := func(content map[string]any) *unstructured.Unstructured {
		object := (&unstructured.Unstructured{Object: content}).DeepCopy()
		if testCase.Over != "" {
			return object
		}
		object.SetName(fmt.Sprintf("%s-%d", way.name(), number))
		return object
	}
	manifest := named(testCase.Manifest)
	played := &step{Way: way.name(), Case: testCase.Case}
	if testCase.Over != "" {
		live, err := get(ctx, server, manifest)
		if err != nil {
			return nil, err
		}
		if migrating, ok := way.(migrating); ok {
			if err := migrating.migrate(ctx, server, live); err != nil {
				return nil, fmt.Errorf("cannot take over the fields: %w", err)
			}
		}
	} else if testCase.Stored != nil {
		if err := server.Create(ctx, named(testCase.Stored), client.FieldOwner("kubectl-create")); err != nil {
			return nil, fmt.Errorf("cannot create the stored object: %w", err)
		}
	} else if err := way.apply(ctx, named(testCase.StoredByApply)); err != nil {
		return nil, fmt.Errorf("cannot apply the stored object: %w", err)
	}
	live, err := get(ctx, server, manifest)
	if err != nil {
		return nil, err
	}
	played.Generations[0], played.ResourceVersions[0] = live.GetGeneration(), live.GetResourceVersion()
	for number := range applies {
		if err := way.apply(ctx, manifest.DeepCopy()); err != nil {
			message := strings.TrimSpace(err.Error())
			played.Refusals[number] = &message
		}
		if live, err = get(ctx, server, manifest); err != nil {
			return nil, err
		}
		played.Generations[number+1], played.ResourceVersions[number+1] = live.GetGeneration(), live.GetResourceVersion()
	}
	played.Differences = way.differences(ctx, manifest.DeepCopy(), live.DeepCopy())
	if played.Differences == nil {
		played.Differences = map[string]string{}
	}
	played.Object = live.Object
	return played, nil
}

func get(ctx context.Context, server client.Client, of *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(of.GroupVersionKind())
	if err := server.Get(ctx, client.ObjectKeyFromObject(of), live); err != nil {
		return nil, fmt.Errorf("cannot read the stored object: %w", err)
	}
	return live, nil
}

// mergePatch returns the JSON merge patch that turns an object into another, or the error of comparing them.
func mergePatch(from, to []byte) string {
	patch, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil {
		return err.Error()
	}
	return string(patch)
}
