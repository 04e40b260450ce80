// Command differential answers requests, one JSON object a line, with what k8s.io/apimachinery's strategicpatch and
// managedfields make of them. A request for a time repeats its work and tells the best round.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

type request struct {
	Op        string          `json:"op"`
	Schema    map[string]any  `json:"schema"`
	Original  json.RawMessage `json:"original"`
	Patch     json.RawMessage `json:"patch"`
	Modified  json.RawMessage `json:"modified"`
	Current   json.RawMessage `json:"current"`
	Overwrite bool            `json:"overwrite"`
	Manager   string          `json:"manager"`
	// Rounds asks for the least processor time of so many instead of the result.
	Rounds int `json:"rounds"`
	// Runs asks for everything that comes of so many: the package goes through maps in the order in which Go does, another
	// one each time, and now and then the result depends on it.
	Runs int `json:"runs"`
}

type answer struct {
	Result      json.RawMessage `json:"result,omitempty"`
	Error       string          `json:"error,omitempty"`
	Panic       string          `json:"panic,omitempty"`
	Nanoseconds int64           `json:"nanoseconds,omitempty"`
	Outcomes    []answer        `json:"outcomes,omitempty"`
	Conflicts   []conflict      `json:"conflicts,omitempty"`
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	encoder := json.NewEncoder(out)
	var schema lookup
	for {
		line, err := in.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			break
		}
		var asked request
		if err := json.Unmarshal(line, &asked); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if asked.Op == "schema" {
			schema = lookup{asked.Schema}
			fieldManager = sync.OnceValues(func() (*managedfields.FieldManager, error) { return newFieldManager(asked.Schema) })
			continue
		}
		if err := encoder.Encode(serve(asked, schema)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if in.Buffered() == 0 {
			out.Flush()
		}
	}
	out.Flush()
}

func serve(asked request, schema lookup) answer {
	if asked.Runs > 0 {
		return answer{Outcomes: outcomes(asked, schema)}
	}
	if asked.Rounds == 0 {
		return once(asked, schema)
	}
	best := time.Duration(1<<63 - 1)
	for range asked.Rounds {
		start := processorTime()
		if got := once(asked, schema); got.Error != "" || got.Panic != "" {
			return got
		}
		best = min(best, processorTime()-start)
	}
	return answer{Nanoseconds: best.Nanoseconds()}
}

// processorTime gives the time that all threads of the process have run.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// outcomes gives each outcome once. All errors are one, and all panics.
func outcomes(asked request, schema lookup) []answer {
	seen := make(map[string]answer)
	for range asked.Runs {
		got := once(asked, schema)
		switch {
		case got.Panic != "":
			seen["panic"] = got
		case got.Error != "":
			seen["error"] = got
		default:
			seen["result "+string(got.Result)] = got
		}
	}
	return slices.Collect(maps.Values(seen))
}

func once(asked request, schema lookup) (got answer) {
	defer func() {
		if cause := recover(); cause != nil {
			got = answer{Panic: fmt.Sprint(cause)}
		}
	}()
	var result []byte
	var err error
	switch asked.Op {
	case "apply":
		result, err = strategicpatch.StrategicMergePatchUsingLookupPatchMeta(asked.Original, asked.Patch, schema)
	case "two-way":
		result, err = strategicpatch.CreateTwoWayMergePatchUsingLookupPatchMeta(asked.Original, asked.Modified, schema)
	case "three-way":
		result, err = strategicpatch.CreateThreeWayMergePatch(
			asked.Original, asked.Modified, asked.Current, schema, asked.Overwrite,
			mergepatch.RequireKeyUnchanged("apiVersion"),
			mergepatch.RequireKeyUnchanged("kind"),
			mergepatch.RequireMetadataKeyUnchanged("name"))
	case "server-side-apply", "server-side-update":
		return write(asked)
	default:
		err = fmt.Errorf("unknown op %q", asked.Op)
	}
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Result: result}
}
