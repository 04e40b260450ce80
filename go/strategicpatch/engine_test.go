package strategicpatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kube-unions/kube-unions/go/strategicpatch"
)

func TestConcurrentCallsShareTheInstances(t *testing.T) {
	const callers, calls = 8, 50
	for _, instances := range []int{1, 3, callers} {
		t.Run(fmt.Sprint(instances), func(t *testing.T) {
			engine := newEngine(t, strategicpatch.WithInstances(instances))
			schema := newSchema(t, engine, keyed)
			var group sync.WaitGroup
			for caller := range callers {
				group.Go(func() {
					for call := range calls {
						own := fmt.Sprintf("%d-%d", caller, call)
						patched, err := schema.Apply(context.Background(), []byte(`{"items":[{"name":"a"}]}`),
							fmt.Appendf(nil, `{"items": [{"name": "a", "value": "%s"}]}`, own))
						if want := fmt.Sprintf(`{"items":[{"name":"a","value":"%s"}]}`, own); err != nil || string(patched) != want {
							t.Errorf("got %s and %v, want %s", patched, err, want)
						}
					}
				})
			}
			group.Wait()
		})
	}
}

func TestMoreSchemasThanAnInstanceKeepsAreReadAgain(t *testing.T) {
	engine := newEngine(t, strategicpatch.WithInstances(1))
	var schemas []*strategicpatch.Schema
	for i := range 100 {
		key := fmt.Sprintf("key%d", i)
		schemas = append(schemas, newSchema(t, engine, strings.ReplaceAll(keyed, `"name"`, `"`+key+`"`)))
	}
	for range 2 {
		for i, schema := range schemas {
			item := fmt.Sprintf(`{"items":[{"key%d":1}]}`, i)
			patched, err := schema.Apply(context.Background(), []byte(item), []byte(item))
			wantResult(t, item, patched, err)
		}
	}
}

func TestACancelledCallReturnsAndTheNextOneWorks(t *testing.T) {
	t.Run("the module runs on", func(t *testing.T) {
		cancelCalls(t, newEngine(t, strategicpatch.WithInstances(1)))
	})
	t.Run("the module is interrupted", func(t *testing.T) {
		cancelCalls(t, newEngine(t, strategicpatch.WithInstances(1), strategicpatch.WithInterruption()))
	})
}

func cancelCalls(t *testing.T, engine *strategicpatch.Engine) {
	schema := newSchema(t, engine, keyed)
	large, changed := list(100_000, "old"), list(100_000, "new")
	reason := errors.New("the caller has no more time")

	cancelled, cancel := context.WithCancelCause(context.Background())
	cancel(reason)
	if _, err := schema.CreateTwoWay(cancelled, large, changed); !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}

	// The call holds the only instance. A call that waits for it is cancelled, and then the call itself.
	running, stop := context.WithCancelCause(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		for {
			// A call that ends before it is cancelled is repeated.
			if _, err := schema.CreateTwoWay(running, large, changed); err != nil {
				if !errors.Is(err, reason) {
					t.Errorf("got %v", err)
				}
				return
			}
		}
	})
	for {
		waiting, end := context.WithTimeout(context.Background(), time.Millisecond)
		_, err := schema.Apply(waiting, []byte(`{}`), []byte(`{}`))
		end()
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	stop(reason)
	group.Wait()

	patched, err := schema.Apply(context.Background(), []byte(`{"a":1}`), []byte(`{"b":2}`))
	wantResult(t, `{"a":1,"b":2}`, patched, err)
}

func TestACallThatNeedsTooMuchMemoryFailsAndTheNextOneWorks(t *testing.T) {
	engine := newEngine(t, strategicpatch.WithInstances(1), strategicpatch.WithMemoryLimit(8<<20))
	schema := newSchema(t, engine, keyed)
	for range 3 {
		_, err := schema.CreateTwoWay(context.Background(), list(100_000, "old"), list(100_000, "new"))
		var ended *strategicpatch.ModuleError
		if !errors.As(err, &ended) || !strings.Contains(ended.Stderr, "memory allocation of") {
			t.Fatalf("got %v", err)
		}
		patched, err := schema.Apply(context.Background(), []byte(`{"a":1}`), []byte(`{"b":2}`))
		wantResult(t, `{"a":1,"b":2}`, patched, err)
	}
}

func TestDocumentsThatAreTooLargeAreRefused(t *testing.T) {
	schema := newSchema(t, newEngine(t), `{}`)
	long := []byte(`{"a":"` + strings.Repeat("x", 70<<20) + `"}`)
	_, err := schema.Apply(context.Background(), long, []byte(`{}`))
	if want := "the documents have 73400330 bytes; the limit is 67108864"; strategicpatch.ReasonFor(err) != strategicpatch.ReasonTooLarge || err.Error() != want {
		t.Fatalf("got %v, want %s", err, want)
	}
	patched, err := schema.Apply(context.Background(), []byte(`{"a":1}`), []byte(`{"b":2}`))
	wantResult(t, `{"a":1,"b":2}`, patched, err)
}

func TestCloseEndsCallsInProgress(t *testing.T) {
	t.Run("the module runs on", func(t *testing.T) { closeAmidCalls(t) })
	t.Run("the module is interrupted", func(t *testing.T) { closeAmidCalls(t, strategicpatch.WithInterruption()) })
}

func closeAmidCalls(t *testing.T, options ...strategicpatch.Option) {
	ctx := context.Background()
	engine, err := strategicpatch.New(ctx, wasm, append(options, strategicpatch.WithInstances(2), compiled)...)
	if err != nil {
		t.Fatal(err)
	}
	schema := newSchema(t, engine, keyed)
	large, changed := list(10_000, "old"), list(10_000, "new")
	var group sync.WaitGroup
	started := make(chan struct{}, 4)
	for range 4 {
		group.Go(func() {
			for first := true; ; first = false {
				if _, err := schema.CreateTwoWay(ctx, large, changed); err != nil {
					if !errors.Is(err, strategicpatch.ErrClosed) {
						t.Errorf("got %v", err)
					}
					return
				}
				if first {
					started <- struct{}{}
				}
			}
		})
	}
	for range 4 {
		<-started
	}
	if err := engine.Close(ctx); err != nil {
		t.Error(err)
	}
	group.Wait()
	if _, err := schema.Apply(ctx, nil, nil); !errors.Is(err, strategicpatch.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if err := engine.Close(ctx); err != nil {
		t.Error(err)
	}
}

func TestTheEngineOutlivesTheContextThatMadeIt(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	engine, err := strategicpatch.New(ctx, wasm, compiled)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	patched, err := newSchema(t, engine, `{}`).Apply(context.Background(), nil, []byte(`{"a":1}`))
	wantResult(t, `{"a":1}`, patched, err)
	if err := engine.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestAnotherModuleIsRefused(t *testing.T) {
	// Modules in the text format: (module), and (module (func (export "_start"))) with a memory.
	empty := []byte("\x00asm\x01\x00\x00\x00")
	silent := []byte("\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" + "\x05\x03\x01\x00\x01" +
		"\x07\x0a\x01\x06_start\x00\x00" + "\x0a\x04\x01\x02\x00\x0b")
	for name, row := range map[string]struct {
		module  []byte
		message string
	}{
		"not a module": {[]byte("hello"), "strategicpatch: cannot compile the module: "},
		"no module":    {nil, "strategicpatch: cannot compile the module: "},
		"half":         {wasm[:len(wasm)/2], "strategicpatch: cannot compile the module: "},
		"no command":   {empty, "strategicpatch: the module ended: it is not a WASI command: it does not export _start"},
		"no answer":    {silent, "strategicpatch: the module ended: unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			engine, err := strategicpatch.New(context.Background(), row.module)
			if err == nil || engine != nil || !strings.HasPrefix(err.Error(), row.message) {
				t.Errorf("got %v, want %s", err, row.message)
			}
		})
	}
}
