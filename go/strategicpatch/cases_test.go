package strategicpatch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/kube-unions/kube-unions/go/strategicpatch"
)

type suite struct {
	Definitions json.RawMessage
	Schemas     map[string]map[string]json.RawMessage
	Rows        []struct {
		Description, Kind, Schema          string
		Original, Patch, Modified, Current json.RawMessage
		Overwrite                          bool
	}
}

type wantedAnswer struct {
	File, Description string
	Result            json.RawMessage
	Error             *struct {
		Message string
		Data    struct{ Reason, Document, Path string }
	}
}

// wantedAnswers returns the answers that the Rust crate gives, in the order of the rows.
func wantedAnswers(t *testing.T) []wantedAnswer {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "tests/cases/strategic/answers.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var all []wantedAnswer
	for line := range bytes.Lines(text) {
		var answer wantedAnswer
		if err := json.Unmarshal(line, &answer); err != nil {
			t.Fatal(err)
		}
		all = append(all, answer)
	}
	return all
}

func TestEveryRowHasTheAnswerOfTheRustCrateByteForByte(t *testing.T) {
	ctx := context.Background()
	engine := newEngine(t)
	wanted := wantedAnswers(t)
	position := 0
	for _, file := range []string{"format.json", "reference.json"} {
		text, err := os.ReadFile(filepath.Join(repository, "tests/cases/strategic", file))
		if err != nil {
			t.Fatal(err)
		}
		var rows suite
		if err := json.Unmarshal(text, &rows); err != nil {
			t.Fatal(err)
		}
		schemas := map[string]*strategicpatch.Schema{}
		for name, document := range rows.Schemas {
			if rows.Definitions != nil {
				document["definitions"] = rows.Definitions
			}
			text, err := json.Marshal(document)
			if err != nil {
				t.Fatal(err)
			}
			schemas[name] = newSchema(t, engine, string(text))
		}
		for _, row := range rows.Rows {
			if position == len(wanted) {
				t.Fatalf("%s: %s: there is no answer", file, row.Description)
			}
			want := wanted[position]
			position++
			if want.File != file || want.Description != row.Description {
				t.Fatalf("%s: %s: the answer is that of %s: %s", file, row.Description, want.File, want.Description)
			}
			schema := schemas[row.Schema]
			var result []byte
			switch row.Kind {
			case "apply":
				result, err = schema.Apply(ctx, row.Original, row.Patch)
			case "create-twoway":
				result, err = schema.CreateTwoWay(ctx, row.Original, row.Modified)
			case "create-threeway":
				conflicts := strategicpatch.Refuse
				if row.Overwrite {
					conflicts = strategicpatch.Overwrite
				}
				result, err = schema.CreateThreeWay(ctx, row.Original, row.Modified, row.Current, conflicts)
			default:
				t.Fatalf("%s: unknown kind %s", row.Description, row.Kind)
			}
			var fault *strategicpatch.Error
			switch {
			case want.Error == nil && (err != nil || !bytes.Equal(result, want.Result)):
				t.Errorf("%s: %s: got %s and error %v, want %s", file, row.Description, result, err, want.Result)
			case want.Error != nil && !errors.As(err, &fault):
				t.Errorf("%s: %s: got %s and error %v, want %s", file, row.Description, result, err, want.Error.Message)
			case want.Error != nil:
				data := want.Error.Data
				want := strategicpatch.Error{Reason: strategicpatch.Reason(data.Reason),
					Document: strategicpatch.Document(data.Document), Path: data.Path, Message: want.Error.Message}
				if *fault != want {
					t.Errorf("%s: %s: got %#v, want %#v", file, row.Description, *fault, want)
				}
			}
		}
	}
	if position != len(wanted) || position < 150 {
		t.Errorf("%d rows have %d answers", position, len(wanted))
	}
}
