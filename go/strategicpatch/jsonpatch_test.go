package strategicpatch_test

import (
	"strings"
	"testing"

	"github.com/kube-unions/kube-unions/go/strategicpatch"
)

func TestJSONPatch(t *testing.T) {
	for _, row := range []struct{ original, modified, want string }{
		{`{}`, `{}`, `[]`},
		{`{"metadata":{"resourceVersion":"7"},"a":1}`, `{"metadata":{"resourceVersion":"7"},"a":1}`,
			`[{"op":"replace","path":"/metadata/resourceVersion","value":"7"}]`},
		{`{"metadata":{"resourceVersion":"7","labels":{"a/b~c":"x"}}}`, `{"metadata":{"resourceVersion":"7","labels":{"a/b~c":"y"}}}`,
			`[{"op":"replace","path":"/metadata/resourceVersion","value":"7"},{"op":"replace","path":"/metadata/labels/a~1b~0c","value":"y"}]`},
		{`{"b":1,"a":{"c":null}}`, `{"d":null,"c":[1]}`,
			`[{"op":"remove","path":"/a"},{"op":"remove","path":"/b"},{"op":"add","path":"/c","value":[1]},{"op":"add","path":"/d","value":null}]`},
		{`{"l":[{"n":"a","v":1},{"n":"b"}]}`, `{"l":[{"n":"a","v":1.10},{"n":"b","v":12345678901234567890}]}`,
			`[{"op":"replace","path":"/l/0/v","value":1.10},{"op":"add","path":"/l/1/v","value":12345678901234567890}]`},
		{`{"l":[1,2,3]}`, `{"l":[1,3]}`, `[{"op":"replace","path":"/l","value":[1,3]}]`},
		{`{"l":[1]}`, `{"l":{"a":"<&>"}}`, `[{"op":"replace","path":"/l","value":{"a":"<&>"}}]`},
		{`{"a": {"b" : 1}}`, `{"a":{"b":1}}`, `[]`},
		{`{"a":"\u003c\/"}`, `{"a":"</"}`, `[]`},
		{`{"a":1}`, `{"a":null}`, `[{"op":"replace","path":"/a","value":null}]`},
	} {
		got, err := strategicpatch.JSONPatch([]byte(row.original), []byte(row.modified))
		wantResult(t, row.want, got, err)
	}
}

func TestJSONPatchReplacesVeryDeepValuesAsAWhole(t *testing.T) {
	deep := func(value string) []byte {
		return []byte(strings.Repeat(`{"a":`, 5_000) + value + strings.Repeat(`}`, 5_000))
	}
	got, err := strategicpatch.JSONPatch(deep("1"), deep("2"))
	want := `[{"op":"replace","path":"` + strings.Repeat("/a", 64) + `","value":` +
		strings.Repeat(`{"a":`, 5_000-64) + "2" + strings.Repeat(`}`, 5_000-64) + `}]`
	wantResult(t, want, got, err)
}

func TestJSONPatchOfADocumentThatIsNotJSON(t *testing.T) {
	for _, row := range [][2]string{{`{`, `{}`}, {`{}`, `{`}, {``, `{}`}} {
		if patch, err := strategicpatch.JSONPatch([]byte(row[0]), []byte(row[1])); err == nil {
			t.Errorf("%q: got %s", row, patch)
		}
	}
}
