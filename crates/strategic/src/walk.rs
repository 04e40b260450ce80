//! Walks documents without recursion: the open levels are on the heap, so a deep document costs no stack.
//!
//! A [`Level`] is one object or list whose parts are visited in order. The walk knows no rule of the patch format. `apply`,
//! `create` and `strip_directives` bring the levels with the rules.

use crate::context::Context;
use crate::error::BrokenAt;
use crate::schema::NodeId;
use kube_unions_core::field_path::Segment;

/// An object or a list whose parts are being visited.
pub(crate) trait Level<'a>: Sized {
    /// The result of a level, which the level around it receives.
    type Output;

    /// Receives the output of the part that was entered last, and visits parts until one is a level of its own.
    fn step(&mut self, context: &Context<'a>, part: Option<Self::Output>) -> Result<Next<'a, Self>, BrokenAt>;
}

/// The next move of a walk.
#[derive(Debug)]
pub(crate) enum Next<'a, L: Level<'a>> {
    /// Enters a part.
    Into(Step<'a>, L),
    /// Leaves the level.
    Done(L::Output),
}

/// The step from a level to one of its parts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step<'a> {
    /// A field of an object of this type.
    Field(NodeId, &'a str),
    /// An item of a list, by its position.
    Item(usize),
}

impl Step<'_> {
    /// Returns the step as a path writes it.
    pub(crate) fn segment(self, context: &Context<'_>) -> Segment {
        match self {
            Self::Field(node, name) => context.schema.step(node, name),
            Self::Item(position) => Segment::Index(position),
        }
    }
}

/// Walks a level and everything below it. The path of an error starts at this level.
pub(crate) fn walk<'a, L: Level<'a>>(context: &Context<'a>, root: L) -> Result<L::Output, BrokenAt> {
    let mut around: Vec<(L, Step<'a>)> = Vec::new();
    let mut level = root;
    let mut part = None;
    loop {
        match level.step(context, part.take()) {
            Ok(Next::Into(step, inner)) => around.push((std::mem::replace(&mut level, inner), step)),
            Ok(Next::Done(output)) => match around.pop() {
                None => return Ok(output),
                Some((outer, _)) => {
                    level = outer;
                    part = Some(output);
                }
            },
            Err(broken) => return Err(broken.below(around.iter().map(|(_, step)| step.segment(context)))),
        }
    }
}
