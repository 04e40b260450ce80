// The commands that give the results of the page, for files with the inputs.

import type { Question } from "./answer.js";

/** The flags of kubectl for each way of a write. */
const KUBECTL = {
  replace: "kubectl replace -f new.yaml",
  merge: "kubectl patch -f new.yaml --type=merge --patch-file new.yaml",
  csa: "kubectl apply -f new.yaml",
  ssa: "kubectl apply --server-side --force-conflicts -f new.yaml",
};

/** Returns the command for each result, by the id of its section. */
export function commands(question: Question, isApplied: boolean): Record<string, string> {
  const isUpdate = question.old.trim() !== "";
  const old = isUpdate ? " --old old.yaml" : "";
  const write = isUpdate ? KUBECTL[question.way] : question.way === "ssa" ? KUBECTL.ssa : "kubectl create -f new.yaml";
  return {
    "today-panel": `kube-unions preview --from definitions.yaml${isUpdate ? " --old old.yaml" : ""} --new new.yaml --as ${question.way}`,
    "verdict-panel": `${write} --dry-run=server`,
    "problems-panel": "kube-unions lint definitions.yaml",
    "applied-panel": `kube-unions preview --from definitions.yaml --old old.yaml --new new.yaml --as ${question.way}`,
    "normalized-panel": `kube-unions normalize --from definitions.yaml${old} -f ${isApplied ? "applied.yaml" : "new.yaml"}`,
    "unions-panel": "kube-unions explain --from definitions.yaml",
    "strategic-patch-panel": "kube-unions patch create --from definitions.yaml --original old.yaml -f new.yaml",
    "policies-panel": "kube-unions compile --to policies --from definitions.yaml",
  };
}
