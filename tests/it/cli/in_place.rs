//! Files that `--write` replaces keep their permissions, and for root their owner.

use super::Folder;
use fixtures::crds;
use serde_json::json;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

/// A user and a group that no process here runs as.
const STRANGER: u32 = 65534;

/// A Go type whose CRD has no union yet.
const GO: &str = "// +groupName=example.com\npackage v1\n\n// +kubebuilder:object:root=true\ntype Gadget struct {\n\tSpec Spec `json:\"spec\"`\n}\n\n\
    // +union\ntype Spec struct {\n\t// +unionDiscriminator\n\tType string `json:\"type\"`\n\t// +unionMember\n\tGit *string `json:\"git\"`\n\
    \t// +unionMember\n\tOci *string `json:\"oci\"`\n}\n";

#[test]
fn a_file_that_is_written_keeps_its_mode_and_its_owner() {
    let rows: [(&str, &[&str]); 2] = [
        ("crd.yaml", &["compile", "--to", "cel", "--from", "crd.yaml", "--write"]),
        ("gadgets.json", &["generate", "--go", "api", "gadgets.json", "--write"]),
    ];
    let text = json!({"type": "string"});
    let spec = json!({"type": {"type": "string", "enum": ["Git", "Oci"]}, "git": text, "oci": text});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}});
    let gadgets = crds::crd("example.com", "Gadget", &[crds::version("v1", &schema)]).to_string();
    for (file, arguments) in rows {
        for mode in [0o640, 0o600, 0o664] {
            let folder = Folder::with_crd(&[
                ("gadgets.json", &gadgets),
                ("go.mod", "module example.com/m\n"),
                ("api/v1/gadget.go", GO),
            ]);
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
