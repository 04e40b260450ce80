//! Rebuilds subjects on threads of their own, a few at a time, so that a large CRD keeps no other change waiting.
//!
//! A subject that changes again before its turn is rebuilt once, from the newest inputs. The result of a rebuild that began
//! before the last change is dropped.

use super::inputs::{Inputs, Subject, SubjectInputs};
use super::rebuild::{RebuiltSubject, rebuild};
use std::collections::{HashMap, VecDeque};

pub(super) const CONCURRENT_REBUILDS: usize = 4;

/// A rebuild to run.
pub(super) struct RebuildJob {
    subject: Subject,
    version: u64,
    inputs: SubjectInputs,
}

/// The result of a rebuild.
pub(super) struct FinishedRebuild {
    pub(super) subject: Subject,
    version: u64,
    /// `None` if the thread panicked.
    pub(super) rebuilt: Option<RebuiltSubject>,
}

/// The subjects whose inputs changed since they were last rebuilt.
#[derive(Debug, Default)]
pub(super) struct RebuildQueue {
    /// May name subjects that were cancelled, or twice.
    order: VecDeque<Subject>,
    dirty: HashMap<Subject, DirtySubject>,
    last_version: u64,
}

#[derive(Debug)]
struct DirtySubject {
    /// The version of the inputs from which a result counts.
    version: u64,
    queued: bool,
    running: bool,
}

impl RebuildJob {
    /// Rebuilds the subject on a thread of its own.
    pub(super) async fn run(self) -> FinishedRebuild {
        let Self { subject, version, inputs } = self;
        let rebuilt = tokio::task::spawn_blocking(move || rebuild(&inputs)).await.ok();
        FinishedRebuild { subject, version, rebuilt }
    }
}

impl RebuildQueue {
    /// Marks a subject whose inputs changed.
    pub(super) fn mark_dirty(&mut self, subject: Subject) {
        self.last_version = self.last_version.wrapping_add(1);
        let version = self.last_version;
        let dirty = self.dirty.entry(subject.clone());
        let dirty = dirty.or_insert(DirtySubject { version, queued: false, running: false });
        dirty.version = version;
        if !std::mem::replace(&mut dirty.queued, true) {
            self.order.push_back(subject);
        }
    }

    /// Forgets a subject. The result of a rebuild in progress does not count.
    pub(super) fn cancel(&mut self, subject: &Subject) {
        self.dirty.remove(subject);
    }

    /// Returns the next rebuild. A subject is not rebuilt twice at the same time.
    pub(super) fn next(&mut self, inputs: &Inputs) -> Option<RebuildJob> {
        for _ in 0..self.order.len() {
            let subject = self.order.pop_front()?;
            let Some(dirty) = self.dirty.get_mut(&subject).filter(|dirty| dirty.queued) else { continue };
            if dirty.running {
                self.order.push_back(subject);
                continue;
            }
            let Some(inputs) = inputs.subject(&subject) else {
                self.cancel(&subject);
                continue;
            };
            (dirty.queued, dirty.running) = (false, true);
            return Some(RebuildJob { version: dirty.version, subject, inputs });
        }
        None
    }

    /// Notes that a rebuild ended. Returns true if its inputs have not changed since it began.
    pub(super) fn finish(&mut self, finished: &FinishedRebuild) -> bool {
        let Some(dirty) = self.dirty.get_mut(&finished.subject) else { return false };
        if dirty.version == finished.version {
            self.dirty.remove(&finished.subject);
            return true;
        }
        dirty.running = false;
        false
    }

    /// Returns true if no subject is dirty.
    pub(super) fn is_idle(&self) -> bool {
        self.dirty.is_empty()
    }

    /// Returns true if the unions of a subject may be older than its inputs.
    pub(super) fn is_dirty(&self, subject: &Subject) -> bool {
        self.dirty.contains_key(subject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::raw::RawDefinition;

    fn finished(job: RebuildJob) -> FinishedRebuild {
        FinishedRebuild { rebuilt: Some(rebuild(&job.inputs)), subject: job.subject, version: job.version }
    }

    fn inputs(names: &[&str]) -> Inputs {
        let mut inputs = Inputs::default();
        for name in names {
            let read = format!(r#"{{"metadata": {{"name": "{name}"}}, "spec": {{}}}}"#);
            inputs.put_definition(&RawDefinition::read(&read));
        }
        inputs
    }

    #[test]
    fn a_subject_that_changes_often_is_rebuilt_once_and_keeps_no_other_waiting() {
        let inputs = inputs(&["a", "b"]);
        let [a, b] = ["a", "b"].map(|name| Subject::Definition(name.into()));
        let mut queue = RebuildQueue::default();
        (0..1000).for_each(|_| queue.mark_dirty(a.clone()));
        queue.mark_dirty(b.clone());
        let first = queue.next(&inputs).unwrap();
        assert_eq!(first.subject, a);
        // It changes again while it is rebuilt: its turn comes after, not beside.
        queue.mark_dirty(a.clone());
        let second = queue.next(&inputs).unwrap();
        assert_eq!(second.subject, b);
        assert!(queue.next(&inputs).is_none() && queue.is_dirty(&a) && queue.is_dirty(&b));
        assert!(queue.finish(&finished(second)) && !queue.is_dirty(&b));
        assert!(!queue.finish(&finished(first)), "its inputs are old");
        let again = queue.next(&inputs).unwrap();
        assert!(queue.finish(&finished(again)) && queue.is_idle());
        assert!(queue.next(&inputs).is_none());
    }

    #[test]
    fn the_result_of_a_cancelled_rebuild_does_not_count() {
        let inputs = inputs(&["a"]);
        let [a, gone] = ["a", "gone"].map(|name| Subject::Definition(name.into()));
        let mut queue = RebuildQueue::default();
        queue.mark_dirty(a.clone());
        let cancelled = queue.next(&inputs).unwrap();
        queue.cancel(&a);
        assert!(queue.is_idle());
        queue.mark_dirty(a);
        assert!(!queue.finish(&finished(cancelled)));
        let counted = queue.next(&inputs).unwrap();
        assert!(queue.finish(&finished(counted)));
        queue.mark_dirty(gone);
        assert!(queue.next(&inputs).is_none() && queue.is_idle(), "the cluster does not have it");
    }
}
