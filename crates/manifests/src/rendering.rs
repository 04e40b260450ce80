//! Reads a rendering document by document, so that one that cannot be read loses no other.

use crate::document::Document;
use crate::file::{ManifestFile, Problem, Section, advised, position_after, shift, text_of, yaml_documents};
use crate::yaml;
use std::path::Path;
use std::sync::Arc;

/// The documents of a file that is not written back.
#[derive(Debug, Default)]
pub struct RenderedDocuments {
    /// Those that could be read.
    pub documents: Vec<Document>,
    /// The problems of the others.
    pub problems: Vec<Problem>,
    /// Keys that an object has twice. The last one counts, as for kubectl and Helm.
    pub duplicates: Vec<Problem>,
}

impl RenderedDocuments {
    /// Parses the content of a file or of standard input.
    pub fn read(path: &Path, bytes: Vec<u8>) -> Self {
        let text = match text_of(path, bytes) {
            Ok(text) => text,
            Err(problem) => return Self { problems: vec![problem], ..Self::default() },
        };
        let read = yaml::on_deep_stack(|| match ManifestFile::parse(path.to_owned(), &text) {
            Ok(file) => Self { documents: file.documents(), ..Self::default() },
            Err(problem) => Self::of_parts(path, &text, advised(problem, &text)),
        });
        read.unwrap_or_else(|message| Self { problems: vec![Problem::of_file(path, message)], ..Self::default() })
    }

    /// Reads the documents between lines of `---`, where kubectl and Helm cut a file, too. `problem` is that of the whole text. It stands if
    /// no part has one, or all have.
    fn of_parts(path: &Path, text: &str, problem: Problem) -> Self {
        let mut read = Self::default();
        let mut sections = Vec::new();
        let mut start = (1, 1);
        for part in parts(text) {
            let mut at = start;
            start = position_after(part, start);
            match yaml_documents(part) {
                Ok(ranges) => {
                    for document in ranges.into_iter().filter_map(|range| part.get(range)) {
                        sections.extend(read.section(path, document, at));
                        at = position_after(document, at);
                    }
                }
                Err((position, message)) => read.problems.push(Problem::at(path, shift(position, at), message)),
            }
        }
        if sections.is_empty() || (read.problems.is_empty() && read.duplicates.is_empty()) {
            return Self { problems: vec![problem], ..Self::default() };
        }
        let file = ManifestFile { path: path.to_owned(), sections, tail: String::new() };
        read.documents = file.documents();
        read
    }

    fn section(&mut self, path: &Path, text: &str, start: (usize, usize)) -> Option<Arc<Section>> {
        let problem = |error: yaml::YamlError, what: &str| {
            let position = error.position.map_or(start, |position| shift(position, start));
            Problem::at(path, position, format!("{}{what}", error.message))
        };
        let json = match yaml::to_json(text) {
            Err(error) if error.is_duplicate => {
                self.duplicates.push(problem(error, ": the last one counts, as for kubectl and Helm"));
                yaml::to_json_of_duplicates(text)
            }
            json => json,
        };
        match json {
            Ok(json) => Some(Arc::new(Section::of_json(text, json, start))),
            Err(error) => {
                self.problems.push(problem(error, ""));
                None
            }
        }
    }
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

    fn read(text: &str) -> (Vec<String>, Vec<String>, Vec<String>) {
        let RenderedDocuments { documents, problems, duplicates } =
            RenderedDocuments::read(Path::new("a.yaml"), text.into());
        let lines = |problems: Vec<Problem>| problems.iter().map(ToString::to_string).collect();
        (documents.into_iter().map(|document| document.text).collect(), lines(problems), lines(duplicates))
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
        assert_eq!(read("\0").1, ["a.yaml:1:1: not text: it has a NUL character"]);
        let (documents, problems, _) = read("{\"a\": 1}\n{\"b\": \n");
        assert_eq!((documents.len(), problems.len()), (0, 1), "{problems:?}");
        assert_eq!(read(""), Default::default());
    }

    #[test]
    fn a_fault_of_the_whole_text_is_never_lost() {
        let read = |name: &str, text: &str| RenderedDocuments::read(Path::new(name), text.into());
        for (name, text) in [("a.json", "{a: 1}"), ("a.json", "{\"a\": 1,}"), ("a.yaml", "// c\n{\"a\": 1} x\n")] {
            let read = read(name, text);
            assert_eq!((read.documents.len(), read.problems.len()), (0, 1), "{text}: {read:?}");
        }
        // Documents also end without a line of `---`.
        let faults = read("a.yaml", "a: 1\n...\nb: {c: 1, c: 2}\n---\nd: @\n");
        assert_eq!(faults.duplicates[0].position, Some((3, 11)));
        assert_eq!((faults.documents.len(), faults.problems[0].position), (2, Some((5, 4))));
    }

    #[test]
    fn a_text_without_a_fault_is_read_as_any_other() {
        let text = "# c\n---\na: 1\n--- # d\nkind: List\nitems: [{b: 1}, {c: 1}]\n";
        assert_eq!(read(text).0.len(), 3);
        let (documents, _, duplicates) = read("a: {b: 1}\na: {c: 2}\n");
        assert_eq!((documents, duplicates.len()), (vec![r#"{"a":{"c":2}}"#.to_owned()], 1));
    }
}
