//! Sources of a size that nobody writes by hand.

use super::super::Folder;
use super::Report;
use std::fmt::Write as _;

/// Kinds, each in a file of its own.
const KINDS: usize = 400;
/// Structs with a union that each of them has.
const UNIONS: usize = 8;

fn go(kind: usize) -> String {
    let mut text = format!(
        "package v1\n\nimport (\n\tmetav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n\n\t\"example.com/large/common\"\n)\n\n\
         // +kubebuilder:object:root=true\ntype Kind{kind} struct {{\n\tmetav1.TypeMeta `json:\",inline\"`\n\tmetav1.ObjectMeta `json:\"metadata,omitempty\"`\n\n\tSpec Spec{kind} `json:\"spec,omitempty\"`\n}}\n\ntype Spec{kind} struct {{\n"
    );
    for part in 0..UNIONS {
        writeln!(text, "\t// +optional\n\tPart{part} *Part{kind}x{part} `json:\"part{part},omitempty\"`").unwrap();
    }
    text.push_str("}\n");
    for part in 0..UNIONS {
        write!(
            text,
            "\n// +kubebuilder:validation:Enum=None;First;Second\ntype Type{kind}x{part} string\n\nconst (\n\tNone{kind}x{part} Type{kind}x{part} = \"None\"\n\tFirst{kind}x{part} Type{kind}x{part} = \"First\"\n\tSecond{kind}x{part} Type{kind}x{part} = \"Second\"\n)\n\n\
             // Part{kind}x{part} is a union.\ntype Part{kind}x{part} struct {{\n\t// +unionDiscriminator\n\t// +required\n\tType Type{kind}x{part} `json:\"type\"`\n\n\t// +unionMember\n\t// +optional\n\tFirst *common.Detail `json:\"first,omitempty\"`\n\n\t// +unionMember,optional\n\t// +optional\n\tSecond *common.Detail `json:\"second,omitempty\"`\n}}\n"
        )
        .unwrap();
    }
    text
}

fn crd(kind: usize) -> String {
    let mut text = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: kind{kind}s.large.example.com\nspec:\n  group: large.example.com\n  \
         names: {{kind: Kind{kind}, listKind: Kind{kind}List, plural: kind{kind}s, singular: kind{kind}}}\n  scope: Namespaced\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    \
         schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          spec:\n            type: object\n            properties:\n"
    );
    for part in 0..UNIONS {
        let detail = "{type: object, properties: {text: {type: string}}}";
        writeln!(
            text,
            "              part{part}: {{type: object, required: [type], properties: {{type: {{type: string, enum: [None, First, Second]}}, first: {detail}, second: {detail}}}}}"
        )
        .unwrap();
    }
    text
}

#[test]
fn many_kinds_are_read_in_one_run_beside_many_files_without_one() {
    let folder = Folder::new(&[
        ("go.mod", "module example.com/large\n\ngo 1.26\n"),
        ("api/v1/doc.go", "// +groupName=large.example.com\npackage v1\n"),
        ("common/common.go", "package common\n\ntype Detail struct {\n\tText string `json:\"text,omitempty\"`\n}\n"),
    ]);
    for kind in 0..KINDS {
        folder.write(&format!("api/v1/kind{kind}.go"), go(kind));
        folder.write(&format!("crds/kind{kind}.yaml"), crd(kind));
    }
    for file in 0..1_000 {
        let text = format!("package p{}\n\ntype T{file} struct{{}}\n", file % 100);
        folder.write(&format!("generated/p{}/t{file}.go", file % 100), text);
    }
    let report = folder.run(&["generate", "--go", ".", "--check", "-o", "json", "crds"]).code(1).stdout;
    let report = Report::parse(&report);
    assert_eq!((report.kinds.len(), report.unions().count()), (KINDS, KINDS * UNIONS));
}
