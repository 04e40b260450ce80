//! Long values of an object, in case the next object repeats them: the old object of an update is mostly the new one.

use super::read::Read;
use crate::json::TextReader;
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
    values: [LongValue<'a>; MOST],
    count: usize,
    /// The values that are expected next, and those after them.
    expected: std::ops::Range<usize>,
}

#[derive(Debug, Clone, Copy)]
struct LongValue<'a> {
    text: &'a str,
    /// The node of the plan, `None` if the value was skipped.
    node: Option<NodeIndex>,
    read: Read,
    /// The number of values that begin before its end.
    end: usize,
}

impl Default for LongValue<'_> {
    fn default() -> Self {
        Self { text: "", node: None, read: Read::Null, end: 0 }
    }
}

impl<'a> Repeats<'a> {
    /// Begins an object. Values of the first one are expected in the next ones.
    pub(super) fn begin(&mut self) {
        self.expected = 0..self.count;
    }

    /// Skips a value that is known, and returns it. Otherwise returns the value of the same node in the object before.
    pub(super) fn skip(
        &mut self,
        reader: &mut TextReader<'a>,
        node: Option<NodeIndex>,
    ) -> Result<(&'a str, Read), Option<Read>> {
        let head: &[u8; 8] = reader.following().first_chunk().ok_or(None)?;
        for at in self.expected.clone().take(EXPECTED) {
            let value = self.values.get(at).ok_or(None)?;
            if value.node != node {
                continue;
            }
            if value.text.as_bytes().first_chunk() == Some(head) && reader.skip_repeated(value.text) {
                self.expected.start = value.end;
                return Ok((value.text, value.read));
            }
            if node.is_some() {
                // The same place has another value. Its parts are expected next.
                self.expected.start = at.saturating_add(1);
                return Err(Some(value.read));
            }
        }
        Err(None)
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
            *value = LongValue { text, node, read, end: self.count };
        }
    }
}
