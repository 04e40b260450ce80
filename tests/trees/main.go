// Command trees runs `kube-unions generate` on the Go types and CRDs of released modules, and prints findings, time and memory.
//
//	trees PROGRAM [REPORTS]
//
// The go command downloads the modules and verifies their checksums. With REPORTS, it writes the reports to
// that folder, one a module.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"text/tabwriter"
	"time"
)

// tree is the Go types and CRDs of a module. Its folders are relative to that of the module.
type tree struct {
	name        string
	module      string
	types       string
	definitions string
}

// trees have pinned versions, so that two runs can be compared.
var trees = []tree{
	{"openshift", "github.com/openshift/api@v0.0.0-20260813212709-d4bb0b443cb8", ".", "payload-manifests/crds"},
	{"envoy-gateway", "github.com/envoyproxy/gateway@v1.9.1", "api", "charts/gateway-helm/charts/crds/crds/generated"},
	{"cert-manager", "github.com/cert-manager/cert-manager@v1.21.2", "pkg/apis", "deploy/crds"},
	{"gateway-api", "sigs.k8s.io/gateway-api@v1.5.0", "apis", "config/crd/experimental"},
}

// report is the report of generate.
type report struct {
	Kinds []struct {
		Unions []json.RawMessage `json:"unions"`
	} `json:"kinds"`
	Findings []struct {
		Severity string `json:"severity"`
	} `json:"findings"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "trees:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 || len(arguments) > 2 {
		return fmt.Errorf("usage: trees PROGRAM [REPORTS]")
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "TREE\tKINDS\tUNIONS\tERRORS\tWARNINGS\tNOTES\tTIME\tPEAK MEMORY")
	for _, tree := range trees {
		folder, err := download(tree.module)
		if err != nil {
			return fmt.Errorf("%s: %w", tree.module, err)
		}
		command := exec.Command(arguments[0], "generate", "--check", "-o", "json",
			"--go", filepath.Join(folder, tree.types), filepath.Join(folder, tree.definitions))
		command.Stderr = os.Stderr
		start := time.Now()
		output, err := command.Output()
		took := time.Since(start)
		// 1 means that a CRD would change, or that a union was left out.
		if state := command.ProcessState; state == nil || state.ExitCode() > 1 {
			return fmt.Errorf("%s: %w", tree.name, err)
		}
		var made report
		if err := json.Unmarshal(output, &made); err != nil {
			return fmt.Errorf("%s: %w", tree.name, err)
		}
		if len(arguments) == 2 {
			if err := os.WriteFile(filepath.Join(arguments[1], tree.name+".json"), output, 0o644); err != nil {
				return err
			}
		}
		unions, severities := 0, map[string]int{}
		for _, kind := range made.Kinds {
			unions += len(kind.Unions)
		}
		for _, finding := range made.Findings {
			severities[finding.Severity]++
		}
		memory := "?"
		if usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
			memory = fmt.Sprintf("%d MiB", usage.Maxrss/1024)
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n", tree.name, len(made.Kinds), unions,
			severities["error"], severities["warning"], severities["note"], took.Round(time.Millisecond), memory)
	}
	return table.Flush()
}

// download returns the folder of a module.
func download(module string) (string, error) {
	output, err := exec.Command("go", "mod", "download", "-json", module).Output()
	var found struct{ Dir, Error string }
	if parsed := json.Unmarshal(output, &found); parsed == nil && found.Error != "" {
		return "", fmt.Errorf("%s", found.Error)
	}
	return found.Dir, err
}
