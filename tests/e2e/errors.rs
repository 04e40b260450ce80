//! The pages of `docs/errors`. Each has a sentence of the API server as its title: the commands of the page print it, and a table says what
//! each way to apply does, which is tried here cell by cell.

use std::thread;

use crate::guide::{Page, Shell};
use crate::native::Native;
use crate::support::assets;
use crate::support::cluster::say;
use fixtures::files::files;

pub(crate) const FOLDER: &str = "docs/errors/";

/// The page that lists the others.
const INDEX: &str = "index.md";

/// The way in which a table says that the API server takes a write.
const STORED: &str = "stored";
/// The way in which a table says that the API server answers with the sentence of the page, or of the page behind a link.
const REFUSED: &str = "refused";

/// The number of cells in all tables.
const CELLS: usize = 208;

/// A page about a sentence.
struct Sentence {
    /// The file, without `.md`.
    name: String,
    page: Page,
    /// The headings that are code: the sentences, and the title first.
    said: Vec<String>,
}

impl Sentence {
    fn open(file: &str) -> Self {
        let page = Page::open(&format!("{FOLDER}{file}"));
        let headings = page
            .text()
            .lines()
            .filter_map(|line| line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')));
        let said = headings.filter_map(code).collect();
        Self { name: file.trim_end_matches(".md").to_owned(), page, said }
    }

    fn title(&self) -> &str {
        self.said.first().unwrap_or_else(|| panic!("{}: the title is no code", self.name))
    }

    /// Returns the rows of each table of which every column says what becomes of a write.
    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut lines = self.page.text().lines();
        while let Some(line) = lines.next() {
            let head = cells(line);
            let [of_ways, columns @ ..] = head.as_slice() else { continue };
            let Some(columns) = columns.iter().map(|head| Column::of(head)).collect::<Option<Vec<_>>>() else {
                continue;
            };
            if *of_ways != "applied with" || columns.is_empty() {
                continue;
            }
            let body = lines.by_ref().skip(1).map(cells).take_while(|row| !row.is_empty());
            rows.extend(body.map(|row| Row {
                way: Way::of(row[0]),
                cells: columns.iter().copied().zip(row[1..].iter().map(|&cell| cell.to_owned())).collect(),
            }));
        }
        rows
    }
}

/// Returns the text between the backticks, if a heading is nothing but code.
fn code(heading: &str) -> Option<String> {
    let text = heading.trim_matches('`');
    let fence = heading.len() - heading.trim_start_matches('`').len();
    (fence > 0).then(|| text.to_owned())
}

/// Returns the cells of a row of a table. A line of another kind has none.
fn cells(line: &str) -> Vec<&str> {
    let inner = line.strip_prefix('|').and_then(|line| line.strip_suffix('|'));
    inner.map_or_else(Vec::new, |inner| inner.split('|').map(str::trim).collect())
}

/// A row of a table: a way to apply, and what becomes of it in each column.
struct Row {
    way: Way,
    cells: Vec<(Column, String)>,
}

/// The writes of a column: the tool that applied `old.yaml`, and the manifest that is applied now.
#[derive(Clone, Copy, Debug)]
struct Column {
    by_the_same_tool: bool,
    manifest: &'static str,
}

impl Column {
    fn of(head: &str) -> Option<Self> {
        let (by_the_same_tool, manifest) = match head {
            "the same tool created it" | "without the null" => (true, "new.yaml"),
            "another tool created it" => (false, "new.yaml"),
            _ if head.starts_with("with `") && head.trim_end_matches(", the same tool").ends_with(": null`") => {
                (true, "null.yaml")
            }
            _ => return None,
        };
        Some(Self { by_the_same_tool, manifest })
    }
}

/// A way to apply, by a command for a file.
#[derive(Clone, Copy, Debug)]
enum Way {
    Kubectl(&'static str),
    /// It needs an object, which another command creates.
    Change(&'static str),
    Helm(&'static str),
}

impl Way {
    /// Returns the way that stands for a row. The first words of the row name it.
    fn of(label: &str) -> Self {
        match label.split(',').next().unwrap_or(label) {
            "`kubectl apply`" => Self::Kubectl("apply"),
            "`kubectl apply --server-side`" => Self::Kubectl("apply --server-side --force-conflicts"),
            "`kubectl patch --type=merge`" => Self::Change("patch --type=merge --patch-file=FILE"),
            "`kubectl patch`" => Self::Change("patch --patch-file=FILE"),
            "`kubectl replace`" => Self::Change("replace"),
            "Helm 3" => Self::Helm("helm"),
            "Helm 4" => Self::Helm("helm4"),
            other => panic!("no way is called {other}"),
        }
    }

    fn command(self, namespace: &str, file: &str) -> String {
        match self {
            Self::Kubectl(verb) | Self::Change(verb) => {
                format!("kubectl --namespace={namespace} {} --filename={file}", verb.replace("FILE", file))
            }
            Self::Helm(tool) => {
                let helm = assets::tool(tool).unwrap_or_else(|message| panic!("{message}"));
                format!(
                    "mkdir -p {namespace}/templates && cp {file} {namespace}/templates/object.yaml
                     printf 'apiVersion: v2\\nname: table\\nversion: 1.0.0\\n' > {namespace}/Chart.yaml
                     '{}' --namespace={namespace} upgrade --install --take-ownership table {namespace}",
                    helm.display()
                )
            }
        }
    }

    fn create(self, by_the_same_tool: bool, namespace: &str) -> String {
        match self {
            Self::Kubectl(_) | Self::Helm(_) if by_the_same_tool => self.command(namespace, "old.yaml"),
            Self::Kubectl(_) | Self::Change(_) | Self::Helm(_) => {
                format!("kubectl --namespace={namespace} create --field-manager=another --filename=old.yaml")
            }
        }
    }
}

/// Tries each cell of the tables of a page in a namespace of its own. Returns their number, and those that are wrong.
fn judge(sentence: &Sentence, all: &[Sentence], shell: &Shell) -> (usize, Vec<String>) {
    let rows = sentence.rows();
    let (mut tried, mut wrong) = (0, Vec::new());
    for (way, (column, cell)) in rows.iter().flat_map(|row| row.cells.iter().map(|cell| (row.way, cell))) {
        tried += 1;
        let namespace = format!("{}-{tried}", sentence.name);
        shell.prepare(&format!(
            "kubectl create namespace {namespace} && {}",
            way.create(column.by_the_same_tool, &namespace)
        ));
        let (code, output) = shell.run(&way.command(&namespace, column.manifest));
        let is_right = match cell.as_str() {
            STORED => code == Some(0),
            refused => code != Some(0) && output.contains(refusal(refused, sentence, all)),
        };
        if !is_right {
            wrong.push(format!(
                "{}: {way:?}, {column:?}: `{cell}`, but exit code {code:?} and\n{output}",
                sentence.name
            ));
        }
    }
    (tried, wrong)
}

/// Returns the sentence that a cell promises.
fn refusal<'s>(cell: &str, sentence: &'s Sentence, all: &'s [Sentence]) -> &'s str {
    if cell == REFUSED {
        return sentence.title();
    }
    let linked = cell.strip_prefix("[refused](").and_then(|cell| cell.strip_suffix(".md)"));
    let linked = linked.and_then(|name| all.iter().find(|it| it.name == name));
    linked.unwrap_or_else(|| panic!("{}: a cell is {cell}", sentence.name)).title()
}

fn pages() -> Vec<Sentence> {
    files(FOLDER, "md").iter().filter(|(file, _)| file != INDEX).map(|(file, _)| Sentence::open(file)).collect()
}

#[test]
fn the_api_server_says_each_sentence_and_the_pages_mend_it() {
    let Some(server) = Native::start() else { return };
    let all = pages();
    let in_namespace = |it: &Sentence| Shell::in_namespace(server.control_plane(), &format!("errors-{}", it.name));
    let shells: Vec<Shell> = all.iter().map(in_namespace).collect();
    let (all, opened) = (&all, |sentence: &Sentence| Page::open(&format!("{FOLDER}{}.md", sentence.name)));
    let judged: Vec<_> = thread::scope(|scope| {
        let start = |(sentence, shell)| {
            scope.spawn(move || {
                let mut page = opened(sentence);
                page.follow_before("policies", shell);
                (page, judge(sentence, all, shell))
            })
        };
        let threads: Vec<_> = all.iter().zip(&shells).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (pages, judged): (Vec<Page>, Vec<(usize, Vec<String>)>) = judged.into_iter().unzip();
    let tried: usize = judged.iter().map(|(tried, _)| tried).sum();
    let wrong: Vec<&str> = judged.iter().flat_map(|(_, wrong)| wrong).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} of {tried} cells:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(tried, CELLS);
    // Policies change what the API server answers to every page, so they come last.
    for (mut page, shell) in pages.into_iter().zip(&shells) {
        page.follow(shell);
    }
    say(&format!("{} pages, {tried} cells", all.len()));
}

#[test]
fn every_sentence_is_shown_and_in_the_index() {
    let index = Page::open(&format!("{FOLDER}{INDEX}"));
    let all = pages();
    assert!(all.len() >= 12, "only {} pages", all.len());
    for sentence in &all {
        for said in &sentence.said {
            let shown = sentence.page.outputs().filter(|output| output.contains(said)).count();
            assert!(shown > 0, "{}: no command prints {said}", sentence.name);
            assert!(index.text().contains(said), "{FOLDER}{INDEX} does not list {said}");
        }
    }
}
