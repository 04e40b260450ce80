//! Files that `--write` replaces keep their permissions, and for root their owner.

use super::Folder;
use super::generate::broken::{CRD as KILN, GO, MODULE};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

/// A user and a group that no process here runs as.
const STRANGER: u32 = 65534;

#[test]
fn a_file_that_is_written_keeps_its_mode_and_its_owner() {
    let rows: [(&str, &[&str]); 2] = [
        ("crd.yaml", &["compile", "--to", "cel", "--from", "crd.yaml", "--write"]),
        ("kiln.yaml", &["generate", "--go", "v1", "kiln.yaml", "--write"]),
    ];
    for (file, arguments) in rows {
        for mode in [0o640, 0o600, 0o664] {
            let folder = Folder::with_crd(&[("kiln.yaml", KILN), ("go.mod", MODULE), ("v1/kiln.go", GO)]);
            let path = folder.path().join(file);
            let is_root = fs::metadata(folder.path()).unwrap().uid() == 0;
            if is_root {
                chown(&path, Some(STRANGER), Some(STRANGER)).unwrap();
            }
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let access = || {
                let it = fs::metadata(&path).unwrap();
                (it.uid(), it.gid(), it.permissions().mode() & 0o7777)
            };
            let (before, text) = (access(), folder.read(file));
            assert_eq!((before.0 == STRANGER, before.2), (is_root, mode));
            let run = folder.run(arguments).code(0);
            assert_ne!(folder.read(file), text, "nothing was written: {run:#?}");
            assert_eq!(access(), before, "{arguments:?}");
        }
    }
}
