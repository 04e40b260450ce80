//! Metered memory: every allocation that grows with a request is charged before it is made.
//!
//! This module must not know how much memory there is or who shares it. The caller's [`Meter`] decides.

use crate::field_path::cut;
use std::fmt::{self, Write};
use std::io;
use std::ops::{Deref, DerefMut, Range};

/// A budget of memory for requests.
pub trait Meter: fmt::Debug {
    /// Charges bytes that are about to be allocated. Returns an error if the budget is exhausted.
    fn charge(&self, bytes: usize) -> Result<(), Exhausted>;

    /// Returns bytes to the budget that were charged and are freed.
    fn release(&self, bytes: usize);
}

/// The budget refused an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the memory for reviews is used up")]
pub struct Exhausted;

/// A meter without a limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unmetered;

impl Meter for Unmetered {
    fn charge(&self, _: usize) -> Result<(), Exhausted> {
        Ok(())
    }

    fn release(&self, _: usize) {}
}

/// A vector that charges its capacity and releases it when dropped.
#[derive(Debug)]
pub(crate) struct Buffer<'m, T> {
    items: Vec<T>,
    meter: &'m dyn Meter,
}

/// Least capacity, in bytes.
const LEAST: usize = 128;

/// Capacity doubles up to this many bytes and grows by a quarter above, to bound the unused part of large buffers.
const DOUBLED: usize = 64 * 1024;

impl<'m, T> Buffer<'m, T> {
    pub(crate) fn new(meter: &'m dyn Meter) -> Self {
        Self { items: Vec::new(), meter }
    }

    pub(crate) fn push(&mut self, item: T) -> Result<(), Exhausted> {
        self.reserve(1)?;
        self.items.push(item);
        Ok(())
    }

    pub(crate) fn extend(&mut self, items: &[T]) -> Result<(), Exhausted>
    where
        T: Copy,
    {
        self.reserve(items.len())?;
        self.items.extend_from_slice(items);
        Ok(())
    }

    /// Appends items that the buffer has.
    pub(crate) fn extend_from_within(&mut self, items: Range<usize>) -> Result<(), Exhausted>
    where
        T: Copy,
    {
        debug_assert!(items.end <= self.items.len(), "items that the buffer does not have");
        let items = items.start.min(self.items.len())..items.end.min(self.items.len());
        self.reserve(items.len())?;
        self.items.extend_from_within(items);
        Ok(())
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        self.items.truncate(length);
    }

    /// Returns the vector. Its bytes stay charged.
    pub(crate) fn keep(mut self) -> Vec<T> {
        std::mem::take(&mut self.items)
    }

    /// Makes room for `more` items.
    #[inline]
    pub(crate) fn reserve(&mut self, more: usize) -> Result<(), Exhausted> {
        let needed = self.items.len().checked_add(more).ok_or(Exhausted)?;
        if needed <= self.items.capacity() { Ok(()) } else { self.grow(needed) }
    }

    #[cold]
    fn grow(&mut self, needed: usize) -> Result<(), Exhausted> {
        let capacity = self.items.capacity();
        let growth =
            if bytes::<T>(capacity) < DOUBLED { capacity.max(LEAST / size_of::<T>().max(1)) } else { capacity / 4 };
        let target = needed.max(capacity.saturating_add(growth));
        self.meter.charge(bytes::<T>(target.saturating_sub(capacity)))?;
        self.items.reserve_exact(target.saturating_sub(self.items.len()));
        Ok(())
    }
}

impl<T> Deref for Buffer<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> DerefMut for Buffer<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}

impl io::Write for Buffer<'_, u8> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.extend(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<T> Drop for Buffer<'_, T> {
    fn drop(&mut self) {
        // Most buffers of a walk stay empty.
        if self.items.capacity() > 0 {
            self.meter.release(bytes::<T>(self.items.capacity()));
        }
    }
}

fn bytes<T>(items: usize) -> usize {
    items.saturating_mul(size_of::<T>())
}

/// Renders a text into a string whose bytes stay charged. Cuts the text after `longest` bytes, with an ellipsis.
pub(crate) fn render(meter: &dyn Meter, text: &impl fmt::Display, longest: usize) -> Result<String, Exhausted> {
    let mut length = Cut { text: None, length: 0, longest };
    // The only error is that the text is cut.
    let is_cut = write!(length, "{text}").is_err();
    let length = length.length.saturating_add(if is_cut { ELLIPSIS.len() } else { 0 });
    meter.charge(length)?;
    let mut rendered = Cut { text: Some(String::with_capacity(length)), length: 0, longest };
    let _ = write!(rendered, "{text}");
    let mut rendered = rendered.text.unwrap_or_default();
    if is_cut {
        rendered.push_str(ELLIPSIS);
    }
    Ok(rendered)
}

const ELLIPSIS: &str = "…";

/// A writer that keeps the beginning of a text, or only its length.
struct Cut {
    text: Option<String>,
    length: usize,
    longest: usize,
}

impl Write for Cut {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let fits = cut(text, self.longest.saturating_sub(self.length));
        self.length = self.length.saturating_add(fits.len());
        if let Some(kept) = &mut self.text {
            kept.push_str(fits);
        }
        if fits.len() == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[derive(Debug)]
    struct Purse {
        left: Cell<usize>,
    }

    impl Meter for Purse {
        fn charge(&self, bytes: usize) -> Result<(), Exhausted> {
            self.left.set(self.left.get().checked_sub(bytes).ok_or(Exhausted)?);
            Ok(())
        }

        fn release(&self, bytes: usize) {
            self.left.set(self.left.get() + bytes);
        }
    }

    #[test]
    fn a_buffer_is_charged_by_its_capacity_and_gives_it_back() {
        let purse = Purse { left: Cell::new(1 << 20) };
        let mut buffer = Buffer::new(&purse);
        for item in 0..100_000_u32 {
            buffer.push(item).unwrap();
            assert_eq!((1 << 20) - purse.left.get(), 4 * buffer.items.capacity());
        }
        assert!(buffer.items.capacity() < 130_000, "{}", buffer.items.capacity());
        drop(buffer);
        assert_eq!(purse.left.get(), 1 << 20);
    }

    #[test]
    fn a_buffer_does_not_grow_beyond_its_meter() {
        let purse = Purse { left: Cell::new(1000) };
        let mut buffer = Buffer::new(&purse);
        let pushed = (0..1000_u32).take_while(|item| buffer.push(*item).is_ok()).count();
        assert!((100..=250).contains(&pushed), "{pushed}");
        assert!(buffer.items.capacity() * 4 <= 1000);
        let kept = buffer.keep();
        assert_eq!(1000 - purse.left.get(), kept.capacity() * 4);
    }

    #[test]
    fn a_rendered_text_takes_what_is_charged() {
        let purse = Purse { left: Cell::new(5) };
        assert_eq!(render(&purse, &12345, 5).unwrap(), "12345");
        assert_eq!(purse.left.get(), 0);
        assert_eq!(render(&purse, &1, 5), Err(Exhausted));
        let cut = render(&Unmetered, &format_args!("ab{}", "éé"), 5).unwrap();
        assert_eq!((&*cut, cut.capacity()), ("abé…", "abé…".len()));
    }
}
