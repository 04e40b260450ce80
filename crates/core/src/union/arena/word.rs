//! Words of the arena that stand for something else than a number.
//!
//! Each kind of offset is a type, so that no part is read as another. Only this folder reads the numbers in them. A word with several
//! values is read and written by its type alone.

/// The end of a chain, or the only word of a node that is whole.
pub(super) const NONE: u32 = u32::MAX;

/// The offset of a node.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct NodeAt(pub(super) u32);

/// The offset of the state of a union.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct StateAt(pub(super) u32);

/// The number of words before the node of an item of a list.
pub(super) const ITEM: u32 = 2;

/// The number of words before the node of an entry of a map.
pub(super) const ENTRY: u32 = 3;

/// The offset of an item or an entry, with the number of words before its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub(crate) struct RecordAt<const N: u32>(pub(super) u32);

impl NodeAt {
    /// Returns the item or entry of the node. The node must be one of its kind.
    pub(crate) fn record<const N: u32>(self) -> RecordAt<N> {
        RecordAt(self.0.saturating_sub(N))
    }
}

impl<const N: u32> RecordAt<N> {
    pub(crate) fn node(self) -> NodeAt {
        NodeAt(self.0.saturating_add(N))
    }

    /// Reads the word of a chain that leads to a record.
    pub(super) fn from_link(word: u32) -> Option<Self> {
        (word != NONE).then_some(Self(word))
    }
}

/// The items of a list or the entries of a map while they are stored. Each is linked to the next one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RecordChain<const N: u32> {
    pub(crate) first: Option<RecordAt<N>>,
    pub(crate) last: Option<RecordAt<N>>,
}

/// The keys or the children of an object, each with this number of words.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartRun<const N: u32> {
    pub(super) first: u32,
    pub(super) count: u32,
}

impl<const N: u32> PartRun<N> {
    /// Returns the offset of a part.
    pub(super) fn at(self, number: u32) -> u32 {
        self.first.saturating_add(N * number)
    }

    /// Returns the offset behind all parts.
    pub(super) fn end(self) -> u32 {
        self.at(self.count)
    }
}

/// The first word of an object: the number of its states in 8 bits, that of its keys in 7, [a bit](Self::has_only_members), the number
/// of its children in 15, and [another bit](Self::is_whole).
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct ObjectCounts(pub(super) u32);

impl ObjectCounts {
    /// The most keys of an item.
    pub(crate) const MOST_KEYS: usize = 0x7f;
    const MOST_CHILDREN: usize = 0x7fff;
    const ONLY_MEMBERS: u32 = 1 << 15;
    const WHOLE: u32 = 1 << 31;

    /// Returns the counts of an object, `None` if it has too many fields.
    pub(crate) fn new(states: usize, keys: usize, children: usize) -> Option<Self> {
        let states = u8::try_from(states).ok()?;
        let keys = u8::try_from(keys).ok().filter(|_| keys <= Self::MOST_KEYS)?;
        let children = u16::try_from(children).ok().filter(|_| children <= Self::MOST_CHILDREN)?;
        Some(Self(u32::from(states) | u32::from(keys) << 8 | u32::from(children) << 16))
    }

    pub(crate) fn with_only_members(self) -> Self {
        Self(self.0 | Self::ONLY_MEMBERS)
    }

    pub(crate) fn as_whole(self) -> Self {
        Self(self.0 | Self::WHOLE)
    }

    pub(super) fn states(self) -> u32 {
        self.0 & 0xff
    }

    pub(super) fn keys(self) -> u32 {
        self.0 >> 8 & 0x7f
    }

    pub(super) fn children(self) -> u32 {
        self.0 >> 16 & 0x7fff
    }

    /// Returns true if the item stands for all fields of its counterpart in the new object, but for its keys.
    pub(super) fn is_whole(self) -> bool {
        self.0 & Self::WHOLE != 0
    }

    /// Returns true if each field of the object is a member that is set.
    pub(super) fn has_only_members(self) -> bool {
        self.0 & Self::ONLY_MEMBERS != 0
    }
}

/// The node of the first item with some keys, and a bit that is set if other items have the same. The longest text is too short for
/// offsets of 32 bits.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct KeyedNode(u32);

impl KeyedNode {
    const REPEATED: u32 = 1 << 31;

    pub(crate) fn new(node: NodeAt) -> Self {
        Self(node.0)
    }

    pub(crate) fn node(self) -> NodeAt {
        NodeAt(self.0 & !Self::REPEATED)
    }

    pub(crate) fn mark_repeated(&mut self) {
        self.0 |= Self::REPEATED;
    }

    pub(crate) fn is_repeated(self) -> bool {
        self.0 & Self::REPEATED != 0
    }
}

pub(super) fn index(at: u32) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}
