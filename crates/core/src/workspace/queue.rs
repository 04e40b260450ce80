//! The subjects whose inputs changed since they were last compiled.
//!
//! A subject that changes again before its turn is compiled once, from the newest inputs. The result of a job that began before
//! the last change is dropped.

use super::job::{JobTicket, Subject};
use std::collections::{HashMap, VecDeque};

/// The subjects that wait, and those that are being compiled.
#[derive(Debug, Default)]
pub(super) struct DirtyQueue {
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

impl DirtyQueue {
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

    /// Forgets a subject. The result of a job in progress does not count.
    pub(super) fn cancel(&mut self, subject: &Subject) {
        self.dirty.remove(subject);
    }

    /// Returns the next subject. None is compiled twice at the same time.
    pub(super) fn next(&mut self) -> Option<JobTicket> {
        for _ in 0..self.order.len() {
            let subject = self.order.pop_front()?;
            let Some(dirty) = self.dirty.get_mut(&subject).filter(|dirty| dirty.queued) else { continue };
            if dirty.running {
                self.order.push_back(subject);
                continue;
            }
            (dirty.queued, dirty.running) = (false, true);
            return Some(JobTicket { version: dirty.version, subject });
        }
        None
    }

    /// Notes that a job ended. Returns true if its inputs have not changed since it began.
    pub(super) fn finish(&mut self, ticket: &JobTicket) -> bool {
        let Some(dirty) = self.dirty.get_mut(&ticket.subject) else { return false };
        if dirty.version == ticket.version {
            self.dirty.remove(&ticket.subject);
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

    #[test]
    fn a_subject_that_changes_often_is_compiled_once_and_keeps_no_other_waiting() {
        let [a, b] = ["a", "b"].map(|name| Subject::Crd(name.into()));
        let mut queue = DirtyQueue::default();
        (0..1000).for_each(|_| queue.mark_dirty(a.clone()));
        queue.mark_dirty(b.clone());
        let first = queue.next().unwrap();
        assert_eq!(first.subject, a);
        // It changes again while it is compiled: its turn comes after, not beside.
        queue.mark_dirty(a.clone());
        let second = queue.next().unwrap();
        assert_eq!(second.subject, b);
        assert!(queue.next().is_none() && queue.is_dirty(&a) && queue.is_dirty(&b));
        assert!(queue.finish(&second) && !queue.is_dirty(&b));
        assert!(!queue.finish(&first), "its inputs are old");
        let again = queue.next().unwrap();
        assert!(queue.finish(&again) && queue.is_idle());
        assert!(queue.next().is_none());
    }

    #[test]
    fn the_result_of_a_cancelled_job_does_not_count() {
        let a = Subject::Crd("a".into());
        let mut queue = DirtyQueue::default();
        queue.mark_dirty(a.clone());
        let cancelled = queue.next().unwrap();
        queue.cancel(&a);
        assert!(queue.is_idle());
        queue.mark_dirty(a);
        assert!(!queue.finish(&cancelled));
        let counted = queue.next().unwrap();
        assert!(queue.finish(&counted));
    }
}
