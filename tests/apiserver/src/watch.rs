//! Watches: the events of a collection from a version on.

use crate::answer;
use crate::error::{ApiError, FieldError};
use crate::instance::Instance;
use crate::query::Query;
use crate::read::{presented, version_parameter};
use crate::selector::Selection;
use crate::storage::{StoredEvent, set_version};
use crate::write::Target;
use futures::stream::{StreamExt, unfold};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Lifetime of a watch that asks for none. A real API server adds a random time, up to twice as long.
const LIFETIME: Duration = Duration::from_mins(30);

/// Time between two bookmarks.
const BOOKMARKS: Duration = Duration::from_mins(1);

/// Time between the last bookmark and the end of a watch.
const FAREWELL: Duration = Duration::from_secs(2);

/// An open watch.
struct OpenWatch {
    instance: Instance,
    target: Target,
    collection: String,
    prefix: String,
    selection: Selection,
    /// The version of the last event that was looked at.
    revision: u64,
    /// Bookmarks are sent when this version is passed.
    began: u64,
    epoch: u64,
    /// The version of the CRD that defines the objects.
    served_since: u64,
    end: Instant,
    /// The time of the next bookmark. `None`: none are asked for, or the last was sent.
    bookmark: Option<Instant>,
    /// Lines that are to be sent.
    lines: VecDeque<String>,
    is_over: bool,
}

impl Instance {
    /// Returns the stream of a watch.
    pub(crate) fn watch(
        &self,
        target: &Target,
        query: &Query,
    ) -> Result<hyper::Response<answer::ResponseBody>, ApiError> {
        let resource = &target.resource;
        check_watch_options(query)?;
        let mut selection = Selection::parse(resource, query.text("labelSelector"), query.text("fieldSelector"))?;
        if !target.name.is_empty() {
            selection = selection.and_name(&target.name);
        }
        let lifetime = query.number("timeoutSeconds")?.filter(|seconds| *seconds > 0).map(Duration::from_secs);
        let lifetime = lifetime.unwrap_or(LIFETIME);
        let asked = version_parameter(query)?;
        let (epoch, seen, oldest) = self.cache();
        let served_since = self.shared.state().served_since(resource);
        let oldest = oldest.max(served_since);
        let now = Instant::now();
        let end = now + lifetime;
        let mut open = OpenWatch {
            instance: self.clone(),
            target: target.clone(),
            collection: resource.collection(),
            prefix: if target.namespace.is_empty() { String::new() } else { format!("{}/", target.namespace) },
            selection,
            revision: asked.filter(|asked| *asked > 0).unwrap_or(seen),
            began: asked.unwrap_or_default(),
            epoch,
            served_since,
            end,
            bookmark: None,
            lines: VecDeque::new(),
            is_over: false,
        };
        if query.flag("allowWatchBookmarks") {
            open.schedule_bookmark(now);
        }
        match asked {
            Some(asked) if asked > 0 => {
                if asked < oldest {
                    open.fail(&ApiError::expired(format!("too old resource version: {asked} ({oldest})")));
                }
            }
            _ => open.send_initial(seen),
        }
        let lines = unfold(open, |mut open| async move {
            let line = open.next().await?;
            Some((line, open))
        });
        Ok(answer::stream(lines.boxed(), &self.shared.clock))
    }
}

impl OpenWatch {
    /// Sends the objects as they are in the cache.
    fn send_initial(&mut self, seen: u64) {
        let state = self.instance.shared.state();
        let range = (&*self.prefix, "");
        let is_selected = |object: &Value| self.selection.selects(object);
        let page = state.storage.page(&self.collection, seen, range, usize::MAX, is_selected);
        drop(state);
        for (_, stored) in page.objects {
            self.began = self.began.max(stored.revision);
            let line = self.line("ADDED", &stored.object, None);
            self.lines.push_back(line);
        }
    }

    fn line(&self, event: &str, object: &Value, revision: Option<u64>) -> String {
        let mut object = presented(&self.target.resource, object);
        if let Some(revision) = revision {
            set_version(&mut object, revision);
        }
        format!("{{\"type\":\"{event}\",\"object\":{object}}}\n")
    }

    /// Sends an error as the last event.
    fn fail(&mut self, error: &ApiError) {
        let status = error.status();
        self.lines.push_back(format!("{{\"type\":\"ERROR\",\"object\":{status}}}\n"));
        self.is_over = true;
    }

    /// Returns the next line, `None` at the end.
    async fn next(&mut self) -> Option<String> {
        let shared = Arc::clone(&self.instance.shared);
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(line);
            }
            if self.is_over {
                return None;
            }
            let mut changed = pin!(shared.changed.notified());
            changed.as_mut().enable();
            let wake = self.poll();
            if !self.lines.is_empty() || self.is_over {
                continue;
            }
            tokio::select! {
                biased;
                () = sleep_until(wake) => {}
                () = changed => {}
            }
        }
    }

    /// Looks for events, and returns the time to look again if nothing changes.
    fn poll(&mut self) -> Instant {
        let now = Instant::now();
        let (next, is_cut_off) = self.take_events();
        if now >= self.end {
            self.is_over = true;
        }
        if is_cut_off {
            return self.end;
        }
        if let Some(due) = self.bookmark.filter(|due| *due <= now && !self.is_over) {
            self.schedule_bookmark(now.max(due));
            let (_, seen, _) = self.instance.cache();
            // One for a version that the client has from the start is not sent.
            if seen > self.began {
                let bookmark = self.bookmark_of(seen.max(self.revision));
                self.lines.push_back(bookmark);
            }
        }
        [next, self.bookmark].into_iter().flatten().fold(self.end, Instant::min)
    }

    /// Takes the events that the cache has. Returns the time of the next work or event, and whether a restore has cut off this watch.
    fn take_events(&mut self) -> (Option<Instant>, bool) {
        let (epoch, seen, _) = self.instance.cache();
        let lag = self.instance.lag();
        let state = self.instance.shared.state();
        if epoch != self.epoch {
            self.is_over |= !state.keeps_watches;
            return (None, true);
        }
        // When a CRD changes or goes, watches of its objects end.
        self.is_over |= state.served_since(&self.target.resource) != self.served_since;
        let events = state.storage.events_after(self.revision);
        let visible = events.iter().take_while(|event| event.revision <= seen);
        let lines: Vec<String> = visible.filter_map(|event| self.event_line(event)).collect();
        let next = events.iter().find(|event| event.revision > seen).map(|event| event.at + lag);
        let next = [next, state.next_job()].into_iter().flatten().min();
        drop(state);
        self.revision = self.revision.max(seen);
        self.lines.extend(lines);
        (next, false)
    }

    fn event_line(&self, event: &StoredEvent) -> Option<String> {
        if *event.collection != *self.collection || !event.key.starts_with(&self.prefix) {
            return None;
        }
        let before = event.before.as_deref().filter(|object| self.selection.selects(object));
        let after = event.after.as_deref().filter(|object| self.selection.selects(object));
        match (before, after) {
            (None, None) => None,
            (None, Some(object)) => Some(self.line("ADDED", object, None)),
            (Some(_), Some(object)) => Some(self.line("MODIFIED", object, None)),
            (Some(object), None) => Some(self.line("DELETED", object, Some(event.revision))),
        }
    }

    /// Sets the time of the bookmark after the one at a time: each minute, and shortly before the end.
    fn schedule_bookmark(&mut self, now: Instant) {
        let last = self.end.checked_sub(FAREWELL).filter(|last| *last > now);
        self.bookmark = last.map(|last| last.min(now + BOOKMARKS));
    }

    fn bookmark_of(&self, revision: u64) -> String {
        let resource = &self.target.resource;
        let object = json!({
            "kind": resource.kind, "apiVersion": resource.api_version(),
            "metadata": {"resourceVersion": revision.to_string()},
        });
        format!("{{\"type\":\"BOOKMARK\",\"object\":{object}}}\n")
    }
}

fn check_watch_options(query: &Query) -> Result<(), ApiError> {
    let of = query.text("resourceVersionMatch");
    let mut errors = Vec::new();
    if !query.text("sendInitialEvents").is_empty() {
        let message = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
        errors.push(FieldError::forbidden("sendInitialEvents", message));
    } else if !of.is_empty() {
        let message = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        errors.push(FieldError::forbidden("resourceVersionMatch", message));
    }
    if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid("meta.k8s.io", "ListOptions", "", &errors)) }
}
