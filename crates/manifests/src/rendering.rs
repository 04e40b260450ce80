//! Reads a rendering document by document, so that one that cannot be read loses no other.

use crate::document::Document;
use crate::file::{
    Format, Located, ManifestFile, Problem, Section, advised, position_after, shift, text_of, yaml_documents,
};
use crate::yaml;
use std::path::Path;
use std::sync::Arc;

/// The advice for a document that is not valid YAML.
const CORRECT: &str = "correct this document";

/// A file of which each document is read on its own.
#[derive(Debug)]
pub struct RenderedFile {
    /// The whole text. A document that cannot be read is a section without an object.
    pub file: ManifestFile,
    /// The reasons why documents cannot be read.
    pub unread: Vec<Problem>,
    /// Keys that an object has twice. The last one counts, as for kubectl and Helm.
    pub duplicates: Vec<Problem>,
}

impl RenderedFile {
    /// Parses the content of a file or of standard input.
    ///
    /// # Errors
    /// The content is no text.
    pub fn read(path: &Path, bytes: Vec<u8>) -> Result<Self, Problem> {
        let text = text_of(path, bytes)?;
        let read = yaml::on_deep_stack(|| match ManifestFile::parse(path.to_owned(), &text) {
            Ok(file) => Self { file, unread: Vec::new(), duplicates: Vec::new() },
            Err(problem) => Self::of_parts(path, &text, advised(problem, &text)),
        });
        read.map_err(|message| Problem::of_file(path, message))
    }

    /// Returns the objects of the documents that could be read.
    pub fn documents(&self) -> Vec<Document> {
        self.file.documents()
    }

    /// Reads the documents between lines of `---`, where kubectl and Helm cut a file, too. `problem` is that of the whole text. It stands if
    /// no part has one, or all have.
    fn of_parts(path: &Path, text: &str, problem: Problem) -> Self {
        let file = ManifestFile { path: path.to_owned(), sections: Vec::new(), tail: String::new() };
        let mut read = Self { file, unread: Vec::new(), duplicates: Vec::new() };
        let mut is_any_read = false;
        let mut start = (1, 1);
        for part in parts(text) {
            let mut at = start;
            start = position_after(part, start);
            match yaml_documents(part) {
                Ok(ranges) => {
                    let mut end = 0;
                    for range in ranges {
                        end = range.end;
                        let document = part.get(range).unwrap_or_default();
                        is_any_read |= read.add_document(document, at);
                        at = position_after(document, at);
                    }
                    let rest = part.get(end..).unwrap_or_default();
                    let rest = (!rest.is_empty()).then(|| Section::without_object(rest, at, false));
                    read.file.sections.extend(rest.map(Arc::new));
                }
                Err((inside, message)) => read.add_unread(part, at, (shift(inside, at), message)),
            }
        }
        if !is_any_read || (read.unread.is_empty() && read.duplicates.is_empty()) {
            read.file.sections = vec![Arc::new(Section::without_object(text, (1, 1), true))];
            read.unread = vec![problem];
            read.duplicates = Vec::new();
        }
        read
    }

    /// Adds a document. Returns true if it could be read.
    fn add_document(&mut self, text: &str, start: (usize, usize)) -> bool {
        match Section::parse_with_duplicate(text, Format::Yaml, start) {
            Ok((section, duplicate)) => {
                self.duplicates.extend(duplicate.map(|(position, message)| {
                    let message = format!("{message}: the last one counts, as for kubectl and Helm");
                    Problem::at(&self.file.path, position, message)
                }));
                self.file.sections.push(Arc::new(section));
                true
            }
            Err(error) => {
                self.add_unread(text, start, error);
                false
            }
        }
    }

    /// Adds a text that cannot be read, and why.
    fn add_unread(&mut self, text: &str, start: (usize, usize), (position, plain): Located) {
        // The advice depends on the line in the text.
        let inside = (position.0.saturating_sub(start.0) + 1, position.1);
        let mut problem = advised(Problem::at(&self.file.path, inside, plain.clone()), text);
        if problem.message == plain {
            problem.message = format!("{plain}; {CORRECT}");
        }
        if let Some(template) = source(text) {
            problem.message = format!("{template}: {}", problem.message);
        }
        problem.position = Some(position);
        self.unread.push(problem);
        self.file.sections.push(Arc::new(Section::without_object(text, start, true)));
    }
}

/// Returns the template that Helm rendered a document from.
pub fn source(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("# Source: ")).map(str::trim_end)
}

/// Cuts a text before each line that begins with `---`.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.find("\n---").map_or(rest.len(), |before| before + 1);
        let (part, next) = rest.split_at_checked(end).filter(|(part, _)| !part.is_empty())?;
        rest = next;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> RenderedFile {
        let read = RenderedFile::read(Path::new(name), text.into()).unwrap();
        let sections: String = read.file.sections.iter().map(|section| section.text.as_str()).collect();
        assert_eq!(sections + &read.file.tail, text, "nothing is lost");
        read
    }

    fn read(text: &str) -> (Vec<String>, Vec<String>, Vec<String>) {
        let read = file("a.yaml", text);
        let lines = |problems: &[Problem]| problems.iter().map(ToString::to_string).collect();
        let documents = read.documents().into_iter().map(|document| document.text).collect();
        (documents, lines(&read.unread), lines(&read.duplicates))
    }

    #[test]
    fn a_document_that_cannot_be_read_loses_no_other() {
        let (documents, problems, duplicates) =
            read("a: 1\n---\nb: [\n---\n# c\n---\nc: é\nd: {x: 1, x: 2}\n--- \ne: @\n");
        assert_eq!(documents, [r#"{"a":1}"#, r#"{"c":"é","d":{"x":2}}"#]);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("a.yaml:3:"), "{problems:?}");
        assert!(problems[1].starts_with("a.yaml:10:"), "{problems:?}");
        assert_eq!(duplicates, ["a.yaml:8:11: duplicate key `x`: the last one counts, as for kubectl and Helm"]);
    }

    #[test]
    fn a_text_without_a_document_that_can_be_read_has_one_problem() {
        assert_eq!(read("a: [\n").1.len(), 1);
        let no_text = |bytes: &[u8]| RenderedFile::read(Path::new("a.yaml"), bytes.to_vec()).unwrap_err().to_string();
        assert_eq!(no_text(b"\0"), "a.yaml:1:1: not text: it has a NUL character");
        assert_eq!(no_text(b"a: 1\n\xff"), "a.yaml:2:1: not text in UTF-8");
        let (documents, problems, _) = read("{\"a\": 1}\n{\"b\": \n");
        assert_eq!((documents.len(), problems.len()), (0, 1), "{problems:?}");
        assert_eq!(read(""), Default::default());
    }

    #[test]
    fn a_fault_of_the_whole_text_is_never_lost() {
        for (name, text) in [("a.json", "{a: 1}"), ("a.json", "{\"a\": 1,}"), ("a.yaml", "// c\n{\"a\": 1} x\n")] {
            let read = file(name, text);
            assert_eq!((read.documents().len(), read.unread.len()), (0, 1), "{text}: {read:?}");
        }
        // Documents also end without a line of `---`.
        let faults = file("a.yaml", "a: 1\n...\nb: {c: 1, c: 2}\n---\nd: @\n");
        assert_eq!(faults.duplicates[0].position, Some((3, 11)));
        assert_eq!((faults.documents().len(), faults.unread[0].position), (2, Some((5, 4))));
    }

    #[test]
    fn a_document_that_cannot_be_read_is_named_with_its_template_and_what_to_do() {
        let of = |document: &str| {
            let text = format!("---\na: 1\n---\n# Source: app/templates/b.yaml\n{document}\n---\nc: 1\n# the end\n");
            let (documents, unread, _) = read(&text);
            assert_eq!((documents.len(), unread.len()), (2, 1), "{document}: {unread:?}");
            unread.into_iter().next().unwrap()
        };
        let (template, variable) = ("this is a template: render it first", "a variable is left over");
        for (document, position, advice) in [
            ("b: [", "5:4", CORRECT),
            ("b: c: d", "5:5", CORRECT),
            ("b:\n\tc: 1", "6:2", CORRECT),
            ("b: *nobody", "5:4", CORRECT),
            ("b: {{ .Values.b }}", "5:", template),
            ("{{- if .Values.b }}\nb: 1\n{{- end }}", "5:", template),
            ("b: {c: ${VAR}}", "5:", variable),
            ("b: [${VAR}, ${OTHER:=d}]", "5:", variable),
            ("b: {${VAR}: 1}", "5:", variable),
        ] {
            let line = of(document);
            assert!(line.starts_with(&format!("a.yaml:{position}")), "{document}: {line}");
            assert!(line.contains(": app/templates/b.yaml: ") && line.contains(advice), "{document}: {line}");
            assert!(!line.contains('\n'), "{line}");
        }
        let script = of("b: |\n  echo ${HOME}\nc: [");
        assert!(script.ends_with(CORRECT), "a variable elsewhere is not to blame: {script}");
    }

    #[test]
    fn a_text_without_a_fault_is_read_as_any_other() {
        let text = "# c\n---\na: 1\n--- # d\nkind: List\nitems: [{b: 1}, {c: 1}]\n";
        assert_eq!(read(text).0.len(), 3);
        let (documents, _, duplicates) = read("a: {b: 1}\na: {c: 2}\n");
        assert_eq!((documents, duplicates.len()), (vec![r#"{"a":{"c":2}}"#.to_owned()], 1));
    }
}
