//! `generate --from-crd`: a declaration of what the validations of a CRD enforce, to look through.

use crate::cli::{Folder, crd_of, yaml};
use serde_json::{Value, json};

const SCHEMA: &str = "        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - rule: \"self.type == 'Disk' ? has(self.disk) : !has(self.disk)\"
            - rule: \"self.type == 'Net' ? true : !has(self.net)\"
            - rule: '!(has(self.user) && has(self.token)) || isURL(\"x\")'
            required: [type]
            properties:
              type: {type: string, enum: [Disk, Net, 'No']}
              disk: {type: object}
              net: {type: object}
              user: {type: string}
              token: {type: string}
              rules:
                type: array
                items:
                  type: object
                  oneOf: [{required: [allow]}, {required: [deny]}]
                  properties: {allow: {type: string}, deny: {type: string}, note: {type: string}}
";

fn crd() -> String {
    crd_of("Store", SCHEMA)
}

const WANT: &str = "\
---
# Proposed from the validations in crd.yaml. Look through it before you apply it.
apiVersion: kube-unions.dev/v1alpha1
kind: UnionDeclaration
metadata:
  name: stores.example.com
spec:
  target: {group: example.com, kind: Store}
  validationActions: [Warn]
  unions:
  # crd.yaml:19:15: self.type == 'Disk' ? has(self.disk) : !has(self.disk)
  # crd.yaml:20:15: self.type == 'Net' ? true : !has(self.net)
  - path: spec
    discriminator: type
    fieldMembers:
      Disk: {name: disk}
      Net: {name: net, optional: true}
      \"No\": {}
  # crd.yaml:33:19: oneOf
  # in a list without keys: nothing is cleared here, objects are only judged
  - path: \"spec.rules[*]\"
    required: true
    fieldsToDiscriminateBy:
      allow: Allow
      deny: Deny
";

#[test]
fn the_unions_that_validations_enforce_are_proposed_with_their_evidence() {
    let folder = Folder::new(&[("crd.yaml", &crd())]);
    let run = folder.run(&["generate", "--from-crd", "crd.yaml"]).code(0);
    let run = run.says(&["1 CRD: 2 unions proposed, 1 group of fields in doubt"]);
    let (declaration, doubts) = run.stdout.split_at(run.stdout.find("# Store spec").unwrap());
    assert_eq!(declaration, WANT);
    assert!(doubts.starts_with("# Store spec: not proposed: user, token: ") && doubts.contains("`isURL`"), "{doubts}");
    assert_eq!(folder.read("crd.yaml"), crd());
}

#[test]
fn what_is_proposed_is_a_valid_declaration_that_agrees_with_the_rules() {
    let folder = Folder::new(&[("crd.yaml", &crd())]);
    let run = folder.run(&["generate", "--from-crd", "crd.yaml"]).code(0);
    folder.write("declaration.yaml", &run.stdout);
    folder.run(&["lint", "crd.yaml", "declaration.yaml"]).code(0);
    let checked = folder.run(&["check-cel", "crd.yaml", "declaration.yaml", "-o", "json"]).code(0).json();
    let verdicts: Vec<&Value> = checked.as_array().unwrap().iter().map(|it| &it["verdicts"]).collect();
    assert_eq!(verdicts, [&json!(["agrees"]), &json!(["agrees"])], "{checked:#}");
}

#[test]
fn versions_that_differ_have_a_declaration_each() {
    let mut crd = yaml(&crd());
    let mut older = crd["spec"]["versions"][0].clone();
    older["name"] = json!("v1beta1");
    older["storage"] = json!(false);
    let same = older.clone();
    older["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] = json!([]);
    crd["spec"]["versions"].as_array_mut().unwrap().push(older);
    let text = crd.to_string();
    let folder = Folder::new(&[("crd.json", &text)]);
    let run = folder.run(&["generate", "--from-crd", "crd.json"]).code(0);
    assert_eq!(run.stdout.matches("kind: UnionDeclaration\n").count(), 2, "{run:#?}");
    assert!(run.stdout.contains("  name: stores.example.com-v1\n"), "{run:#?}");
    assert!(run.stdout.contains("kind: Store, versions: [v1beta1]}"), "{run:#?}");

    *crd["spec"]["versions"].as_array_mut().unwrap().last_mut().unwrap() = same;
    folder.write("crd.json", crd.to_string());
    let run = folder.run(&["generate", "--from-crd", "crd.json"]).code(0);
    assert!(run.stdout.contains("  target: {group: example.com, kind: Store}\n"), "{run:#?}");
}

#[test]
fn pairs_that_only_look_like_unions_are_not_proposed() {
    let pair =
        crd().replace(" ? has(self.disk) : !has(self.disk)", " || true").replace("? true : !has(self.net)", "|| true");
    let pair = pair.replace("oneOf:", "anyOf:").replace("!(has(self.user) && has(self.token)) || isURL", "isURL");
    let run = Folder::new(&[("crd.yaml", &pair)]).run(&["generate", "--from-crd", "crd.yaml"]).code(0);
    run.prints("").says(&["0 unions proposed"]);
}
