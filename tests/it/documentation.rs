//! The repository's Markdown files: every link leads to a file, and to a heading of it. The end-to-end tests follow each page with commands.

use fixtures::files::{files, is_linked, makefiles, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The folders that are searched, beside the root itself.
const FOLDERS: [&str; 5] = ["certs", "charts", "crates", "docs", "manifests"];

/// The pages for contributors, beside those of `docs/developing`.
const FOR_CONTRIBUTORS: [&str; 3] = ["CONTRIBUTING.md", "DESIGN.md", "MAINTAINERS.md"];

/// The beginnings of paths that these pages name.
const NAMED: [&str; 8] = [".github/", "charts/", "crates/", "docs/", "manifests/", "release/", "src/", "tests/"];

/// Words of these pages that stand for names.
const PLACEHOLDERS: [&str; 1] = ["FILTER"];

/// The most words of the page that a contributor reads first.
const MOST_WORDS: usize = 1200;

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let pages = pages();
    let mut checked = 0;
    let mut broken = Vec::new();
    for (path, text) in &pages {
        for link in links(text).iter().filter(|link| !link.contains("://") && !link.contains("::")) {
            checked += 1;
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { resolved(path, file) };
            let leads_on =
                heading.is_empty() || pages.get(&target).is_some_and(|it| headings(it).contains(&heading.to_owned()));
            if !root().join(&target).exists() || !leads_on {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(checked > 50, "only {checked} links were found");
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_picture_has_words() {
    let pages = pages();
    let lines = || pages.iter().flat_map(|(path, text)| prose(text).map(move |line| (path, line)));
    let pictures = lines().filter(|(_, line)| line.contains("![")).count();
    assert!(pictures >= 5, "only {pictures} pictures");
    let silent: Vec<_> = lines().filter(|(_, line)| line.contains("![]")).collect();
    assert!(silent.is_empty(), "{silent:#?}");
}

/// A path with `*`, `{` or `NAME` stands for several files.
#[test]
fn each_path_and_target_that_contributors_are_told_of_exists() {
    let target = |line: &str| line.strip_prefix(".PHONY: ").map(str::to_owned);
    let targets: BTreeSet<_> = makefiles().iter().flat_map(|(_, text)| text.lines().filter_map(target)).collect();
    let (mut checked, mut called, mut missing) = (0, 0, Vec::new());
    for (page, text) in for_contributors() {
        for code in prose(&text).flat_map(code) {
            let is_path = NAMED.iter().any(|start| code.starts_with(start));
            if is_path && !code.contains([' ', '*', '{']) && !code.contains("NAME") {
                checked += 1;
                if !root().join(code).exists() {
                    missing.push(format!("{}: {code}", page.display()));
                }
            }
            for words in code.split("make ").skip(1) {
                let name = words.split([' ', ';', ')']).next().unwrap();
                called += 1;
                if !targets.contains(name) {
                    missing.push(format!("{}: make {name}", page.display()));
                }
            }
        }
    }
    assert!(checked > 60 && called > 60, "only {checked} paths and {called} targets were found");
    assert!(missing.is_empty(), "{missing:#?}");
}

/// The beginning of a test's name stands for the test, as it does for cargo.
#[test]
fn each_name_that_contributors_are_told_of_exists() {
    let sources = [("src", "rs"), ("crates", "rs"), ("tests", "rs"), ("tests", "sh"), ("release", "sh")];
    let sources = sources.into_iter().flat_map(|(folder, extension)| files(folder, extension));
    let texts: Vec<String> = sources.chain(makefiles()).map(|(_, text)| text).collect();
    let names: BTreeSet<&str> = texts.iter().flat_map(|text| words(text)).collect();
    let exists = |word: &str| names.range(word..).next().is_some_and(|name| name.starts_with(word));
    let (mut checked, mut missing) = (0, Vec::new());
    for (page, text) in for_contributors() {
        for word in prose(&text)
            .flat_map(code)
            .filter(|code| !code.contains(".md"))
            .flat_map(words)
            .filter(|word| is_name(word))
        {
            checked += 1;
            if !exists(word) {
                missing.push(format!("{}: {word}", page.display()));
            }
        }
    }
    assert!(checked > 60, "only {checked} names were found");
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Returns true for the name of a constant, of a type, or of a test or a function of several words.
fn is_name(word: &str) -> bool {
    let is_constant = word.len() > 4 && word.chars().all(|it| it == '_' || it.is_ascii_uppercase());
    let is_type = word.starts_with(|it: char| it.is_ascii_uppercase())
        && word.chars().filter(char::is_ascii_uppercase).count() > 1
        && word.contains(|it: char| it.is_ascii_lowercase());
    let is_function = word.contains('_') && word.chars().all(|it| it == '_' || it.is_ascii_lowercase());
    (is_constant || is_type || is_function) && !PLACEHOLDERS.contains(&word)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|it: char| it != '_' && !it.is_ascii_alphanumeric())
}

#[test]
fn each_module_that_the_design_names_exists() {
    let pages = pages();
    let is_name =
        |code: &&str| code.contains("::") && code.chars().all(|it| it == ':' || it == '_' || it.is_ascii_lowercase());
    let named = prose(&pages[Path::new("DESIGN.md")]).flat_map(code).filter(is_name).collect::<BTreeSet<_>>();
    assert!(named.len() > 50, "only {named:?}");
    assert_eq!(named.iter().filter(|name| !is_declared(name)).collect::<Vec<_>>(), [&""; 0]);
}

/// Returns true if `follow::watch` or `core::union` is a module of `src` or of a crate, or a function of one.
fn is_declared(name: &str) -> bool {
    let (parent, item) = name.rsplit_once("::").unwrap();
    let (krate, within) = parent.split_once("::").unwrap_or((parent, "lib"));
    let files = [format!("src/{parent}.rs"), format!("crates/{krate}/src/{within}.rs")];
    let mut texts = files.into_iter().filter_map(|file| fs::read_to_string(root().join(file.replace("::", "/"))).ok());
    let is_exported = |line: &str| line.starts_with("pub use ") && line.contains(item);
    let declares = |line: &str| line.ends_with(&format!("mod {item};")) || line.contains(&format!("fn {item}("));
    texts.any(|text| text.lines().any(|line| declares(line) || is_exported(line)))
}

#[test]
fn a_contributor_begins_with_a_short_page() {
    let words = prose(&pages()[Path::new("CONTRIBUTING.md")]).flat_map(str::split_whitespace).count();
    assert!(words <= MOST_WORDS, "{words} words: move some into docs/developing");
}

#[test]
fn the_readme_is_short() {
    let lines = fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!(lines <= 120, "{lines} lines: move some into the guide");
}

/// Other sites read this file, and follow its links.
#[test]
fn each_file_that_security_insights_names_exists() {
    let text = fs::read_to_string(root().join("security-insights.yml")).unwrap();
    let files = text
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("https://github.com/kube-unions/kube-unions/blob/main/"));
    let files: Vec<&str> = files.map(|file| file.split('#').next().unwrap_or(file)).collect();
    assert!(files.len() >= 5, "only {files:?}");
    assert_eq!(files.iter().filter(|file| !root().join(file).exists()).collect::<Vec<_>>(), [&""; 0]);
}

/// Every page, by its path in the repository.
fn pages() -> BTreeMap<PathBuf, String> {
    let within = FOLDERS.into_iter().flat_map(|folder| {
        files(folder, "md").into_iter().map(move |(path, text)| (Path::new(folder).join(path), text))
    });
    let at_root = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    let at_root = at_root.filter(|path| path.extension().is_some_and(|it| it == "md"));
    let at_root = at_root.map(|path| (PathBuf::from(path.file_name().unwrap()), fs::read_to_string(&path).unwrap()));
    within.chain(at_root).filter(|(path, _)| !is_linked(path)).collect()
}

/// The pages for contributors.
fn for_contributors() -> impl Iterator<Item = (PathBuf, String)> {
    pages().into_iter().filter(|(path, _)| {
        path.starts_with("docs/developing") || FOR_CONTRIBUTORS.iter().any(|theirs| path == Path::new(theirs))
    })
}

/// The lines of a page that are not code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// The parts of a line in backticks.
fn code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The targets of all links, inline ones and definitions.
fn links(text: &str) -> Vec<&str> {
    let inline = prose(text).flat_map(|line| line.split("](").skip(1)).filter_map(|rest| Some(rest.split_once(')')?.0));
    inline.chain(definitions(text).map(|(_, target)| target)).collect()
}

/// The link definitions, `[label]: target`.
fn definitions(text: &str) -> impl Iterator<Item = (&str, &str)> {
    prose(text).filter_map(|line| line.strip_prefix('[')?.split_once("]: "))
}

/// The anchors of the headings, as GitHub and rustdoc make them.
fn headings(text: &str) -> Vec<String> {
    let titles = prose(text).filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let anchor = |it: char| match it {
        ' ' => Some('-'),
        '-' | '_' => Some(it),
        _ => it.is_alphanumeric().then(|| it.to_ascii_lowercase()),
    };
    titles.map(|title| title.chars().filter_map(anchor).collect()).collect()
}

/// A relative link, as a path in the repository.
fn resolved(page: &Path, link: &str) -> PathBuf {
    let mut path = page.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => assert!(path.pop(), "{}: {link} leaves the repository", page.display()),
            Component::Normal(name) => path.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    path
}
