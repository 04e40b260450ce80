package strategicpatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// reasonUnknownSchema means that an instance does not have a schema. Another one may have it.
const reasonUnknownSchema Reason = "UnknownSchema"

// largest is the limit of the documents of one request in bytes. The module refuses requests that are a little longer.
const largest = 64 * 1024 * 1024

// resultPrefix is the start of an answer with a result.
var resultPrefix = []byte(`{"jsonrpc":"2.0","id":1,"result":`)

// request returns a request on one line. The names need no escaping.
func request(method string, params []byte) []byte {
	if params == nil {
		params = []byte("{}")
	}
	line := make([]byte, 0, len(params)+len(method)+64)
	line = append(line, `{"jsonrpc":"2.0","id":1,"method":"`...)
	line = append(line, method...)
	line = append(line, `","params":`...)
	line = append(line, params...)
	return append(line, "}\n"...)
}

// answer returns the result in an answer, or its error.
func answer(line []byte) (json.RawMessage, error) {
	if rest, found := bytes.CutPrefix(line, resultPrefix); found {
		if result, found := bytes.CutSuffix(rest, []byte("}\n")); found {
			return result, nil
		}
	}
	var read struct {
		Error *struct {
			Message string `json:"message"`
			Data    struct {
				Reason   Reason   `json:"reason"`
				Document Document `json:"document"`
				Path     string   `json:"path"`
			} `json:"data"`
		} `json:"error"`
	}
	if err := json.Unmarshal(line, &read); err != nil {
		return nil, &ModuleError{Err: fmt.Errorf("its answer is not JSON: %w", err)}
	}
	fault := read.Error
	if fault == nil {
		return nil, &ModuleError{Err: errors.New("its answer has neither a result nor an error")}
	}
	return nil, &Error{Reason: fault.Data.Reason, Document: fault.Data.Document, Path: fault.Data.Path, Message: fault.Message}
}

// parameter is a document and its role.
type parameter struct {
	role     Document
	document []byte
}

// withDocuments returns parameters with documents, each on one line. It checks the documents, since the line would otherwise
// mean something else.
func withDocuments(params []byte, documents ...parameter) ([]byte, error) {
	size := 0
	for _, document := range documents {
		size += len(document.document)
	}
	if err := checkSize(size); err != nil {
		return nil, err
	}
	line := bytes.NewBuffer(make([]byte, 0, len(params)+size+64))
	line.WriteByte('{')
	line.Write(params)
	for _, document := range documents {
		fmt.Fprintf(line, `,"%s":`, document.role)
		if document.document == nil {
			line.WriteString("null")
		} else if err := compact(line, document.document); err != nil {
			message := fmt.Sprintf("cannot read the %s document as JSON: %v", document.role, err)
			return nil, &Error{Reason: ReasonUnreadable, Document: document.role, Message: message}
		}
	}
	line.WriteByte('}')
	return line.Bytes(), nil
}

func checkSize(size int) error {
	if size <= largest {
		return nil
	}
	return &Error{Reason: ReasonTooLarge, Message: fmt.Sprintf("the documents have %d bytes; the limit is %d", size, largest)}
}

func compact(line *bytes.Buffer, document []byte) error {
	if !utf8.Valid(document) {
		return errors.New("it is not UTF-8")
	}
	return json.Compact(line, document)
}
