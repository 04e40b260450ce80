package strategicpatch

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// protocol is the version of the module's protocol that this package speaks.
const protocol = 1

const (
	page = 64 * 1024
	// defaultMemory is the memory limit of an instance.
	defaultMemory = 256 * 1024 * 1024
	// leastMemory is the least memory limit: the module starts with more than one mebibyte.
	leastMemory = 4 * 1024 * 1024
	// idleShare is the part of the memory limit that an instance may keep between calls. Memory of WebAssembly never shrinks.
	idleShare = 4
)

// Engine runs the module. It is safe for concurrent use.
type Engine struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	// ctx ends with Close, and with it every instance.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// slots has one entry for each instance that is in use or ending.
	slots chan struct{}
	// keep is the most memory of an idle instance.
	keep uint32
	// interrupts is true if the module can be stopped while it runs.
	interrupts bool
	mu         sync.Mutex
	idle       []*instance
	closed     bool
	ending     sync.WaitGroup
	names      atomic.Uint64
}

type settings struct {
	instances int
	memory    uint32
	cache     wazero.CompilationCache
	interrupt bool
}

// Option changes a setting of an [Engine].
type Option func(*settings)

// WithInstances limits the number of calls that run at the same time; more calls wait. Each needs an instance of the module.
// The default is GOMAXPROCS.
func WithInstances(most int) Option {
	return func(s *settings) { s.instances = max(most, 1) }
}

// WithMemoryLimit limits the memory of each instance in bytes, rounded down to pages of 64 KiB. A call that needs more fails
// with a [ModuleError]. The default is 256 MiB, and less than 4 MiB counts as 4 MiB.
func WithMemoryLimit(bytes uint32) Option {
	return func(s *settings) { s.memory = max(bytes, leastMemory) }
}

// WithInterruption stops the module when the context of a call ends. Use it if the documents come from somebody who may want to
// keep the program busy. The module then checks in every loop, and calls take about three times as long.
//
// Without it, a call whose context ends returns at once, too, but the module runs to the end of the request, and meanwhile counts
// as one of the instances. Its time grows in proportion to the documents, which are limited to 64 MiB.
func WithInterruption() Option {
	return func(s *settings) { s.interrupt = true }
}

// WithCompilationCache keeps the compiled module, for other engines or, in a folder, for other processes. The caller closes the
// cache after the engines.
func WithCompilationCache(cache wazero.CompilationCache) Option {
	return func(s *settings) { s.cache = cache }
}

// New compiles the module and checks its version. The module is the file strategic-merge-patch.wasm, which `make wasm-patch` builds. Close
// the engine to free its memory.
func New(ctx context.Context, wasm []byte, options ...Option) (*Engine, error) {
	with := settings{instances: runtime.GOMAXPROCS(0), memory: defaultMemory}
	for _, option := range options {
		option(&with)
	}
	config := wazero.NewRuntimeConfig().WithCloseOnContextDone(with.interrupt).WithMemoryLimitPages(with.memory / page)
	if with.cache != nil {
		config = config.WithCompilationCache(with.cache)
	}
	engine := &Engine{
		runtime:    wazero.NewRuntimeWithConfig(ctx, config),
		slots:      make(chan struct{}, with.instances),
		keep:       with.memory / idleShare,
		interrupts: with.interrupt,
	}
	// The engine outlives the call, but keeps the values of its context.
	engine.ctx, engine.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if err := engine.load(ctx, wasm); err != nil {
		_ = engine.Close(ctx)
		return nil, err
	}
	return engine, nil
}

func (e *Engine) load(ctx context.Context, wasm []byte) error {
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, e.runtime); err != nil {
		return fmt.Errorf("strategicpatch: cannot provide WASI: %w", err)
	}
	compiled, err := e.runtime.CompileModule(ctx, wasm)
	if err != nil {
		return fmt.Errorf("strategicpatch: cannot compile the module: %w", err)
	}
	e.compiled = compiled
	var is struct {
		Protocol int    `json:"protocol"`
		Version  string `json:"version"`
	}
	result, err := e.call(ctx, request("version", nil))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(result, &is); err != nil {
		return fmt.Errorf("strategicpatch: cannot read the version of the module: %w", err)
	}
	if is.Protocol != protocol {
		return fmt.Errorf("strategicpatch: the module %s speaks version %d of the protocol, and this package version %d: "+
			"use the module of the release of this package", is.Version, is.Protocol, protocol)
	}
	return nil
}

// Close ends all instances and frees their memory. Calls in progress fail with [ErrClosed]. Without [WithInterruption], Close waits
// until their instances have finished.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	e.idle = nil
	e.mu.Unlock()
	e.cancel(ErrClosed)
	e.ending.Wait()
	return e.runtime.Close(ctx)
}

// call runs one request in an instance of its own and returns the result.
func (e *Engine) call(ctx context.Context, requests ...[]byte) (json.RawMessage, error) {
	instance, err := e.acquire(ctx)
	if err != nil {
		return nil, err
	}
	var result json.RawMessage
	for _, request := range requests {
		var line []byte
		if err = instance.send(request); err == nil {
			line, err = instance.receive(ctx)
		}
		if err != nil {
			e.abandon(ctx, instance)
			if e.ctx.Err() != nil {
				return nil, ErrClosed
			}
			return nil, err
		}
		if result, err = answer(line); err != nil {
			break
		}
	}
	e.release(instance)
	return result, err
}

// abandon gives an instance back that may still run.
func (e *Engine) abandon(ctx context.Context, instance *instance) {
	if e.interrupts || ctx.Err() == nil || e.ctx.Err() != nil {
		e.drop(instance)
		return
	}
	go func() {
		if _, err := instance.receive(context.Background()); err != nil {
			e.drop(instance)
			return
		}
		e.release(instance)
	}()
}

// acquire returns an idle instance, or starts one. It waits for a slot.
func (e *Engine) acquire(ctx context.Context) (*instance, error) {
	// If both are possible, select chooses at random.
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	select {
	case e.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-e.ctx.Done():
		return nil, ErrClosed
	}
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		<-e.slots
		return nil, ErrClosed
	}
	if last := len(e.idle) - 1; last >= 0 {
		instance := e.idle[last]
		e.idle[last] = nil
		e.idle = e.idle[:last]
		e.mu.Unlock()
		return instance, nil
	}
	// Close waits for this instance from now on.
	e.ending.Add(1)
	e.mu.Unlock()
	instance, err := start(e.ctx, e.runtime, e.compiled)
	if err != nil {
		e.ending.Done()
		<-e.slots
		if e.ctx.Err() != nil {
			return nil, ErrClosed
		}
		return nil, err
	}
	go func() {
		<-instance.ended
		e.ending.Done()
	}()
	return instance, nil
}

// release gives an instance back that waits for a request.
func (e *Engine) release(instance *instance) {
	if instance.memory > e.keep {
		e.drop(instance)
		return
	}
	e.mu.Lock()
	if !e.closed {
		e.idle = append(e.idle, instance)
	}
	e.mu.Unlock()
	<-e.slots
}

// drop ends an instance. Its slot is free when its memory is.
func (e *Engine) drop(instance *instance) {
	instance.stop()
	go func() {
		<-instance.ended
		<-e.slots
	}()
}
