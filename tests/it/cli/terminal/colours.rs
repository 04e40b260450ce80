//! Every command on a terminal of 80 and of 200 columns, with and without colours. Colours can be read on the backgrounds of
//! light and of dark themes.

use super::{Folder, shown};
use std::collections::BTreeSet;

/// The lightest background of dark themes and the darkest one of light themes, as red, green and blue. On any other, each colour has
/// more contrast.
const BACKGROUNDS: [(&str, [u8; 3]); 2] = [("Nord", [0x2e, 0x34, 0x40]), ("Gruvbox light", [0xfb, 0xf1, 0xc7])];

/// The contrast that large and bold text needs (WCAG 2.2, success criterion 1.4.3).
const LEGIBLE: f64 = 3.0;

/// The colours of the palette that are the same in every theme.
const FIXED: std::ops::RangeInclusive<u8> = 16..=255;

const OBJECT: &str =
    "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: two, namespace: shop}\nspec: {git: {}, oci: {}}\n";
const SWITCHED: &str = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: old}\nspec: {strategy: {type: Recreate, rolling: {surge: 1}}}\n";

/// Expects an object that the switch is normalised to, with one line that differs.
const SUITE: &str = "apiVersion: test.kube-unions.dev/v1alpha1\nkind: Suite\nfrom: [crd.yaml]\ntests:\n\
    - {name: a switch, old: old.yaml, new: new.yaml, want: {normalized: {object: old.yaml}}}\n";

/// A command for each kind of coloured text, and its exit code.
const COMMANDS: [(&[&str], i32); 15] = [
    (&["--help"], 0),
    (&["lint", "--help"], 0),
    (&["lnt"], 2),
    (&["lint", "--strit", "."], 2),
    (&["explain", "--from", "crd.yaml", "--outpt=json"], 2),
    (&["completion", "bsh"], 2),
    (&["lint", "crd.yaml", "faulty.yaml", "declaration.yaml"], 1),
    (&["explain", "--from", "crd.yaml"], 0),
    (&["audit", "--from", "crd.yaml", "--from", "widget.yaml"], 1),
    (&["normalize", "--from", "crd.yaml", "-f", "new.yaml", "--old", "old.yaml"], 0),
    (&["normalize", "--from", "crd.yaml", "-f", "plain.yaml"], 0),
    (&["generate", "--go", "api", "crd.yaml"], 1),
    (&["check-cel", "crd.yaml"], 0),
    (&["test", "suite.yaml"], 1),
    (&["patch", "apply", "--schema", "crd.yaml", "--original", "widget.yaml", "-p", "kind: Gadget"], 1),
];

fn folder() -> Folder {
    let crd = include_str!("../widgets.yaml");
    let faulty = crd.replace("example.com", "faulty.example.com").replace("oci: OCI", "xci: OCI");
    Folder::new(&[
        ("crd.yaml", crd),
        ("faulty.yaml", &faulty),
        (
            "declaration.yaml",
            "apiVersion: kube-unions.dev/v1alpha1\nkind: UnionDeclaration\nmetadata: {name: a}\n\
             spec: {target: {group: example.com, kind: Widget}, unions: [{path: spec.nowhere, fieldsToDiscriminateBy: {a: A}}]}\n",
        ),
        ("widget.yaml", OBJECT),
        ("new.yaml", SWITCHED),
        ("old.yaml", &SWITCHED.replace("Recreate", "Rolling")),
        ("plain.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"),
        ("suite.yaml", SUITE),
        ("go.mod", "module example.com/m\n"),
        (
            "api/v1/widget.go",
            "// +groupName=example.com\npackage v1\n\n// +kubebuilder:object:root=true\ntype Widget struct {\n\tSpec Spec `json:\"spec\"`\n}\n\n\
             // +unoin\ntype Spec struct {\n\t// +unionMember\n\tGit *string `json:\"git\"`\n}\n",
        ),
    ])
}

/// Removes the commands of a terminal, and returns the parameters of those that set a style (ECMA-48, SGR).
fn parse(shown: &str) -> (String, BTreeSet<String>) {
    let (mut text, mut styles) = (String::new(), BTreeSet::new());
    for line in shown.split_inclusive('\n') {
        let mut parts = line.split("\u{1b}[");
        text += parts.next().unwrap();
        for part in parts {
            let (style, rest) = part.split_once('m').unwrap_or_else(|| panic!("not a style: {part:?}"));
            styles.insert(style.to_owned());
            text += rest;
        }
    }
    (text, styles)
}

#[test]
fn colours_change_no_text_can_be_read_and_are_left_out_where_nobody_wants_them() {
    let folder = folder();
    let mut numbers = BTreeSet::new();
    for columns in [80, 200] {
        for row in COMMANDS {
            let (text, styles) = parse(&shown(&folder, row, columns, true));
            assert!(!styles.is_empty(), "{:?} has no colours: {text}", row.0);
            let (plain, none) = parse(&shown(&folder, row, columns, false));
            let coloured: Vec<_> = none.iter().filter(|style| style.contains("38")).collect();
            assert!(coloured.is_empty(), "{:?} has colours: {coloured:?}", row.0);
            assert_eq!(plain, text, "{:?}", row.0);
            for style in styles.iter().filter(|style| !["0", "", "1", "4"].contains(&style.as_str())) {
                let number = style.strip_prefix("38;5;").unwrap_or_else(|| panic!("{:?}: a style `{style}`", row.0));
                numbers.insert(number.parse::<u8>().unwrap());
            }
        }
    }
    assert_eq!(numbers, BTreeSet::from([65, 100, 196, 244]), "the colours of all commands");
    for number in numbers {
        assert!(FIXED.contains(&number), "the theme sets colour {number}");
        for (theme, background) in BACKGROUNDS {
            let contrast = contrast(rgb(number), background);
            assert!(contrast >= LEGIBLE, "colour {number} on {theme}: {contrast:.2}");
        }
    }
}

#[test]
fn help_fits_a_terminal_of_80_columns_and_stays_readable_on_a_wide_one() {
    let folder = folder();
    for name in ["lint", "audit", "normalize", "generate", "compile", "serve"] {
        for (columns, widest) in [(80, 80), (200, 120)] {
            let (text, _) = parse(&shown(&folder, (&[name, "--help"], 0), columns, true));
            // clap does not wrap the usage.
            let lines = text.lines().filter(|line| !line.starts_with("Usage:"));
            let widths = lines.map(|line| line.chars().count());
            let found = widths.max().unwrap();
            assert!(found <= widest, "{name} at {columns}: a line of {found}: {text}");
            assert!(found > widest - 20, "{name} at {columns}: the widest line has {found}");
        }
    }
}

/// Returns a colour of the fixed part of the palette: a cube with six levels a side, then 24 greys.
fn rgb(number: u8) -> [u8; 3] {
    if number >= 232 {
        return [8 + 10 * (number - 232); 3];
    }
    let level = |position: u8| if position == 0 { 0 } else { 55 + 40 * position };
    let position = number - 16;
    [level(position / 36), level(position / 6 % 6), level(position % 6)]
}

/// Returns the contrast of two colours, 1 to 21 (WCAG 2.2).
fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
    let luminance = |colour: [u8; 3]| {
        let linear = colour.map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    };
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}
