//! The meaning of CEL, as the API server has it. Each row is a rule, and its decisions on no member, `a`, `b` and both.

use crate::{plain, row, schema, union};
use kube_unions_evidence::TruthTable;

/// Rules about the members alone.
const RULES: &[(&str, &str)] = &[
    ("has(self.a) != has(self.b)", "-++-"),
    ("has(self.a) == has(self.b)", "+--+"),
    ("!(has(self.a) && has(self.b))", "+++-"),
    ("has(self.a) || has(self.b)", "-+++"),
    ("has(self.a) ? !has(self.b) : has(self.b)", "-++-"),
    ("[has(self.a), has(self.b)].filter(x, x == true).size() <= 1", "+++-"),
    ("[has(self.a),has(self.b)].filter(x,x).size() == 1", "-++-"),
    ("size([has(self.a),has(self.b)].filter(x,x)) == 1", "-++-"),
    ("[has(self.a),has(self.b)].exists_one(x,x)", "-++-"),
    ("[has(self.a),has(self.b)].all(x,!x)", "+---"),
    ("[has(self.a),has(self.b)].exists(x,x)", "-+++"),
    ("(has(self.a)?1:0)+(has(self.b)?1:0) == 1", "-++-"),
    ("(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) < 2", "+++-"),
    ("[has(self.a) ? 1 : 0, has(self.b) ? 1 : 0].map(x, x * 2).filter(x, x > 0).size() == 1", "-++-"),
    ("self.?a.hasValue() != self.?b.hasValue()", "-++-"),
    ("has(self.a)\n  && !has(self.b) // only a\n", "-+--"),
    // An absent parent is an error. Both sides of `||` and `&&` absorb it.
    ("has(self.a.name)", "-+-+"),
    ("has(self.a.name) || has(self.b)", "-+++"),
    ("has(self.b) || has(self.a.name)", "-+++"),
    ("!(has(self.a.name) && has(self.b))", "++--"),
    ("self.a.name == 'x' || !has(self.a)", "++++"),
    ("!has(self.a) || self.a.name == 'x'", "++++"),
    ("self.a.name == 'x' && has(self.b)", "---+"),
    ("self.a.size > 1 ? has(self.b) : has(self.b)", "---+"),
    ("[1, 2].all(x, has(self.a) || self.b.name == 'x')", "-+++"),
    // A required field, and one with a default, is set whenever its parent is.
    ("has(self.a.name) && has(self.a.mode)", "-+-+"),
    ("!has(self.a) || !has(self.a.mode)", "+-+-"),
    // A rule about contents or other fields rejects no combination by itself.
    ("self.a.name == 'x'", "-+-+"),
    ("self.other == 'x'", "++++"),
    ("has(self.other) || has(self.a)", "++++"),
    ("has(self.a) && has(self.other)", "-+-+"),
    ("has(self.other) ? has(self.a) : has(self.a)", "-+-+"),
    ("[has(self.a), has(self.b), has(self.third)].filter(x, x).size() <= 1", "+++-"),
    ("[has(self.a), has(self.b), has(self.third)].filter(x, x).size() == 1", "+++-"),
    ("isURL(self.a.name)", "-+-+"),
    ("self.a.name.matches('^(?!x)')", "-+-+"),
    // A field with a default is always set.
    ("has(self.count) ? has(self.a) : true", "-+-+"),
    // Escaped names.
    ("has(self.a) || has(self.foo__dash__bar)", "++++"),
    ("has(self.a) || has(self.`foo-bar`)", "++++"),
    // Transition rules do not apply to a create.
    ("has(self.a) == has(oldSelf.a)", "++++"),
    // A call that the library does not know is undecided where it decides.
    ("has(self.a) || has(self.missing)", "?+?+"),
    ("has(self.a) || isURL('x')", "?+?+"),
    ("has(self.a) || quantity('1').isGreaterThan(quantity('0'))", "?+?+"),
    ("has(self.a) || ip.isCanonical('::1')", "?+?+"),
    ("has(self.a) || cidr('10.0.0.0/8').containsIP('10.0.0.1')", "?+?+"),
    ("has(self.a) || format.dns1123Label().validate('x').hasValue()", "?+?+"),
    ("has(self.a) || [1, 2].isSorted()", "?+?+"),
    ("has(self.a) || [1, 2].sum() == 3", "?+?+"),
    ("has(self.a) || [1, 2].min() == 1", "?+?+"),
    ("has(self.a) || [1, 2].indexOf(1) == 0", "?+?+"),
    ("has(self.a) || 'a'.lowerAscii() == 'a'", "?+?+"),
    ("has(self.a) || duration('1s') < duration('2s')", "?+?+"),
    ("has(self.a) || type(1) == int", "?+?+"),
    ("has(self.a) || sets.contains([1], [1])", "?+?+"),
    ("has(self.a) || 'x'.matches('(?!y)')", "?+?+"),
    ("has(self.a) || 'x' == 1 + 'y'", "?+?+"),
    ("has(self.a) || [1].all(i, v, i == v)", "?+?+"),
    ("has(self.a) || cel.bind(x, true, x)", "?+?+"),
    ("has(self.a) && has(", "????"),
    ("self.all(key, key != 'a')", "++++"),
    // The library computes constants.
    ("has(self.a) || 1 == 1.0", "++++"),
    ("has(self.a) || 1 < 1.5", "++++"),
    ("has(self.a) || 'x'.matches('^[x-z]$')", "++++"),
    ("has(self.a) || 'x' in {'y': 1}", "-+-+"),
    ("has(self.a) || {'x': 1}['y'] == 1", "-+-+"),
    ("has(self.a) || [1][1] == 1", "-+-+"),
    ("has(self.a) || 1 / 0 == 1", "-+-+"),
    (
        "has(self.a) || 'abc'.startsWith('ab') && 'abc'.endsWith('bc') && 'abc'.contains('b') && size('abc') == 3",
        "++++",
    ),
];

/// Rules about the discriminator. Decisions without a value, with `A`, and with `B`.
const DISCRIMINATED: &[(&str, [&str; 3])] = &[
    ("self.type == 'A' ? has(self.a) : !has(self.a)", ["----", "-+-+", "+-+-"]),
    ("(self.type == 'A') == has(self.a)", ["----", "-+-+", "+-+-"]),
    ("has(self.type) && self.type == 'A' ? has(self.a) : true", ["++++", "-+-+", "++++"]),
    ("!has(self.type) || self.type != 'A' || has(self.a)", ["++++", "-+-+", "++++"]),
    ("self.type != 'A' || has(self.a)", ["-+-+", "-+-+", "++++"]),
    ("has(self.a) || self.type != 'A'", ["-+-+", "-+-+", "++++"]),
    ("self.type in ['A', 'B']", ["----", "++++", "++++"]),
    ("self.?type.orValue('B') == 'A' ? has(self.a) : has(self.b)", ["--++", "-+-+", "--++"]),
    ("!has(self.b) || (has(self.type) && self.type == 'B')", ["++--", "++--", "++++"]),
    ("self.type.startsWith('A') == has(self.a)", ["----", "-+-+", "+-+-"]),
    ("self.type.lowerAscii() == 'a' ? has(self.a) : true", ["----", "????", "????"]),
    ("self.type.matches('^[A]$') ? has(self.a) : true", ["----", "-+-+", "++++"]),
    ("size(self.type) == 1", ["----", "++++", "++++"]),
    ("{'A': has(self.a), 'B': has(self.b)}[self.type]", ["----", "-+-+", "--++"]),
    ("[self.type == 'A', has(self.b)].all(x, x)", ["----", "--++", "----"]),
    ("self.type == 'C' || has(self.a) || self.b.name == self.type", ["-+-+", "-+++", "-+++"]),
];

#[test]
fn rules_mean_what_the_api_server_evaluates() {
    let wrong = RULES.iter().filter_map(|(rule, want)| {
        let found = row(&TruthTable::of(&schema(&[rule]), &plain()), None);
        (found != *want).then(|| format!("{rule}: {found}, not {want}"))
    });
    assert_eq!(wrong.collect::<Vec<String>>(), Vec::<String>::new());
}

#[test]
fn rules_of_a_discriminator_mean_what_the_api_server_evaluates() {
    let wrong = DISCRIMINATED.iter().filter_map(|(rule, want)| {
        let table = TruthTable::of(&schema(&[rule]), &union());
        let found = [None, Some("A"), Some("B")].map(|value| row(&table, value));
        (found != *want).then(|| format!("{rule}: {found:?}, not {want:?}"))
    });
    assert_eq!(wrong.collect::<Vec<String>>(), Vec::<String>::new());
}
