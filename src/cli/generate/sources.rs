//! Go sources on disk: which files there are, under which paths their folders are imported, and what is in them.

use crate::cli::manifest::{self, Problem};
use crate::cli::progress::Progress;
use anyhow::anyhow;
use kube_unions_go::{BuildContext, GoFile, GoParser, Packages};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The largest file that is read, in bytes: far more than anybody's types take.
const LARGEST: u64 = 16 * 1024 * 1024;

/// What was read, and what could not be.
#[derive(Debug, Default)]
pub(super) struct GoSources {
    pub(super) packages: Packages,
    pub(super) problems: Vec<Problem>,
}

/// Reads every Go file that the paths stand for.
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
    for (path, read) in files.iter().zip(read_all(&files, build)?) {
        match read {
            Ok(Some(file)) => {
                by_folder.entry(path.parent().unwrap_or(Path::new("")).to_owned()).or_default().push(file);
            }
            Ok(None) => {}
            Err(problem) => problems.push(problem),
        }
    }
    let (mut packages, mut modules) = (Packages::default(), Modules::default());
    for (folder, files) in by_folder {
        // Where the folder is in the whole tree tells how it is imported.
        let whole = std::path::absolute(&folder).unwrap_or_else(|_| folder.clone());
        packages.add(&whole, modules.import_path(&whole).as_deref(), files);
    }
    Ok(GoSources { packages, problems })
}

/// The Go files of a folder, as the go command sees them; a file is itself, whatever its name.
fn list(path: &Path) -> Result<Vec<PathBuf>, Problem> {
    // `./api/...` is how the go command says what is meant here anyway.
    let path = path.to_str().and_then(|text| text.strip_suffix("/...")).map_or(path, Path::new);
    let counts = |name: &str| !name.starts_with(['.', '_']) && !matches!(name, "testdata" | "vendor");
    let found = manifest::below(path, counts, is_go)?;
    if found.is_empty() {
        return Err(Problem::of_file(path, "no Go sources in this folder".to_owned()));
    }
    Ok(found)
}

fn is_go(path: &Path) -> bool {
    let is_test = path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("_test"));
    !is_test && path.extension().is_some_and(|extension| extension == "go")
}

/// What became of a file; `None` where the build does not have it.
type FileResult = Result<Option<GoFile>, Problem>;

/// Reads files on every core, in the order that they were named in.
fn read_all(files: &[Arc<Path>], build: &BuildContext) -> anyhow::Result<Vec<FileResult>> {
    let progress = Progress::new(u64::try_from(files.len()).ok(), "Go files");
    let next = AtomicUsize::new(0);
    let work = || -> anyhow::Result<Vec<(usize, FileResult)>> {
        let mut reader = GoParser::new().ok_or_else(|| anyhow!("the grammar of Go does not fit the parser"))?;
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = files.get(index) else { return Ok(done) };
            done.push((index, read_one(&mut reader, path, build)));
            progress.add(1);
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(files.len()).max(1);
    let mut all = Vec::with_capacity(files.len());
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            all.extend(worker.join().map_err(|_| anyhow!("reading Go files ended badly"))??);
        }
        Ok(())
    })?;
    all.sort_by_key(|(index, _)| *index);
    Ok(all.into_iter().map(|(_, outcome)| outcome).collect())
}

fn read_one(reader: &mut GoParser, path: &Arc<Path>, build: &BuildContext) -> FileResult {
    let size = path.metadata().map_err(|error| Problem::of_reading(path, &error))?.len();
    if size > LARGEST {
        let message = format!("takes {size} bytes, and {LARGEST} is the most that is read; the file is left out");
        return Err(Problem::of_file(path, message));
    }
    let bytes = std::fs::read(path).map_err(|error| Problem::of_reading(path, &error))?;
    if !build.includes(path, &bytes) {
        return Ok(None);
    }
    reader.parse(path, &bytes).map(Some).map_err(|error| {
        let position = error.position();
        let position = Some((position.line, position.column));
        Problem { file: path.to_path_buf(), position, message: error.to_string() }
    })
}

/// The modules of folders, by their `go.mod`.
#[derive(Debug, Default)]
struct Modules {
    /// Folder → the folder and the path of its module.
    known: HashMap<PathBuf, Option<(PathBuf, String)>>,
}

impl Modules {
    /// Under which path a folder is imported. What was vendored is imported as it was called where it came from.
    fn import_path(&mut self, folder: &Path) -> Option<String> {
        let names: Vec<&str> = folder.iter().map(|name| name.to_str().unwrap_or_default()).collect();
        if let Some(vendor) = names.iter().rposition(|name| *name == "vendor") {
            return Some(names.get(vendor + 1..)?.join("/")).filter(|path| !path.is_empty());
        }
        let (root, module) = self.module(folder)?;
        let below = folder.strip_prefix(&root).ok()?.iter().map(|name| name.to_str().unwrap_or_default());
        Some([module.as_str()].into_iter().chain(below).collect::<Vec<_>>().join("/"))
    }

    fn module(&mut self, folder: &Path) -> Option<(PathBuf, String)> {
        if let Some(known) = self.known.get(folder) {
            return known.clone();
        }
        let found = std::fs::read_to_string(folder.join("go.mod")).ok().and_then(|text| module_path(&text));
        let found = match found {
            Some(module) => Some((folder.to_owned(), module)),
            None => folder.parent().and_then(|parent| self.module(parent)),
        };
        self.known.insert(folder.to_owned(), found.clone());
        found
    }
}

/// The path in `module example.com/fleet`.
fn module_path(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find_map(|line| line.strip_prefix("module"))?;
    let path = line.split("//").next().unwrap_or_default().trim().trim_matches(['"', '`']);
    (!path.is_empty()).then(|| path.to_owned())
}
