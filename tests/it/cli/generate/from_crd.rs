//! `generate --from-crd`: a declaration of what the validations of a CRD enforce, to look through.

use crate::cli::{Folder, crd_of, yaml};
use fixtures::files::root;
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
  # crd.yaml:19:15: stores.example.com spec: self.type == 'Disk' ? has(self.disk) : !has(self.disk)
  # crd.yaml:20:15: stores.example.com spec: self.type == 'Net' ? true : !has(self.net)
  - path: spec
    discriminator: type
    fieldMembers:
      Disk: {name: disk}
      Net: {name: net, optional: true}
      \"No\": {}
  # crd.yaml:33:19: stores.example.com spec.rules[*]: oneOf
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
fn the_proposals_are_json_for_programs() {
    let folder = Folder::new(&[("crd.yaml", &crd())]);
    let found = folder.run(&["generate", "--from-crd", "crd.yaml", "-o", "json"]).code(0).json();
    assert_eq!(found[0]["definition"], "stores.example.com");
    let union = &found[0]["unions"][1];
    let evidence = json!([{"line": 33, "column": 19, "path": "spec.rules[*]", "kind": "keyword", "text": "oneOf", "message": null,
        "pointer": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/rules/items/oneOf"}]);
    let member = |name: &str| json!({"name": name, "optional": true});
    let group = |value: &str, name: &str| json!({"value": value, "members": [member(name)]});
    let choices = json!([group("Allow", "allow"), group("Deny", "deny")]);
    assert_eq!(
        *union,
        json!({"path": "spec.rules[*]", "discriminator": null, "members": ["allow", "deny"], "choices": choices,
        "required": true, "emptyIsUnset": [], "keyless": true, "immutable": false, "evidence": evidence})
    );
    assert_eq!(found[0]["unions"][0]["choices"][1], group("Net", "net"));
    assert_eq!(found[0]["doubts"][0]["fields"], json!(["user", "token"]));
    assert_eq!((&found[0]["podTemplates"], &found[0]["suggestions"]), (&json!([]), &json!([])));
    folder.run(&["generate", "--from-crd", "crd.yaml", "-o", "sarif"]).code(2).says(&["use -o text or -o json"]);
}

/// A schema with a union that may not change, one that a description states, an enum of names, and a pod template.
const OBSERVED: &str = "        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - rule: '!(has(self.disk) && size(self.disk) > 0 && has(self.net))'
            - rule: has(self.net) == has(oldSelf.net)
            properties:
              disk: {type: array, items: {type: string}}
              net: {type: object}
              user: {type: string, description: 'The user. Mutually exclusive with token.'}
              token: {type: string}
              source: {type: string, enum: [Git, Http, None]}
              git: {type: object}
              depth: {type: integer, description: The number of commits. Only used if Source is Git.}
              http: {type: object}
              template:
                type: object
                properties:
                  spec:
                    type: object
                    properties:
                      restartPolicy: {type: string}
                      volumes: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}
                      containers:
                        type: array
                        items:
                          type: object
                          properties:
                            name: {type: string}
                            image: {type: string}
                            env: {type: array, items: {type: object, properties: {
                              name: {type: string}, value: {type: string}, valueFrom: {type: object}}}}
                            livenessProbe: {type: object}
                            volumeMounts: {type: array, items: {type: object}}
";

const WANT_OBSERVED: [&str; 3] = [
    "\
---
# Rules compare these unions with the old object, so nothing is cleared. Proposed from the validations in crd.yaml. Look through it before you apply it.
apiVersion: kube-unions.dev/v1alpha1
kind: UnionDeclaration
metadata:
  name: stores.example.com-immutable
spec:
  target: {group: example.com, kind: Store}
  normalization: Disabled
  validationActions: [Warn]
  unions:
  # crd.yaml:19:15: stores.example.com spec: !(has(self.disk) && size(self.disk) > 0 && has(self.net))
  - path: spec
    emptyIsUnset: [disk]
    fieldsToDiscriminateBy:
      disk: Disk
      net: Net
",
    "\
---
# Pod templates, known by their shape. The API server enforces their unions in pods. Proposed from crd.yaml. Look through it before you apply it.
apiVersion: kube-unions.dev/v1alpha1
kind: UnionDeclaration
metadata:
  name: stores.example.com-pod-templates
spec:
  target: {group: example.com, kind: Store}
  validationActions: [Warn]
  podTemplates: [spec.template]
",
    "\
---
# No validation enforces these unions, and a sentence may be wrong. Suggested from the texts and names in crd.yaml. Look through it before you apply it.
apiVersion: kube-unions.dev/v1alpha1
kind: UnionDeclaration
metadata:
  name: stores.example.com-suggested
spec:
  target: {group: example.com, kind: Store}
  normalization: Disabled
  validationActions: [Audit]
  unions:
  # crd.yaml:26:38: stores.example.com spec.source: enum
  # crd.yaml:28:38: stores.example.com spec.depth: \"Only used if Source is Git\"
  - path: spec
    discriminator: source
    fieldMembers:
      Git: {fields: {git: {optional: true}, depth: {optional: true}}}
      Http: {name: http, optional: true}
      None: {}
  # crd.yaml:24:36: stores.example.com spec.user: \"Mutually exclusive with token\"
  - path: spec
    fieldsToDiscriminateBy:
      user: User
      token: Token
",
];

#[test]
fn what_no_validation_enforces_stands_apart_and_only_observes() {
    let folder = Folder::new(&[("crd.yaml", &crd_of("Store", OBSERVED))]);
    let run = folder.run(&["generate", "--from-crd", "crd.yaml"]).code(0);
    run.says(&["1 CRD: 1 union proposed, 1 pod template, 0 groups of fields in doubt"])
        .prints(&WANT_OBSERVED[..2].concat());
    let run = folder.run(&["generate", "--from-crd", "--suggest", "crd.yaml"]).code(0);
    let run = run.says(&["0 groups of fields in doubt, 2 unions suggested that nothing enforces"]);
    let run = run.prints(&WANT_OBSERVED.concat());
    folder.write("declaration.yaml", &run.stdout);
    folder.run(&["lint", "crd.yaml", "declaration.yaml"]).code(0);
    folder.run(&["generate", "--suggest", "--go", ".", "crd.yaml"]).code(2).says(&["--suggest"]);
    let run = folder.run(&["generate", "--from-crd", "crd.yaml", "--context", "c"]).code(2);
    run.says(&["give files, or --kubeconfig and --context"]);
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

    // Groups, of which one has rules that also reject what no union can say.
    let rows = yaml(include_str!("../../../e2e/native/proposals.yaml"));
    for (number, row) in rows.as_array().unwrap().iter().enumerate() {
        let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": row["spec"]}});
        let crd = fixtures::crds::crd("groups.example", "Group", &[fixtures::crds::version("v1", &schema)]);
        let folder = Folder::new(&[("crd.json", &crd.to_string())]);
        let run = folder.run(&["generate", "--from-crd", "crd.json"]).code(0);
        folder.write("declaration.yaml", &run.stdout);
        let is_stricter = row["stricter"] == true;
        let run = folder.run(&["check-cel", "crd.json", "declaration.yaml", "-o", "json"]).code(i32::from(is_stricter));
        let want = if is_stricter { "tooStrong" } else { "agrees" };
        assert_eq!(run.json()[0]["verdicts"], json!([want]), "{number}: {}", row["description"]);
    }
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

/// Returns the unions of a report, sorted.
fn reported(kinds: &Value) -> Vec<Value> {
    let unions = kinds.as_array().unwrap().iter().flat_map(|kind| {
        kind["unions"].as_array().unwrap().iter().map(|union| {
            let discriminator = &union["discriminator"];
            let mut choices = union["choices"].as_array().unwrap().clone();
            // Without a discriminator, a value is only a name.
            choices.iter_mut().filter(|_| discriminator.is_null()).for_each(|choice| choice["value"] = json!(null));
            choices.sort_by_key(Value::to_string);
            let required = &union["required"];
            json!({"kind": kind["kind"], "path": union["path"], "discriminator": discriminator, "choices": choices, "required": required})
        })
    });
    let mut unions: Vec<Value> = unions.collect();
    unions.sort_by_key(Value::to_string);
    unions
}

#[test]
fn the_unions_of_the_samples_are_found_in_the_rules_that_they_are_compiled_to() {
    let (samples, crds) = (root().join("manifests/samples"), root().join("tests/cases/go/crds"));
    let samples = samples.to_str().unwrap();
    let folder = Folder::new(&[]);
    let compiled = folder.run(&["compile", "--to", "cel", "--from", samples]).code(0);
    folder.write("compiled.yaml", &compiled.stdout);
    let declared = reported(&folder.run(&["explain", "--from", samples, "-o", "json"]).code(0).json());
    let found = folder.run(&["generate", "--from-crd", "compiled.yaml", "-o", "json"]).code(0);
    let found = found.says(&["8 CRDs: 10 unions proposed, 2 groups of fields in doubt"]).json();
    // The discriminator of these need not be set beside a member.
    let (optional, declared): (Vec<Value>, Vec<Value>) = declared.into_iter().partition(|it| it["kind"] == "Backup");
    assert_eq!((optional.len(), reported(&found)), (2, declared));
    let doubts = found.as_array().unwrap().iter().flat_map(|it| it["doubts"].as_array().unwrap());
    let doubts: Vec<&str> = doubts.map(|doubt| doubt["why"].as_str().unwrap()).collect();
    assert!(doubts.len() == 2 && doubts.iter().all(|why| why.contains("is also allowed without")), "{doubts:?}");

    // What nothing enforces is a suggestion. Nothing else is compiled from Go.
    let counts = "11 CRDs: 5 unions proposed, 0 groups of fields in doubt, 17 unions suggested that nothing enforces";
    folder.run(&["generate", "--from-crd", "--suggest", crds.to_str().unwrap()]).code(0).says(&[counts]);
    let counts = "8 CRDs: 0 unions proposed, 0 groups of fields in doubt, 9 unions suggested that nothing enforces";
    folder.run(&["generate", "--from-crd", "--suggest", samples]).code(0).says(&[counts]);
}
