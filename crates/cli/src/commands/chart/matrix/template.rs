//! Writes the lines of a template with which a user can choose another member.

use super::MatrixRow;
use crate::commands::chart::values::ValuesPath;
use crate::input::manifest::Document;

/// The spaces between the levels of a template.
const INDENT: usize = 2;

impl MatrixRow<'_> {
    /// Returns the lines of the template for the union.
    pub(super) fn template(&self) -> Vec<String> {
        let path = in_own_chart(&self.values, self.document);
        let values = expression(path);
        let quoted = |names: &[&str]| names.iter().fold(String::new(), |text, name| text + " \"" + name + "\"");
        let defaults = quoted(&self.union.members);
        let others: Vec<&str> = self.cells.iter().flat_map(|cell| cell.choice.split(", ")).collect();
        let condition = |map: &str| match (self.union.union.discriminator(), &self.union.value) {
            (Some(name), Some(value)) => format!("ne (toString {map}.{name}) \"{value}\""),
            _ => format!("pick {map}{}", quoted(&others)),
        };
        let column = self.document.position(&self.union.path.to_pointer()).map_or(1, |(_, column)| column);
        let indent = " ".repeat(column.saturating_sub(1));
        let line = |text: String| format!("{indent}{text}");
        if !self.has_default {
            let values = format!("({values} | default dict)");
            let members = self.union.members.join("`, `");
            return [
                format!("{{{{- if not ({}) }}}}", condition(&values)),
                format!("{{{{- /* `{members}`, as it is */}}}}"),
                "{{- end }}".to_owned(),
            ]
            .map(line)
            .to_vec();
        }
        let name = variable(path);
        let (key, inner) = match self.union.own_name() {
            Some(name) => (format!("{name}: "), column.saturating_sub(1) + INDENT),
            None => (String::new(), column.saturating_sub(1)),
        };
        [
            format!("{{{{- ${name} := {values} | default dict }}}}"),
            format!(
                "{{{{- if {} }}}}{{{{ ${name} = omit ${name}{defaults} }}}}{{{{ end }}}}",
                condition(&format!("${name}"))
            ),
            format!("{{{{- with ${name} }}}}"),
            format!("{key}{{{{- toYaml . | nindent {inner} }}}}"),
            "{{- end }}".to_owned(),
        ]
        .map(line)
        .to_vec()
    }
}

/// Returns a path as the templates of the chart have it that the document comes from: without the names of the charts around it.
fn in_own_chart<'p>(path: &'p ValuesPath, document: &Document) -> &'p [String] {
    let source = document.section.text.lines().find_map(|line| line.strip_prefix("# Source: ")).unwrap_or_default();
    let charts = source.split("/charts/").skip(1).filter_map(|rest| rest.split('/').next());
    charts.fold(path, |path, chart| {
        path.split_first().filter(|(first, _)| *first == chart).map_or(path, |(_, rest)| rest)
    })
}

fn expression(path: &[String]) -> String {
    if path.iter().all(|name| is_identifier(name)) {
        return format!("$.Values.{}", path.join("."));
    }
    let quoted = |name: &String| serde_json::Value::from(name.as_str()).to_string();
    format!("(index $.Values {})", path.iter().map(quoted).collect::<Vec<_>>().join(" "))
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|first: char| first.is_alphabetic()) && name.chars().all(|it| it.is_alphanumeric() || it == '_')
}

/// Returns the name of a variable for the value at a path.
fn variable(path: &[String]) -> String {
    let name: String =
        path.last().into_iter().flat_map(|name| name.chars()).filter(|it| it.is_alphanumeric()).collect();
    if is_identifier(&name) { name } else { "union".to_owned() }
}
