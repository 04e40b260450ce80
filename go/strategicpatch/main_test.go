package strategicpatch_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/kube-unions/kube-unions/go/strategicpatch"
	"github.com/tetratelabs/wazero"
)

// repository is the folder of the repository.
const repository = "../.."

var wasm []byte

// compiled keeps the compiled module for all tests.
var compiled = strategicpatch.WithCompilationCache(wazero.NewCompilationCache())

func TestMain(m *testing.M) {
	path := os.Getenv("STRATEGIC_MERGE_PATCH_WASM")
	if path == "" {
		path = filepath.Join(repository, "target/wasm32-wasip1/wasm/strategic-merge-patch.wasm")
	}
	var err error
	if wasm, err = os.ReadFile(path); err != nil {
		fmt.Fprintf(os.Stderr, "no module: %v: run `make wasm-patch`, or set STRATEGIC_MERGE_PATCH_WASM to its path\n", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// newEngine returns an engine that the end of the test closes.
func newEngine(t testing.TB, options ...strategicpatch.Option) *strategicpatch.Engine {
	t.Helper()
	engine, err := strategicpatch.New(context.Background(), wasm, append(options, compiled)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return engine
}

// newSchema returns the schema of a JSON schema.
func newSchema(t testing.TB, engine *strategicpatch.Engine, document string) *strategicpatch.Schema {
	t.Helper()
	schema, err := engine.Schema(context.Background(), strategicpatch.JSONSchema{Document: []byte(document), Name: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// keyed is the schema of an object whose items merge by name.
const keyed = `{"properties": {"items": {"type": "array", "x-kubernetes-patch-strategy": "merge",
	"x-kubernetes-patch-merge-key": "name", "items": {"type": "object"}}}}`

// list returns an object with so many items.
func list(count int, value string) []byte {
	var text bytes.Buffer
	text.WriteString(`{"items":[`)
	for i := range count {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `{"name":"item-%d","value":"%s"}`, i, value)
	}
	text.WriteString(`]}`)
	return text.Bytes()
}

// wantResult fails the test unless the operation returned the text.
func wantResult(t *testing.T, want string, got []byte, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("error: %v", err)
	}
	if string(got) != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}
