//! `chart`: finds the unions in which a chart's defaults and a user's values meet, and says what to write into the values.
//!
//! Helm merges values into the defaults of a chart, so a member that the values add stands beside the one of the defaults. [`helm`] renders
//! the chart twice, [`judge`] judges the second rendering as the creates of its objects, and normalises them as updates of the first one.
//! [`values`] looks for the nulls that remove what normalisation removes, and renders the chart with each. [`report`] prints. [`defaults`]
//! reads the default values, and [`matrix`] is the check for authors of charts.

mod defaults;
mod helm;
mod judge;
mod matrix;
mod report;
mod values;

use self::defaults::default_values;
use self::helm::{HelmChart, NOT_TRIED};
use self::judge::{JudgedRendering, RenderedFault, judge};
use self::matrix::{OverrideMatrix, matrix};
use self::values::{ValuesAdvice, ValuesSearch, null_values};
use super::preview::{ApiServerAnswer, ApplyWay, Kinds, ObjectKinds, describing, nothing_described};
use crate::input::manifest::{self, Document, Format, RenderedFile, Stream, to_yaml};
use crate::input::require::RequireArg;
use crate::input::values::FindingsFormat;
use crate::report::conclusion::{Conclusion, kept_from};
use crate::report::{Verdict, output};
use anyhow::bail;
use clap::{Args, ValueEnum};
use kube_unions_manifests::counts::{count, grouped};
use serde_json::json;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Arguments of `chart`.
#[derive(Debug, Args)]
#[command(after_help = "\
Helm merges values into the defaults of a chart. Who sets `livenessProbe.exec` gets the default `httpGet` too, and the API server \
refuses the two. The chart is rendered with its defaults and with the values, by the `helm` on the PATH. Every object of the second \
rendering is judged as a create. What the values add excludes what the defaults have.

Whatever is said to help was tried: the chart was rendered with it. A null may not reach the values of a subchart.

Exit codes:
  0  every union is valid; with --fix: afterwards
  1  a union is invalid; with --matrix: a member cannot be chosen; with --require also: there is nothing to judge
  2  wrong usage, input that cannot be read, or helm fails; the rest was judged
--fix manifests passes on a document that cannot be read or judged as it is, with a warning. It exits with 2 only if it can read none.

Examples:
  kube-unions chart ./chart -f values.yaml
  kube-unions chart ./chart -f values.yaml --fix values > nulls.yaml
  helm install app ./chart -f values.yaml -f nulls.yaml
  kube-unions chart oci://registry.example/app --version 1.2.3 \\
    --set strategy.type=Recreate -- -n shop

  # For the author of a chart
  kube-unions chart ./chart --matrix

  # Renderings of any tool
  kube-unions chart --old defaults.yaml --new rendered.yaml --fix manifests")]
pub(crate) struct ChartArgs {
    /// The chart, as `helm template` takes it
    #[arg(value_name = "CHART", required_unless_present = "new")]
    chart: Option<OsString>,
    /// A file of values
    #[arg(short = 'f', long, value_name = "FILE", requires = "chart")]
    values: Vec<OsString>,
    /// A value
    #[arg(long, value_name = "KEY=VALUE", requires = "chart")]
    set: Vec<OsString>,
    /// A value that is a text
    #[arg(long, value_name = "KEY=VALUE", requires = "chart")]
    set_string: Vec<OsString>,
    /// A value in JSON
    #[arg(long, value_name = "KEY=JSON", requires = "chart")]
    set_json: Vec<OsString>,
    /// The version of the chart
    #[arg(long, value_name = "VERSION", requires = "chart")]
    version: Option<OsString>,
    /// The repository of the chart
    #[arg(long, value_name = "URL", requires = "chart")]
    repo: Option<OsString>,
    /// A rendering with the defaults, instead of a chart
    #[arg(long, num_args = 1.., value_name = "PATH", requires = "new", conflicts_with = "chart")]
    old: Vec<PathBuf>,
    /// A rendering with the values, instead of a chart
    #[arg(long, num_args = 1.., value_name = "PATH", conflicts_with = "chart")]
    new: Vec<PathBuf>,
    /// Files and folders with CRDs and `UnionDeclarations`
    #[arg(long, num_args = 1.., value_name = "PATH")]
    from: Vec<PathBuf>,
    /// Print what makes the unions valid, instead of the findings
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "output")]
    fix: Option<FixArg>,
    /// Try to choose each other member of the chart's unions in the values, and print those that need a null, or cannot be chosen
    #[arg(long, requires = "chart", conflicts_with = "fix")]
    matrix: bool,
    /// Longest run of helm, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120, requires = "chart")]
    helm_timeout: u64,
    #[command(flatten)]
    require: RequireArg,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: FindingsFormat,
    /// Other flags of `helm template`, for both renderings
    #[arg(last = true, value_name = "HELM FLAGS", requires = "chart")]
    flags: Vec<OsString>,
}

/// The warning about a chart whose defaults alone cannot be rendered.
const NO_DEFAULTS: &str = "the chart cannot be rendered with its defaults alone, so it is not known what comes from it; \
     give the values that it requires behind `--`, for example `-- --set KEY=VALUE`";

/// The output of `--fix`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FixArg {
    /// A file of values with the nulls that help, to give after the others
    Values,
    /// The rendering with the invalid unions normalised. All other bytes stay
    Manifests,
}

impl ChartArgs {
    /// Returns the chart. `None`: two renderings are given.
    fn chart(&self) -> anyhow::Result<Option<HelmChart<'_>>> {
        let Some(chart) = self.chart.as_deref() else {
            if self.fix == Some(FixArg::Values) {
                bail!("--fix values takes a chart: two renderings do not tell its values");
            }
            return Ok(None);
        };
        if self.values.iter().any(|file| file == "-") {
            bail!("-f cannot be `-`: the chart is rendered more than once, so give a file");
        }
        let each = |flag: &str, given: &[OsString]| -> Vec<OsString> {
            given.iter().flat_map(|value| [OsString::from(flag), value.clone()]).collect()
        };
        let one = |flag: &str, given: &Option<OsString>| each(flag, given.as_slice());
        let values = [
            ("--values", &self.values),
            ("--set", &self.set),
            ("--set-string", &self.set_string),
            ("--set-json", &self.set_json),
        ];
        Ok(Some(HelmChart {
            chart,
            source: [one("--version", &self.version), one("--repo", &self.repo)].concat(),
            flags: &self.flags,
            values: values.into_iter().flat_map(|(flag, given)| each(flag, given)).collect(),
            deadline: Duration::from_secs(self.helm_timeout),
        }))
    }
}

pub(super) fn run(arguments: &ChartArgs) -> anyhow::Result<Verdict> {
    let chart = arguments.chart()?;
    let mut problems = Vec::new();
    let mut read = |paths: &[PathBuf]| {
        let read = manifest::rendering(paths);
        problems.extend(read.problems.iter().map(ToString::to_string));
        read.files
    };
    let (old, new) = match &chart {
        // Two renderings with the same values tell what is random in them, which cannot be compared.
        Some(chart) if arguments.matrix => (vec![chart.with_values()?], vec![chart.with_values()?]),
        Some(chart) => {
            let new = vec![chart.with_values()?];
            (chart.with_defaults()?.into_iter().collect(), new)
        }
        None => (read(&arguments.old), read(&arguments.new)),
    };
    let from = read(&arguments.from);
    problems.extend(from.iter().flat_map(|file| &file.unread).map(ToString::to_string));
    // A chart may require values that it has no defaults for.
    let lacks_defaults = chart.is_some() && old.is_empty();
    let duplicates = from.iter().chain(&old).chain(&new).flat_map(|file| &file.duplicates);
    let duplicates: BTreeSet<String> = duplicates.map(ToString::to_string).collect();
    let [unread_old, mut unread] = unread(&old, &new, chart.is_some());
    let documents = |files: &[RenderedFile]| files.iter().flat_map(RenderedFile::documents).collect::<Vec<Document>>();
    let [from, defaults, rendered] = [&from, &old, &new].map(|files| documents(files));
    let objects = ObjectKinds::of(rendered.iter().chain(&defaults));
    let kinds = Kinds::read(describing([&from, &rendered, &defaults]), ApplyWay::Replace, &objects)?;
    problems.extend(kinds.assembly.problems.iter().map(ToString::to_string));
    problems.extend(nothing_described(&arguments.from, &from, problems.is_empty()));

    if let Some(chart) = chart.as_ref().filter(|_| arguments.matrix) {
        problems.extend(unread_old.into_iter().chain(unread));
        let is_unread = rendered.is_empty() && !problems.is_empty();
        let matrix = if is_unread { OverrideMatrix::default() } else { matrix(chart, &kinds, &rendered, &defaults)? };
        return run_matrix(arguments, &matrix, problems);
    }
    let mut judged = judge(&kinds, &defaults, &rendered);
    unread.append(&mut judged.problems);
    let passes_on = arguments.fix == Some(FixArg::Manifests) && judged.judged + judged.others > 0;
    let mut warnings: Vec<String> = if passes_on {
        let lines = unread.iter().map(|line| format!("{line}; passed on as it is"));
        duplicates.into_iter().chain(unread_old).chain(lines).collect()
    } else {
        problems.extend(unread_old.into_iter().chain(unread));
        duplicates.into_iter().collect()
    };
    warnings.extend(rendered.iter().flat_map(|it| kinds.assembly.misspelt_fields(it)));
    if lacks_defaults {
        warnings.push(NO_DEFAULTS.to_owned());
    }
    let is_searched = |fault: &RenderedFault<'_>| !(fault.removed.is_empty() && fault.removable.is_empty());
    let mut search = match &chart {
        Some(chart) if judged.faults.iter().any(is_searched) => Some(ValuesSearch::new(chart, &default_values(chart)?)),
        _ => None,
    };
    let advice = judged.advise(|fault| {
        let advice = if fault.removed.is_empty() {
            search.as_ref()?.null_for_one(&fault.unwanted(&fault.removable))
        } else {
            let advice = search.as_ref()?.advice(&fault.unwanted(&fault.removed), &json!({}));
            advice.map(|advice| Some((advice, None)))
        };
        advice.unwrap_or_else(|error| {
            problems.push(format!("{error:#}: {NOT_TRIED}"));
            search = None;
            None
        })
    });
    judged.mend();
    let advised: Vec<(&RenderedFault<'_>, Option<ValuesAdvice>)> = judged.faults.iter().zip(advice).collect();

    let is_nothing = judged.judged == 0 && problems.is_empty();
    let nothing =
        || format!("nothing to judge: no object of a kind with unions; {} of other kinds", grouped(judged.others));
    let is_left = match arguments.fix {
        None => !judged.faults.is_empty(),
        Some(FixArg::Manifests) => !judged.faults.iter().all(RenderedFault::is_mended),
        Some(FixArg::Values) => !advised.iter().all(|(_, advice)| matches!(advice, Some(ValuesAdvice::Nulls(_)))),
    };
    let failure = kept_from(problems.len(), "judged");
    let conclusion =
        Conclusion::new(arguments.require, is_nothing.then(nothing), is_left, summary(&judged, arguments.fix));
    let conclusion = conclusion.beside(problems, failure);
    match arguments.fix {
        None => report::print(&advised, chart.is_some(), arguments.output, &judged, &conclusion)?,
        Some(fix) => {
            report::note(&advised, chart.is_some());
            match fix {
                FixArg::Manifests => output::print(mended(&new, &judged))?,
                FixArg::Values => {
                    let nulls = advised.iter().filter_map(|(_, advice)| match advice {
                        Some(ValuesAdvice::Nulls(nulls)) => Some(nulls),
                        _ => None,
                    });
                    output::print(to_yaml(&null_values(nulls.flatten()).to_string())?)?;
                }
            }
        }
    }
    warnings.iter().for_each(output::warn);
    conclusion.problems.iter().for_each(output::error);
    conclusion.end()
}

/// Returns the reasons why documents of the old and the new rendering cannot be read, a line each. Of a chart, most stand in both, and count once.
fn unread(old: &[RenderedFile], new: &[RenderedFile], is_chart: bool) -> [Vec<String>; 2] {
    let [old, new] = [old, new].map(|files| files.iter().flat_map(|file| &file.unread));
    let known: BTreeSet<&str> = new.clone().map(|problem| problem.message.as_str()).collect();
    let of_old = old.filter(|problem| !is_chart || !known.contains(problem.message.as_str()));
    [of_old.map(ToString::to_string).collect(), new.map(ToString::to_string).collect()]
}

fn run_matrix(
    arguments: &ChartArgs,
    matrix: &OverrideMatrix<'_>,
    mut problems: Vec<String>,
) -> anyhow::Result<Verdict> {
    problems.extend(matrix.problems.iter().cloned());
    let is_left = matrix.counts().default_stays > 0;
    let nothing = || "nothing to choose: no value of the chart reaches a union that has a member".to_owned();
    let is_nothing = matrix.rows.is_empty() && problems.is_empty();
    let failure = kept_from(problems.len(), "judged");
    let conclusion =
        Conclusion::new(arguments.require, is_nothing.then(nothing), is_left, matrix::report::summary(matrix));
    let conclusion = conclusion.beside(problems, failure);
    matrix::report::print(matrix, arguments.output, &conclusion)?;
    conclusion.problems.iter().for_each(output::error);
    conclusion.end()
}

fn summary(judged: &JudgedRendering<'_>, fix: Option<FixArg>) -> String {
    let of = |answer: fn(&ApiServerAnswer) -> bool| judged.faults.iter().filter(|fault| answer(&fault.answer)).count();
    let others = if judged.others == 0 {
        String::new()
    } else {
        format!("; {} of other kinds not judged", count(judged.others, "object"))
    };
    if judged.judged == 0 {
        return format!("no object was judged{others}");
    }
    let objects = count(judged.judged, "object");
    let others = match judged.undecided {
        0 => others,
        undecided => format!(", {} undecided{others}", count(undecided, "union")),
    };
    if judged.faults.is_empty() && judged.undecided > 0 {
        return format!("{objects} of kinds with unions: no invalid union{others}");
    }
    if judged.faults.is_empty() {
        return format!("{objects} of kinds with unions: every union is valid{others}");
    }
    let mended = judged.faults.iter().filter(|fault| fault.is_mended()).count();
    let mended = match fix {
        Some(FixArg::Manifests) => format!(", {} made valid", grouped(mended)),
        _ => String::new(),
    };
    let (invalid, refused) =
        (count(judged.faults.len(), "invalid union"), of(|it| matches!(it, ApiServerAnswer::Refused)));
    format!("{objects} of kinds with unions: {invalid}, {} refused by the API server{mended}{others}", grouped(refused))
}

/// Returns the renderings with the edits. All other bytes stay.
fn mended(files: &[RenderedFile], judged: &JudgedRendering<'_>) -> String {
    let mut all = Stream::default();
    for RenderedFile { file, .. } in files {
        let mut text = String::new();
        for section in &file.sections {
            text.push_str(judged.texts.get(&Arc::as_ptr(section)).unwrap_or(&section.text));
        }
        text.push_str(&file.tail);
        all.push(&text, file.sections.first().map_or(Format::Yaml, |section| section.format));
    }
    all.into_text()
}
