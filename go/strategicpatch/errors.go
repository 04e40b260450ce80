package strategicpatch

import (
	"errors"
	"fmt"
)

// Reason is the class of an [Error].
type Reason string

const (
	// ReasonInvalidSchema means that a schema is unreadable, lacks the kind, or contradicts itself.
	ReasonInvalidSchema Reason = "InvalidSchema"
	// ReasonUnreadable means that a document is not JSON in UTF-8.
	ReasonUnreadable Reason = "Unreadable"
	// ReasonTooLarge means that the documents of a call, or a schema, are too large in sum.
	ReasonTooLarge Reason = "TooLarge"
	// ReasonNotAnObject means that a document is a list or a scalar.
	ReasonNotAnObject Reason = "NotAnObject"
	// ReasonRefused means that a document breaks a rule of the format or of the schema.
	ReasonRefused Reason = "Refused"
	// ReasonConflict means that both sides of a three-way patch changed a field differently.
	ReasonConflict Reason = "Conflict"
	// ReasonPrecondition means that a three-way patch would change apiVersion, kind or metadata.name.
	ReasonPrecondition Reason = "Precondition"
)

// Document is the part that a document plays in an operation.
type Document string

const (
	// DocumentOriginal is the object to which a patch applies, or from which it starts.
	DocumentOriginal Document = "original"
	// DocumentModified is the object as the user wants it.
	DocumentModified Document = "modified"
	// DocumentCurrent is the object as it is in the cluster.
	DocumentCurrent Document = "current"
	// DocumentPatch is the patch.
	DocumentPatch Document = "patch"
)

// Error is the answer to documents or a schema that have no result. Its message contains no value of a document.
type Error struct {
	// Reason is the class of the error.
	Reason Reason
	// Document is the document at fault, for ReasonUnreadable and ReasonNotAnObject.
	Document Document
	// Path is the place in the object, for ReasonRefused, ReasonConflict and ReasonPrecondition. It is empty for the whole.
	Path string
	// Message includes the path.
	Message string
}

func (e *Error) Error() string { return e.Message }

// ReasonFor returns the reason of the [Error] that err wraps, or "".
func ReasonFor(err error) Reason {
	var found *Error
	if errors.As(err, &found) {
		return found.Reason
	}
	return ""
}

// IsConflict returns true if both sides of a three-way patch changed a field differently.
func IsConflict(err error) bool { return ReasonFor(err) == ReasonConflict }

// ErrClosed is the error of a call on a closed [Engine].
var ErrClosed = errors.New("strategicpatch: the engine is closed")

// ModuleError means that an instance of the module ended: it reached the memory limit or has a defect. The engine drops the
// instance, and the next call gets another one.
type ModuleError struct {
	// Err is the error of the WebAssembly runtime.
	Err error
	// Stderr is the start of the module's standard error.
	Stderr string
}

func (e *ModuleError) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("strategicpatch: the module ended: %v", e.Err)
	}
	return fmt.Sprintf("strategicpatch: the module ended: %v: %s", e.Err, e.Stderr)
}

// Unwrap returns the error of the WebAssembly runtime.
func (e *ModuleError) Unwrap() error { return e.Err }
