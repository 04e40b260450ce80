//! Long values of an object, in case the next object repeats them: the old object of an update is mostly the new one.

use super::drafts::Read;
use crate::json::Reader;
use crate::union::plan::NodeIndex;

/// Shortest value that is remembered, in bytes.
const SHORTEST: usize = 256;

/// The most values that are remembered.
const MOST: usize = 8;

/// The number of values that are expected next: the next object may lack some.
const EXPECTED: usize = 3;

/// The long values of the object that was read first, in the order of their beginnings.
#[derive(Debug, Default)]
pub(super) struct Repeats<'a> {
    values: [Value<'a>; MOST],
    count: usize,
    /// The values that are expected next, and those after them.
    expected: std::ops::Range<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Value<'a> {
    text: &'a str,
    /// The node of the plan, `None` if the value was skipped.
    node: Option<NodeIndex>,
    read: Read,
    /// The number of values that begin before its end.
    end: usize,
}

impl Default for Value<'_> {
    fn default() -> Self {
        Self { text: "", node: None, read: Read::Null, end: 0 }
    }
}

impl<'a> Repeats<'a> {
    /// Begins an object. Values of the first one are expected in the next ones.
    pub(super) fn begin(&mut self) {
        self.expected = 0..self.count;
    }

    /// Skips a value that is known, and returns it.
    pub(super) fn skip(&mut self, reader: &mut Reader<'a>, node: Option<NodeIndex>) -> Option<(&'a str, Read)> {
        let head: &[u8; 8] = reader.following().first_chunk()?;
        for at in self.expected.clone().take(EXPECTED) {
            let value = self.values.get(at)?;
            if value.node != node {
                continue;
            }
            if value.text.as_bytes().first_chunk() == Some(head) && reader.skip_repeated(value.text) {
                self.expected.start = value.end;
                return Some((value.text, value.read));
            }
            if node.is_some() {
                // The same place has another value. Its parts are expected next.
                self.expected.start = at.saturating_add(1);
                return None;
            }
        }
        None
    }

    /// Keeps a place for the value that begins next.
    pub(super) fn reserve(&mut self) -> usize {
        let place = self.count;
        if self.expected.end == 0 && self.count < MOST {
            self.count = self.count.saturating_add(1);
        }
        place
    }

    /// Remembers the value of a place if it is long.
    pub(super) fn remember(&mut self, place: usize, text: &'a str, node: Option<NodeIndex>, read: Read) {
        if place >= self.count {
            return;
        }
        if text.len() < SHORTEST {
            self.count = place;
        } else if let Some(value) = self.values.get_mut(place) {
            *value = Value { text, node, read, end: self.count };
        }
    }
}
