package main

import (
	"context"
	"errors"
	"regexp"

	"github.com/argoproj/argo-cd/gitops-engine/v3/pkg/diff"
	"github.com/argoproj/argo-cd/gitops-engine/v3/pkg/utils/kube"
	"github.com/argoproj/argo-cd/gitops-engine/v3/pkg/utils/tracing"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/csaupgrade"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// argoManager is the field manager of Argo CD, for both sorts of apply.
const argoManager = "argocd-controller"

// ofTemporaryFile is the part of an error of kubectl that has another name each time.
var ofTemporaryFile = regexp.MustCompile(`error when \w+ "[^"]*": `)

// argo is Argo CD's gitops-engine. Its ways to apply share it.
type argo struct {
	resources kube.ResourceOperations
	compared  []diff.Option
	dryRuns   []diff.Option
	cleanups  []func()
}

// argoWay is one of the two sorts of apply.
type argoWay struct {
	*argo
	isServerSide bool
}

func newArgo(config *rest.Config) (*argo, error) {
	kubectl := &kube.KubectlCmd{Log: logr.Discard(), Tracer: tracing.NopTracer{}}
	resources, closeResources, err := kubectl.ManageResources(config)
	if err != nil {
		return nil, err
	}
	dryRuns, closeDryRuns, err := kubectl.ManageServerSideDiffDryRuns(config)
	if err != nil {
		closeResources()
		return nil, err
	}
	engine := &argo{resources: resources, cleanups: []func(){closeResources, closeDryRuns}}
	_, parser, err := kubectl.LoadOpenAPISchema(config)
	if err != nil {
		engine.close()
		return nil, err
	}
	engine.compared = []diff.Option{diff.WithLogr(logr.Discard()), diff.WithManager(argoManager), diff.WithGVKParser(parser)}
	engine.dryRuns = []diff.Option{
		diff.WithServerSideDiff(true), diff.WithServerSideDryRunner(diff.NewK8sServerSideDryRunner(dryRuns)),
	}
	return engine, nil
}

func (a *argo) close() {
	for _, cleanup := range a.cleanups {
		cleanup()
	}
}

// clientSide is the default of Argo CD.
func (a *argo) clientSide() way { return argoWay{a, false} }

// serverSide is the sync option ServerSideApply=true.
func (a *argo) serverSide() way { return argoWay{a, true} }

func (w argoWay) name() string {
	if w.isServerSide {
		return "argo-server-side"
	}
	return "argo-client-side"
}

func (w argoWay) apply(ctx context.Context, manifest *unstructured.Unstructured) error {
	_, err := w.resources.ApplyResource(ctx, manifest, cmdutil.DryRunNone, false, true, w.isServerSide, argoManager)
	if err != nil {
		return errors.New(ofTemporaryFile.ReplaceAllString(err.Error(), ""))
	}
	return nil
}

// migrate takes over the fields of `kubectl apply` before a server-side apply, as Argo CD does with its default ClientSideApplyMigration.
func (w argoWay) migrate(ctx context.Context, server client.Client, live *unstructured.Unstructured) error {
	if !w.isServerSide {
		return nil
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New("kubectl-client-side-apply"), argoManager)
	if err != nil || patch == nil {
		return err
	}
	return server.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch))
}

func (w argoWay) differences(ctx context.Context, manifest, live *unstructured.Unstructured) map[string]string {
	found := map[string]string{}
	compare := func(name string, more ...diff.Option) {
		options := append(append([]diff.Option{}, w.compared...), more...)
		result, err := diff.Diff(ctx, manifest.DeepCopy(), live.DeepCopy(), options...)
		if err != nil {
			found[name] = err.Error()
		} else if result.Modified {
			found[name] = mergePatch(result.NormalizedLive, result.PredictedLive)
		}
	}
	// Without the annotation of client-side apply, this is a two-way diff.
	compare("three-way")
	if w.isServerSide {
		compare("server-side", w.dryRuns...)
		// The sync option IncludeMutationWebhook=true.
		compare("server-side with mutations", append(w.dryRuns, diff.WithIgnoreMutationWebhook(false))...)
	}
	return found
}
