//! Reads Go sources from disk: lists the files, parses them on every core, and finds the import paths of their folders.

use crate::input::manifest::{self, Problem};
use crate::report::progress;
use anyhow::anyhow;
use kube_unions_command::files;
use kube_unions_go::{BuildContext, GoFile, GoParser, Packages};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Largest Go file, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

/// The packages of all sources, and the files that could not be read.
#[derive(Debug, Default)]
pub(super) struct GoSources {
    pub(super) packages: Packages,
    pub(super) problems: Vec<Problem>,
}

/// Reads files and folders of Go sources.
pub(super) fn read(paths: &[PathBuf], build: &BuildContext) -> anyhow::Result<GoSources> {
    let mut problems = Vec::new();
    let mut files = BTreeSet::new();
    for path in paths {
        match list(path) {
            Ok(found) => files.extend(found),
            Err(problem) => problems.push(problem),
        }
    }
    let files: Vec<Arc<Path>> = files.into_iter().map(Into::into).collect();
    let mut by_folder: BTreeMap<PathBuf, Vec<GoFile>> = BTreeMap::new();
    for (path, parsed) in files.iter().zip(parse_all(&files, build)?) {
        match parsed {
            Ok(Some(file)) => {
                by_folder.entry(path.parent().unwrap_or(Path::new("")).to_owned()).or_default().push(file);
            }
            Ok(None) => {}
            Err(problem) => problems.push(problem),
        }
    }
    let mut packages = Packages::default();
    for (folder, files) in by_folder {
        // The import path depends on the absolute path.
        let absolute = std::path::absolute(&folder).unwrap_or_else(|_| folder.clone());
        packages.add(&absolute, import_path(&absolute).as_deref(), files);
    }
    Ok(GoSources { packages, problems })
}

/// Lists the Go files of a folder as the go command does. Lists a file as itself, whatever its name.
fn list(path: &Path) -> Result<Vec<PathBuf>, Problem> {
    // For the go command, `./api/...` means the folder and everything below it. `./api` means the same here.
    let path = path.to_str().and_then(|text| text.strip_suffix("/...")).map_or(path, Path::new);
    let counts = |name: &str| !name.starts_with(['.', '_']) && !matches!(name, "testdata" | "vendor");
    let found = manifest::below(path, counts, is_go)?;
    if found.is_empty() {
        return Err(Problem::of_file(path, "no Go files in this folder".to_owned()));
    }
    Ok(found)
}

fn is_go(path: &Path) -> bool {
    let is_test = path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("_test"));
    !is_test && path.extension().is_some_and(|extension| extension == "go")
}

/// A parsed file, or `None` if it does not belong to the build.
type ParsedFile = Result<Option<GoFile>, Problem>;

/// Parses files on every core and returns them in their order.
fn parse_all(files: &[Arc<Path>], build: &BuildContext) -> anyhow::Result<Vec<ParsedFile>> {
    let progress = progress::bar(u64::try_from(files.len()).ok(), "Go files");
    let next = AtomicUsize::new(0);
    let work = || -> anyhow::Result<Vec<(usize, ParsedFile)>> {
        let mut parser = GoParser::new().ok_or_else(|| anyhow!("tree-sitter does not support the Go grammar"))?;
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = files.get(index) else { return Ok(done) };
            done.push((index, parse(&mut parser, path, build)));
            progress.inc(1);
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(files.len()).max(1);
    let mut all = Vec::with_capacity(files.len());
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            all.extend(worker.join().map_err(|_| anyhow!("a thread that parses Go files panicked"))??);
        }
        Ok(())
    })?;
    all.sort_by_key(|(index, _)| *index);
    Ok(all.into_iter().map(|(_, parsed)| parsed).collect())
}

fn parse(parser: &mut GoParser, path: &Arc<Path>, build: &BuildContext) -> ParsedFile {
    let found = path.metadata().map_err(|error| manifest::of_reading(path, &error))?;
    if !found.is_file() {
        return Err(Problem::of_file(path, "not a file; left out".to_owned()));
    }
    let size = found.len();
    if size > LARGEST {
        let message = format!("the file has {size} bytes, more than the limit of {LARGEST}; left out");
        return Err(Problem::of_file(path, message));
    }
    let bytes = std::fs::read(path).map_err(|error| manifest::of_reading(path, &error))?;
    if !build.includes(path, &bytes) {
        return Ok(None);
    }
    parser.parse(path, &bytes).map(Some).map_err(|error| {
        let position = Some((error.position.line, error.position.column));
        Problem { file: path.to_path_buf(), position, message: error.to_string() }
    })
}

/// Returns the import path of a folder, by the nearest `go.mod` that names a module. Vendored packages keep their original path.
fn import_path(folder: &Path) -> Option<String> {
    let names: Vec<&str> = folder.iter().map(|name| name.to_str().unwrap_or_default()).collect();
    if let Some(vendor) = names.iter().rposition(|name| *name == "vendor") {
        return Some(names.get(vendor + 1..)?.join("/")).filter(|path| !path.is_empty());
    }
    folder.ancestors().find_map(|root| {
        let file = root.join("go.mod");
        let text = file.is_file().then(|| files::read(&file).ok()).flatten()?;
        let module = module_path(&String::from_utf8_lossy(&text))?;
        let below = names.get(root.iter().count()..).unwrap_or_default();
        Some([&[&*module], below].concat().join("/"))
    })
}

/// Returns the path in the line `module example.com/fleet`.
fn module_path(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find_map(|line| line.strip_prefix("module"))?;
    let path = line.split("//").next().unwrap_or_default().trim().trim_matches(['"', '`']);
    (!path.is_empty()).then(|| path.to_owned())
}
