//! The syntax tree of a YAML or JSON text, with the position of every value.
//!
//! It serves positions in messages and edits that keep the rest of the text. It does not interpret values; that is the task of
//! [`yaml`](super::yaml). JSON is parsed as YAML in flow style.

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StructureStyle};
use std::collections::HashMap;
use std::ops::Range;

/// Deepest nesting of flow collections, and so of JSON. A deeper text has no positions.
pub(super) const DEEPEST_FLOW: usize = 20_000;

/// An index into [`Tree::nodes`].
pub(super) type SyntaxNodeId = usize;

const ROOT: SyntaxNodeId = 0;

/// The nodes of one document. They are in an arena, so that deep nesting needs no stack, not even to drop the tree.
#[derive(Debug)]
pub(super) struct Tree {
    // INVARIANT: never empty; the first node is the root.
    nodes: Vec<SyntaxNode>,
}

/// A value in the text.
#[derive(Debug)]
pub(super) struct SyntaxNode {
    /// Byte range, without comments and blank lines after the value.
    pub(super) span: Range<usize>,
    /// Line, counted from 1.
    pub(super) line: usize,
    /// Column in characters, counted from 1.
    pub(super) column: usize,
    pub(super) shape: Shape,
}

#[derive(Debug)]
pub(super) enum Shape {
    Scalar {
        text: String,
        block: bool,
    },
    /// An alias, with the node that has the anchor.
    Alias(Option<SyntaxNodeId>),
    Sequence(Vec<SyntaxNodeId>),
    Mapping {
        flow: bool,
        entries: Vec<MappingEntry>,
    },
}

/// A key and its value.
#[derive(Debug, Clone, Copy)]
pub(super) struct MappingEntry {
    pub(super) key: SyntaxNodeId,
    pub(super) value: SyntaxNodeId,
}

/// Returns the byte range of each document in a YAML text. A range begins at the end of the previous document, so it includes
/// `---` and the comments above.
pub(super) fn documents(text: &str) -> Result<Vec<Range<usize>>, ScanError> {
    let mut documents = Vec::new();
    let mut start = 0;
    for next in parser(text) {
        let (event, span) = next?;
        if matches!(event, Event::DocumentEnd) {
            let end = span.byte_range().map_or(text.len(), |range| range.end);
            documents.push(start..end);
            start = end;
        }
    }
    Ok(documents)
}

impl Tree {
    /// Parses the first document of a text. Returns `None` if there is none or the text is not YAML.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut builder = TreeBuilder { text, nodes: Vec::new(), open: Vec::new(), anchors: HashMap::new() };
        for next in parser(text) {
            let (event, span) = next.ok()?;
            if matches!(event, Event::DocumentEnd) {
                break;
            }
            builder.take(event, span)?;
        }
        (!builder.nodes.is_empty()).then_some(Self { nodes: builder.nodes })
    }

    pub(super) fn node(&self, id: SyntaxNodeId) -> Option<&SyntaxNode> {
        self.nodes.get(id)
    }

    /// Returns the nearest existing node on a path, and the number of tokens that lead there. With `through_aliases`, follows
    /// aliases to their anchors.
    pub(super) fn nearest(&self, path: &[String], through_aliases: bool) -> (SyntaxNodeId, usize) {
        let mut at = ROOT;
        for (depth, token) in path.iter().enumerate() {
            if through_aliases {
                at = self.target(at);
            }
            match self.child(at, token) {
                Some(child) => at = child,
                None => return (at, depth),
            }
        }
        (at, path.len())
    }

    /// Returns the node at a path, without following aliases.
    pub(super) fn find(&self, path: &[String]) -> Option<SyntaxNodeId> {
        let (id, depth) = self.nearest(path, false);
        (depth == path.len()).then_some(id)
    }

    pub(super) fn is_mapping(&self, id: SyntaxNodeId) -> bool {
        matches!(self.node(id), Some(SyntaxNode { shape: Shape::Mapping { .. }, .. }))
    }

    /// Returns the index and the entry of a member. Of several with this name, the last one counts.
    pub(super) fn entry(&self, mapping: SyntaxNodeId, name: &str) -> Option<(usize, MappingEntry)> {
        self.entries(mapping, name).last()
    }

    /// Returns the entries with a name: more than one if the name is there twice.
    pub(super) fn entries(&self, mapping: SyntaxNodeId, name: &str) -> impl Iterator<Item = (usize, MappingEntry)> {
        let entries = match self.node(mapping).map(|node| &node.shape) {
            Some(Shape::Mapping { entries, .. }) => &**entries,
            _ => &[],
        };
        let is_named = move |entry: &MappingEntry| matches!(self.node(entry.key), Some(SyntaxNode { shape: Shape::Scalar { text, .. }, .. }) if text == name);
        entries.iter().copied().enumerate().filter(move |(_, entry)| is_named(entry))
    }

    /// Returns the first byte of the root's value.
    pub(super) fn start(&self) -> usize {
        self.node(ROOT).map_or(0, |root| root.span.start)
    }

    fn child(&self, id: SyntaxNodeId, token: &str) -> Option<SyntaxNodeId> {
        match &self.node(id)?.shape {
            Shape::Mapping { .. } => self.entry(id, token).map(|(_, entry)| entry.value),
            Shape::Sequence(items) => items.get(token.parse::<usize>().ok()?).copied(),
            Shape::Scalar { .. } | Shape::Alias(_) => None,
        }
    }

    /// Follows aliases. This ends, because an anchor precedes its aliases.
    fn target(&self, id: SyntaxNodeId) -> SyntaxNodeId {
        let mut at = id;
        while let Some(SyntaxNode { shape: Shape::Alias(Some(target)), .. }) = self.node(at) {
            at = *target;
        }
        at
    }
}

fn parser(text: &str) -> impl Iterator<Item = Result<(Event<'_>, Span), ScanError>> {
    let options = granit_parser::options! { emit_comments: false, flow_nesting_limit: DEEPEST_FLOW };
    Parser::new_from_str_with_options(text, options)
}

struct TreeBuilder<'t> {
    text: &'t str,
    nodes: Vec<SyntaxNode>,
    open: Vec<OpenCollection>,
    anchors: HashMap<usize, SyntaxNodeId>,
}

/// A collection that is still being parsed.
struct OpenCollection {
    id: SyntaxNodeId,
    flow: bool,
    /// End of its last child.
    end: usize,
    /// A key whose value follows.
    key: Option<SyntaxNodeId>,
}

impl TreeBuilder<'_> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "starts and ends of documents have no node")]
    fn take(&mut self, event: Event<'_>, span: Span) -> Option<()> {
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                let id = self.add(&span, Shape::Scalar { text: text.into_owned(), block }, anchor)?;
                let node = self.nodes.get(id)?;
                // A missing value does not extend its collection.
                let end = if node.span.is_empty() { 0 } else { node.span.end };
                self.attach(id, end)
            }
            Event::Alias(anchor) => {
                let target = self.anchors.get(&anchor).copied();
                let id = self.add(&span, Shape::Alias(target), 0)?;
                let end = self.nodes.get(id)?.span.end;
                self.attach(id, end)
            }
            Event::SequenceStart(style, anchor, _) => self.open(&span, style, Shape::Sequence(Vec::new()), anchor),
            Event::MappingStart(style, anchor, _) => {
                let flow = style == StructureStyle::Flow;
                self.open(&span, style, Shape::Mapping { flow, entries: Vec::new() }, anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let mut closed = self.open.pop()?;
                if closed.flow {
                    closed.end = span.byte_range()?.end;
                }
                self.nodes.get_mut(closed.id)?.span.end = closed.end;
                self.attach(closed.id, closed.end)
            }
            _ => Some(()),
        }
    }

    fn add(&mut self, span: &Span, shape: Shape, anchor: usize) -> Option<SyntaxNodeId> {
        let range = span.byte_range()?;
        let blank = |character: char| character.is_whitespace();
        // The parser ends a block scalar at the start of the next token.
        let length = self.text.get(range.clone())?.trim_end_matches(blank).len();
        let (line, column) = (span.start.line(), span.start.col() + 1);
        let id = self.nodes.len();
        self.nodes.push(SyntaxNode { span: range.start..range.start + length, line, column, shape });
        if anchor > 0 {
            self.anchors.insert(anchor, id);
        }
        Some(id)
    }

    fn open(&mut self, span: &Span, style: StructureStyle, shape: Shape, anchor: usize) -> Option<()> {
        let id = self.add(span, shape, anchor)?;
        let end = self.nodes.get(id)?.span.end;
        self.open.push(OpenCollection { id, flow: style == StructureStyle::Flow, end, key: None });
        Some(())
    }

    /// Adds a finished node to its collection.
    fn attach(&mut self, id: SyntaxNodeId, end: usize) -> Option<()> {
        let Some(parent) = self.open.last_mut() else { return Some(()) };
        parent.end = parent.end.max(end);
        match &mut self.nodes.get_mut(parent.id)?.shape {
            Shape::Sequence(items) => items.push(id),
            Shape::Mapping { entries, .. } => match parent.key.take() {
                None => parent.key = Some(id),
                Some(key) => entries.push(MappingEntry { key, value: id }),
            },
            Shape::Scalar { .. } | Shape::Alias(_) => return None,
        }
        Some(())
    }
}
