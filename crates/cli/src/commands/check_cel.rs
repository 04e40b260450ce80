//! `check-cel`: compares unions with the rules that somebody wrote by hand in the same CRD.
//!
//! [`comparison`] compares one union, [`subjects`] finds the unions and their schemas, and [`report`] prints the result. The crate `kube-unions-evidence` evaluates the rules.

mod comparison;
mod report;
pub(in crate::commands) mod subjects;

use self::comparison::{ComparedUnion, RuleVerdict};
use self::subjects::ReadDefinition;
use crate::input::kinds::{self, Assembly, DeclarationArgs};
use crate::input::manifest;
use crate::input::require::RequireArg;
use crate::input::values::FindingsFormat;
use crate::report::Verdict;
use crate::report::diagnostic::Diagnostic;
use crate::report::exit::FAILED;
use crate::report::output;
use anyhow::bail;
use clap::Args;
use kube_unions_core::declaration::Severity;
use kube_unions_manifests::counts::{count, grouped};
use std::collections::BTreeSet;

/// Arguments of `check-cel`.
#[derive(Debug, Args)]
#[command(after_help = "\
Compares each union with the rules of `x-kubernetes-validations` and with `oneOf`, `anyOf`, `allOf`, `not`, `minProperties` and \
`maxProperties`, at the object of the union and above it. Tries each value of the discriminator with \
every set of members; if there are more than six, with no member, one, two and all. A line for each union says:
  agrees      both allow and reject the same
  too weak    the union rejects an object that the rules allow
  too strong  the rules reject an object that the union allows
  no rules    no rule is about the union
  undecided   a rule could not be evaluated, so nothing is known
A disagreement shows a smallest object. Transition rules, and rules about other fields, do not count.

Exit codes:
  0  every union with rules agrees with them
  1  at least one disagreement, or with --require: no union has rules
  2  a file could not be read, or a union is undecided; the others were checked

Examples:
  kube-unions check-cel config/crd/bases
  kube-unions check-cel crd.yaml declaration.yaml -o json
  kustomize build config/crd | kube-unions check-cel -")]
pub(crate) struct CheckCelArgs {
    #[command(flatten)]
    declarations: DeclarationArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: FindingsFormat,
    #[command(flatten)]
    require: RequireArg,
}

pub(super) fn run(arguments: &CheckCelArgs) -> anyhow::Result<Verdict> {
    let paths = arguments.declarations.paths();
    let manifests = manifest::files(&paths);
    let assembly = kinds::assemble(manifests.documents().collect(), arguments.declarations.sources.builtin_unions);
    for problem in manifests.problems.iter().chain(&assembly.problems) {
        output::note(problem);
    }
    let problems: Vec<String> = manifests.problems.iter().chain(&assembly.problems).map(ToString::to_string).collect();

    let definitions = subjects::definitions(&assembly);
    let compared = compared(&assembly, &definitions);
    let is = |wanted: RuleVerdict| compared.iter().any(|union| union.verdicts.contains(&wanted));
    let disagrees = is(RuleVerdict::TooWeak) || is(RuleVerdict::TooStrong);
    let nothing = problems.is_empty()
        && compared.iter().all(|union| union.verdicts.iter().all(|verdict| *verdict == RuleVerdict::NoRules));
    let code = match problems.is_empty() {
        true if disagrees => Verdict::Rejected.code(),
        true if nothing => arguments.require.verdict().code(),
        true if !is(RuleVerdict::Undecided) => Verdict::Accepted.code(),
        _ => FAILED,
    };
    report::print(&compared, arguments.output, &problems, code)?;

    let faults = assembly.catalog.faults().iter().filter(|fault| fault.severity() == Severity::Error).count();
    if faults > 0 {
        output::note("some unions were left out because of faults: see `kube-unions lint` with the same files");
    }
    if let Some(missing) = assembly.missing(&paths)
        && problems.is_empty()
    {
        bail!(missing);
    }
    let sentence = sentence(definitions.len(), &compared);
    if nothing {
        return Ok(arguments.require.warn(format_args!("nothing to compare: {sentence}")));
    }
    output::note(sentence);
    match problems.len() {
        0 if disagrees => Ok(Verdict::Rejected),
        0 if is(RuleVerdict::Undecided) => {
            bail!("some unions are undecided: rewrite the rules named above, or test them by hand")
        }
        0 => Ok(Verdict::Accepted),
        some => bail!("{} kept something from being checked", count(some, "problem")),
    }
}

/// Returns what `lint` reports about the rules beside unions. Versions that disagree alike have one diagnostic.
pub(super) fn diagnostics(assembly: &Assembly) -> Vec<Diagnostic> {
    let definitions = subjects::definitions(assembly);
    let mut all: Vec<Diagnostic> = Vec::new();
    for found in compared(assembly, &definitions).iter().flat_map(ComparedUnion::diagnostics) {
        let is_alike = |it: &&mut Diagnostic| {
            (&it.definition, &it.path, it.rule, &it.message)
                == (&found.definition, &found.path, found.rule, &found.message)
        };
        match all.iter_mut().find(is_alike) {
            Some(known) => known.versions.extend(found.versions),
            None => all.push(found),
        }
    }
    all
}

fn compared<'s>(assembly: &'s Assembly, definitions: &'s [ReadDefinition<'s>]) -> Vec<ComparedUnion<'s>> {
    subjects::of(&assembly.catalog, definitions).map(|subject| ComparedUnion::of(&subject)).collect()
}

/// Returns the summary, for example `3 CRDs, 5 unions: 4 agree, 1 too weak`.
fn sentence(definitions: usize, compared: &[ComparedUnion<'_>]) -> String {
    let all: BTreeSet<RuleVerdict> = compared.iter().flat_map(|union| union.verdicts.iter().copied()).collect();
    let counts = all.into_iter().map(|verdict| {
        let number = compared.iter().filter(|union| union.verdicts.contains(&verdict)).count();
        let words = if verdict == RuleVerdict::Agrees && number != 1 { "agree".to_owned() } else { verdict.words() };
        format!("{} {words}", grouped(number))
    });
    let counts: Vec<String> = counts.collect();
    let colon = if counts.is_empty() { "" } else { ": " };
    format!("{}, {}{colon}{}", count(definitions, "CRD"), count(compared.len(), "union"), counts.join(", "))
}
