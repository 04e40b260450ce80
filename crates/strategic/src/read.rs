//! Reads JSON text (RFC 8259) into a [`Value`].

use crate::value::{DEEPEST, MapEntry, Value};
use bumpalo::Bump;
use hashbrown::HashMap;
use kube_unions_core::json::{First, JsonString, TextReader, Unmetered, Unreadable};

/// A text that is not JSON. The message ends with the line and the column.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SyntaxError(Box<str>);

/// Reads a text that is one JSON value.
pub(crate) fn read<'a>(text: &'a str, arena: &'a Bump) -> Result<Value<'a>, SyntaxError> {
    let text = TextReader::new(text, &Unmetered);
    let mut reader = ValueReader { text, arena };
    let document = reader.value(0).and_then(|document| reader.text.end().map(|()| document));
    document.map_err(|unreadable| SyntaxError(unreadable.to_string().into()))
}

struct ValueReader<'a> {
    text: TextReader<'a>,
    arena: &'a Bump,
}

impl<'a> ValueReader<'a> {
    /// Reads a value that has this number of lists and objects around it.
    fn value(&mut self, depth: usize) -> Result<Value<'a>, Unreadable> {
        Ok(match self.text.peek()? {
            b'{' => self.map(depth)?,
            b'[' => self.list(depth)?,
            b'"' => {
                let string = self.text.string()?;
                Value::String(self.decoded(string)?)
            }
            b't' | b'f' => Value::Bool(self.text.skip()? == "true"),
            b'n' => self.text.skip().map(|_| Value::Null)?,
            _ => Value::Number(self.text.skip()?),
        })
    }

    fn list(&mut self, depth: usize) -> Result<Value<'a>, Unreadable> {
        let mut first = self.enter(depth)?;
        let mut items = Vec::new();
        while self.text.item(&mut first)? {
            items.push(self.value(depth + 1)?);
        }
        Ok(Value::list_in(self.arena, &items))
    }

    /// Keeps only the last value of each repeated key, at the first place, as Go and `serde_json` do.
    fn map(&mut self, depth: usize) -> Result<Value<'a>, Unreadable> {
        let mut first = self.enter(depth)?;
        let (mut entries, mut positions) = (Vec::<MapEntry<'a>>::new(), HashMap::new());
        while let Some(name) = self.text.name(&mut first)? {
            let entry = (self.decoded(name)?, self.value(depth + 1)?);
            let position = *positions.entry(entry.0).or_insert(entries.len());
            match entries.get_mut(position) {
                Some(known) => *known = entry,
                None => entries.push(entry),
            }
        }
        Ok(Value::map_in(self.arena, &entries))
    }

    fn enter(&mut self, depth: usize) -> Result<First, Unreadable> {
        if depth >= DEEPEST {
            let reason = format_args!("nested deeper than {DEEPEST} levels");
            return Err(self.text.malformed(self.text.position() + 1, &reason));
        }
        Ok(self.text.enter())
    }

    /// Returns a string, which is a part of the text if it has no escapes.
    fn decoded(&self, string: JsonString<'a>) -> Result<&'a str, Unreadable> {
        match string {
            JsonString::Plain(text) => Ok(text),
            JsonString::Escaped(_) => self.text.unicode(string, |text| &*self.arena.alloc_str(text)),
        }
    }
}
