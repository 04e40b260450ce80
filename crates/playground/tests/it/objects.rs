//! The verdicts today and with kube-unions: the rows of `tests/cases`.

use super::ask_question;
use fixtures::files::parse;
use serde::Deserialize;
use serde_json::{Value, json};

const OBJECTS: &str = include_str!("../cases/objects.yaml");
const RENDERINGS: &str = include_str!("../cases/renderings.yaml");

/// A question about one object.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ObjectRow {
    name: String,
    #[serde(default)]
    way: Option<String>,
    #[serde(default)]
    definitions: String,
    #[serde(default)]
    old: String,
    #[serde(default)]
    new: String,
    today: String,
    with_kube_unions: String,
    /// The paths of the changes.
    #[serde(default)]
    changes: Vec<String>,
    /// What stands in one of the headlines.
    #[serde(default)]
    says: String,
    /// The end of the address of the page about today's first cause.
    help: Option<String>,
}

/// A question about several objects.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RenderingRow {
    name: String,
    #[serde(default)]
    way: Option<String>,
    #[serde(default)]
    old: String,
    new: String,
    /// The title and both verdicts of each object.
    objects: Vec<String>,
    today: Option<String>,
    with_kube_unions: Option<String>,
    /// The object that the details are about.
    object: Option<usize>,
}

/// Asserts that a headline, the verdict below it, and the other results do not contradict each other.
fn hold_together(answer: &Value, place: &str) {
    for (line, verdict) in [("today", "today"), ("withKubeUnions", "verdict")] {
        let (line, verdict) = (&answer["summary"][line], &answer[verdict]);
        let titles = [
            ("allowed", "Allowed: "),
            ("notJudged", "Not judged: "),
            ("storedInvalid", "Stored, and nothing refuses it: "),
            ("undecided", "Perhaps denied: "),
            ("denied", "Denied: "),
        ];
        for shown in [line, verdict] {
            let title = titles.iter().find(|(outcome, _)| shown["outcome"] == *outcome).unwrap().1;
            let headline = shown["headline"].as_str().unwrap();
            assert!(headline.starts_with(title) && headline.len() > title.len(), "{place}: {headline}: {shown}");
        }
        if answer["objects"] == json!([]) && answer["object"] == 0 {
            assert!(
                answer["summary"].to_string().contains("not readable") || line["headline"] == verdict["headline"],
                "{place}"
            );
        }
        let causes = verdict["causes"].as_array().unwrap().len();
        let has_causes = ["storedInvalid", "undecided", "denied"].iter().any(|it| verdict["outcome"] == *it);
        assert_eq!(causes > 0, has_causes, "{place}: {verdict:#}");
        if has_causes {
            let first = verdict["causes"][0]["path"].as_str().unwrap();
            assert!(verdict["headline"].as_str().unwrap().contains(first), "{place}: {verdict:#}");
        }
        if verdict["outcome"] == "notJudged" {
            assert_eq!((&verdict["warnings"], &verdict["audit"]), (&json!([]), &json!([])), "{place}");
        }
    }
    let is_judged = answer["verdict"]["outcome"] != "notJudged";
    for part in ["normalized", "jsonPatch"] {
        assert_eq!(!answer[part].is_null(), is_judged, "{place}: {part}: {answer:#}");
    }
}

#[test]
fn an_object_has_the_verdicts_of_both_clusters() {
    let rows: Vec<ObjectRow> = parse("objects.yaml", OBJECTS);
    assert!(rows.len() >= 20, "{}", rows.len());
    for row in rows {
        let way = row.way.as_deref().unwrap_or("replace");
        let question = json!({"definitions": row.definitions, "old": row.old, "new": row.new, "way": way});
        let answer = ask_question(&question);
        let place = format!("{}: {answer:#}", row.name);
        hold_together(&answer, &place);
        let (today, with) = (&answer["summary"]["today"], &answer["summary"]["withKubeUnions"]);
        assert_eq!((&today["outcome"], &with["outcome"]), (&json!(row.today), &json!(row.with_kube_unions)), "{place}");
        let headlines = format!("{}\n{}", today["headline"].as_str().unwrap(), with["headline"].as_str().unwrap());
        assert!(headlines.contains(&row.says), "{place}");
        let changes = answer["normalized"]["changes"].as_array();
        let changes: Vec<&Value> = changes.into_iter().flatten().map(|change| &change["path"]).collect();
        assert_eq!(json!(changes), json!(row.changes), "{place}");
        if let Some(help) = row.help {
            assert_eq!(answer["today"]["causes"][0]["help"], help, "{place}");
        }
    }
}

#[test]
fn a_rendering_has_a_verdict_on_each_object_and_on_all() {
    let rows: Vec<RenderingRow> = parse("renderings.yaml", RENDERINGS);
    assert!(rows.len() >= 5, "{}", rows.len());
    for row in rows {
        let way = row.way.as_deref().unwrap_or("replace");
        let question = json!({"definitions": "", "old": row.old, "new": row.new, "way": way});
        let answer = ask_question(&question);
        let place = format!("{}: {answer:#}", row.name);
        hold_together(&answer, &place);
        if let (Some(today), Some(with)) = (&row.today, &row.with_kube_unions) {
            assert_eq!(answer["summary"]["today"]["headline"], *today, "{place}");
            assert_eq!(answer["summary"]["withKubeUnions"]["headline"], *with, "{place}");
        }
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let shown = |it: &Value| [&it["title"], &it["today"], &it["withKubeUnions"]].map(text).join(" ");
        let objects: Vec<String> = answer["objects"].as_array().unwrap().iter().map(shown).collect();
        let wanted = if row.objects.len() < 2 { Vec::new() } else { row.objects };
        assert_eq!(objects, wanted, "{place}");
        if let Some(object) = row.object {
            assert_eq!(answer["object"], object, "{place}");
        }
    }
}

#[test]
fn the_details_are_about_the_object_that_is_asked_for() {
    let rows: Vec<RenderingRow> = parse("renderings.yaml", RENDERINGS);
    let new = &rows[0].new;
    let of = |object: usize| ask_question(&json!({"definitions": "", "old": "", "new": new, "object": object}));
    let text = |object: usize| of(object)["normalized"]["text"].as_str().map(str::to_owned);
    assert!(text(0).unwrap().contains("kind: Service"));
    assert_eq!(text(1), None);
    assert!(text(2).unwrap().contains("kind: Deployment"));
    // One that is not there is none.
    assert_eq!(of(9)["object"], 0);
}

#[test]
fn two_megabytes_of_renderings_are_judged_object_by_object() {
    let rows: Vec<RenderingRow> = parse("renderings.yaml", RENDERINGS);
    let (mut new, mut number) = (String::new(), 0_usize);
    while new.len() + rows[0].new.len() + 32 < 2 << 20 {
        let named = rows[0].new.replace("name: web}", &format!("name: web-{number}}}"));
        new.extend([&*named, "---\n"]);
        number += 1;
    }
    let answer = ask_question(&json!({"definitions": "", "old": "", "new": new}));
    assert_eq!(answer["objects"].as_array().unwrap().len(), 3 * number);
    hold_together(&answer, "2 MB");
    assert_eq!(answer["summary"]["today"]["outcome"], "allowed");
}
