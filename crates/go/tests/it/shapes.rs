//! The same union in every notation of Go. Each is derived like the plain one.

use super::{CRD, GO, derive, found, packages};

/// Replacements in a text.
type Edits<'a> = &'a [(&'a str, &'a str)];

struct Shape<'a> {
    name: &'a str,
    go: Edits<'a>,
    crd: Edits<'a>,
    files: &'a [(&'a str, &'a str)],
}

const PLAIN: Shape<'_> = Shape { name: "", go: &[], crd: &[], files: &[] };
const ENUM: &str = "// +kubebuilder:validation:Enum=Cold;Glaze;Bisque\ntype FiringType string";
const SPEC: &str = "type KilnSpec struct {";
const DISCRIMINATOR: &str = "Firing FiringType `json:\"firing\"`";
const IMPORT: &str = "import metav1";

const SHAPES: &[Shape<'_>] = &[
    Shape {
        name: "a pointer for a discriminator",
        go: &[(DISCRIMINATOR, "Firing *FiringType `json:\"firing\"`")],
        ..PLAIN
    },
    Shape {
        name: "an alias for a discriminator",
        go: &[(
            ENUM,
            "type FiringType = Firing\n\n// +kubebuilder:validation:Enum=Cold;Glaze;Bisque\ntype Firing string",
        )],
        ..PLAIN
    },
    Shape {
        name: "constants one by one, one of them a sum, one by a conversion",
        go: &[(
            ENUM,
            "type FiringType string\n\nconst Cold FiringType = \"Cold\"\n\nconst glaze = \"Gla\"\n\nconst Glaze = FiringType(glaze + \"ze\")\n\nconst (\n\tBisque, Unused FiringType = `Bisque`, Cold\n)",
        )],
        ..PLAIN
    },
    Shape {
        name: "constants of another package, by its other name",
        go: &[
            (ENUM, ""),
            (IMPORT, "import other \"example.com/kilns/firing-types\"\nimport metav1"),
            ("FiringType `json", "other.Type `json"),
        ],
        files: &[(
            "firing-types/types.go",
            "package firing\n\ntype Type string\n\nconst (\n\tCold Type = \"Cold\"\n\tGlaze Type = \"Glaze\"\n\tBisque Type = \"Bisque\"\n)\n",
        )],
        ..PLAIN
    },
    Shape {
        name: "a package by its own name, which is not its folder's",
        go: &[
            ("Glaze *Program", "Glaze *firing.Program"),
            (IMPORT, "import \"example.com/kilns/go-firing\"\nimport metav1"),
        ],
        files: &[(
            "go-firing/types.go",
            "package firing\n\ntype Program struct {\n\tDegrees int32 `json:\"degrees\"`\n}\n",
        )],
        ..PLAIN
    },
    Shape {
        name: "an import that joins the file's own names",
        go: &[(ENUM, ""), (IMPORT, "import . \"example.com/kilns/firing\"\nimport metav1")],
        files: &[(
            "firing/types.go",
            "package firing\n\n// +kubebuilder:validation:Enum=Cold;Glaze;Bisque\ntype FiringType string\n",
        )],
        ..PLAIN
    },
    Shape {
        name: "values on the field alone",
        go: &[
            (ENUM, ""),
            (
                DISCRIMINATOR,
                "// +kubebuilder:validation:Enum:=\"Cold\";Glaze;`Bisque`\n\tFiring string `json:\"firing\"`",
            ),
        ],
        ..PLAIN
    },
    Shape { name: "values in the schema alone", go: &[(ENUM, ""), ("FiringType `json", "string `json")], ..PLAIN },
    Shape {
        name: "a marker on the struct beside those of its fields",
        go: &[(
            SPEC,
            "// KilnSpec is both.\n//\n// +union\ntype KilnSpec struct {\n\tOther *Program `json:\"other,omitempty\"`",
        )],
        crd: &[(
            "              glaze:",
            "              other: {type: object, properties: {degrees: {type: integer}}}\n              glaze:",
        )],
        ..PLAIN
    },
    Shape {
        name: "types declared together",
        go: &[(
            ENUM,
            "type (\n\t// +kubebuilder:validation:Enum=Cold;Glaze;Bisque\n\tFiringType string\n\n\tUnused struct{}\n)",
        )],
        ..PLAIN
    },
    Shape {
        name: "a struct without a name",
        go: &[(
            "Spec KilnSpec `json:\"spec,omitempty\"`\n}",
            "Spec struct {\n\t// +unionDiscriminator\n\tFiring FiringType `json:\"firing\"`\n\t// +unionMember\n\tGlaze *Program `json:\"glaze,omitempty\"`\n\t// +unionMember\n\tBisque *Program `json:\"bisque,omitempty\"`\n} `json:\"spec,omitempty\"`\n}",
        )],
        ..PLAIN
    },
    Shape {
        name: "other keys in a tag, and a tag in other quotes",
        go: &[
            (DISCRIMINATOR, "Firing FiringType \"yaml:\\\"no\\\" json:\\\"firing\\\"\""),
            (
                "`json:\"glaze,omitempty\"`",
                "`protobuf:\"bytes,1,opt,name=other\" json:\"glaze,omitempty\" yaml:\"json:\"`",
            ),
        ],
        ..PLAIN
    },
    Shape {
        name: "two fields in one line, without tags",
        go: &[(
            "\tGlaze *Program `json:\"glaze,omitempty\"`\n\t// +unionMember\n\t// +optional\n\tBisque *Program `json:\"bisque,omitempty\"`\n",
            "\tBisque, Glaze *Program\n",
        )],
        crd: &[("glaze:", "Glaze:"), ("bisque:", "Bisque:")],
        ..PLAIN
    },
    Shape {
        name: "other comments between a marker and its field",
        go: &[(
            "\t// +unionMember\n\t// +optional\n\tGlaze",
            "\t// +unionMember\n\t//nolint:lll // long\n\t//go:generate true\n\t/* and */ /* more */\n\tGlaze",
        )],
        ..PLAIN
    },
    Shape {
        name: "text that looks like Go in strings",
        go: &[(
            SPEC,
            "const text = `\n// +unionMember\n// +union\ntype KilnSpec struct {}\n`\n\nconst other = \"// +union\"\n\ntype KilnSpec struct {",
        )],
        ..PLAIN
    },
    Shape {
        name: "a type of the same name in a function",
        go: &[(
            SPEC,
            "func inside() {\n\ttype KilnSpec struct{}\n\ttype Program = int\n\tconst Raku FiringType = \"Raku\"\n}\n\ntype KilnSpec struct {",
        )],
        ..PLAIN
    },
    Shape {
        name: "fields that no object has",
        go: &[(
            SPEC,
            "type KilnSpec struct {\n\tmu chan struct{}\n\tnext func(a, b int) (c error)\n\tany interface{ Do() }\n\t_ [0]func()\n\tbare map[string]any\n",
        )],
        ..PLAIN
    },
    Shape {
        name: "a kind that is another package's type",
        go: &[
            ("type Kiln struct {", "type Kiln impl.Kiln\n\ntype unused struct {"),
            (IMPORT, "import \"example.com/kilns/impl\"\nimport metav1"),
        ],
        files: &[(
            "impl/impl.go",
            "package impl\n\nimport v1 \"example.com/kilns/v1\"\n\ntype Kiln struct {\n\tSpec v1.KilnSpec `json:\"spec\"`\n}\n",
        )],
        ..PLAIN
    },
    Shape {
        name: "the version and the group in a file of their own",
        go: &[("// +groupName=kilns.example.com\npackage v1", "package current")],
        files: &[(
            "v1/doc.go",
            "// +groupName=kilns.example.com\n// +versionName=v1\n\n// Package current is about kilns.\npackage current\n",
        )],
        ..PLAIN
    },
    Shape {
        name: "a list of lists of pointers",
        go: &[("Spec KilnSpec `json:\"spec,omitempty\"`", "Spec [][2]*KilnSpec `json:\"spec,omitempty\"`")],
        crd: &[
            (
                "          spec:\n            type: object\n            required: [firing]\n            properties:\n",
                "          spec:\n            type: array\n            items:\n             type: array\n             items:\n              type: object\n              properties:\n",
            ),
            ("              firing", "               firing"),
            ("              glaze", "               glaze"),
            ("              bisque", "               bisque"),
        ],
        ..PLAIN
    },
    Shape {
        name: "letters of other scripts",
        go: &[
            ("Glaze *Program `json:\"glaze,omitempty\"`", "Glaze *Ölofen `json:\"glaze,omitempty\"`"),
            (SPEC, "type Ölofen struct{ Größe int32 `json:\"größe\"` }\n\ntype KilnSpec struct {"),
        ],
        ..PLAIN
    },
    Shape {
        name: "fields in one line",
        go: &[(
            "type Program struct {\n\tDegrees int32 `json:\"degrees\"`\n}",
            "type Program struct{ Degrees int32 `json:\"degrees\"`; More struct{} }",
        )],
        ..PLAIN
    },
    Shape {
        name: "a field that hides one of an embedded struct",
        go: &[(
            SPEC,
            "type Older struct {\n\t// +unionDiscriminator\n\tFiring string `json:\"firing\"`\n\t// +unionMember\n\tGlaze *string `json:\"glaze\"`\n}\n\ntype KilnSpec struct {\n\tOlder `json:\",inline\"`\n",
        )],
        ..PLAIN
    },
];

#[track_caller]
fn edited(text: &str, edits: Edits<'_>) -> String {
    edits.iter().fold(text.to_owned(), |text, (before, after)| {
        assert!(text.contains(before), "no `{before}` in {text}");
        text.replacen(before, after, 1)
    })
}

#[test]
fn derives_a_union_in_every_notation_of_its_types() {
    let mut failures = Vec::new();
    for shape in SHAPES {
        let go = edited(GO, shape.go);
        let packages = packages(&[&[("v1/kiln.go", &*go)], shape.files].concat());
        let derivation = derive(&packages, &edited(CRD, shape.crd));
        let path = if shape.name.contains("list") { "spec[*][*]" } else { "spec" };
        let members = match shape.crd.first() {
            Some((_, "Glaze:")) => ["Bisque", "Glaze"],
            _ => ["bisque", "glaze"],
        };
        let found = found(&derivation);
        if found != [(path.to_owned(), members.map(str::to_owned).to_vec())] {
            failures.push(format!("{}: found {found:?}\n{:#?}", shape.name, derivation.findings));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
