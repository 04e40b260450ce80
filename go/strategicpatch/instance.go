package strategicpatch

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"
)

// mostStderr is the number of bytes of standard error that an error shows.
const mostStderr = 1024

// instance is a running module. It answers one request at a time.
type instance struct {
	stream *stream
	// memory is the size of the module's memory after the last answer.
	memory uint32
	// stop ends the module, wherever it is.
	stop context.CancelFunc
	// ended is closed when the module has ended. Then err tells why.
	ended chan struct{}
	err   error
}

// start instantiates the module and runs it until parent ends or stop is called.
func start(parent context.Context, runtime wazero.Runtime, compiled wazero.CompiledModule) (*instance, error) {
	ctx, stop := context.WithCancel(parent)
	streams := &stream{ctx: ctx, requests: make(chan []byte), answers: make(chan written, 1)}
	stderr := &head{}
	config := wazero.NewModuleConfig().
		// Several instances of one module must have no name.
		WithName("").
		WithStartFunctions().
		WithRandSource(rand.Reader).
		WithStdin(streams).
		WithStdout(streams).
		WithStderr(stderr)
	module, err := runtime.InstantiateModule(ctx, compiled, config)
	if err != nil {
		stop()
		return nil, &ModuleError{Err: err}
	}
	streams.memory = module.Memory()
	main := module.ExportedFunction("_start")
	if main == nil {
		stop()
		return nil, errors.Join(&ModuleError{Err: errors.New("it is not a WASI command: it does not export _start")}, module.Close(parent))
	}
	started := &instance{stream: streams, stop: stop, ended: make(chan struct{})}
	go func() {
		defer stop()
		defer close(started.ended)
		_, err := main.Call(ctx)
		var exit *sys.ExitError
		if err == nil || errors.As(err, &exit) && exit.ExitCode() == 0 {
			err = io.ErrUnexpectedEOF
		}
		started.err = &ModuleError{Err: err, Stderr: strings.TrimSpace(stderr.String())}
		// The memory is freed with the module.
		_ = module.Close(context.WithoutCancel(ctx))
	}()
	return started, nil
}

// send sends a request, which ends with a line break. The instance must have answered the previous one.
func (i *instance) send(request []byte) error {
	select {
	case i.stream.requests <- request:
		return nil
	case <-i.ended:
		return i.err
	}
}

// receive returns the answer. If ctx or the instance ends first, the answer may still come.
func (i *instance) receive(ctx context.Context) ([]byte, error) {
	select {
	case answer := <-i.stream.answers:
		i.memory = answer.memory
		return answer.line, nil
	case <-i.ended:
		return nil, i.err
	case <-i.stream.ctx.Done():
		// An instance that ends by itself has ended before its context does.
		select {
		case <-i.ended:
			return nil, i.err
		default:
			return nil, ErrClosed
		}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// written is an answer, and the size of the module's memory when it wrote the answer.
type written struct {
	line   []byte
	memory uint32
}

// stream is the module's standard input and output. Only the module's goroutine reads and writes.
type stream struct {
	ctx      context.Context
	requests chan []byte
	// answers has room for one, so that the module never waits for a caller that gave up.
	answers chan written
	memory  api.Memory
	// rest is the part of the request that the module has not read.
	rest []byte
	// answer is the part of the answer that the module has written.
	answer []byte
}

// Read implements io.Reader. It waits for a request, and returns io.EOF when the instance is stopped.
func (s *stream) Read(buffer []byte) (int, error) {
	for len(s.rest) == 0 {
		select {
		case s.rest = <-s.requests:
		case <-s.ctx.Done():
			return 0, io.EOF
		}
	}
	count := copy(buffer, s.rest)
	s.rest = s.rest[count:]
	return count, nil
}

// Write implements io.Writer. A line break ends an answer.
func (s *stream) Write(part []byte) (int, error) {
	s.answer = append(s.answer, part...)
	if len(part) > 0 && part[len(part)-1] == '\n' {
		select {
		case s.answers <- written{s.answer, s.memory.Size()}:
			s.answer = nil
		case <-s.ctx.Done():
			return 0, io.ErrClosedPipe
		}
	}
	return len(part), nil
}

// head keeps the first bytes of a text.
type head struct{ strings.Builder }

// Write implements io.Writer.
func (h *head) Write(part []byte) (int, error) {
	room := max(mostStderr-h.Len(), 0)
	h.Builder.Write(part[:min(len(part), room)])
	return len(part), nil
}
