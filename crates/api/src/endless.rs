//! Finds lists whose pages do not end, as those of a broken API server, or of a proxy in front of it.
//!
//! Knows nothing of requests: [`list`](super::list) tells each page.

/// Maximum number of objects in a list that is kept in memory. Large clusters have some thousand CRDs.
pub(super) const MOST_OBJECTS: usize = 20_000;

/// Maximum size of the texts of these objects, in bytes.
const MOST_BYTES: usize = 1 << 30;

/// Maximum number of pages in a row without an object.
const MOST_EMPTY: usize = 1000;

/// The reason why a list is not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndlessList {
    /// A page leads to itself, or to an earlier one.
    #[error("the list does not end: its pages come again; check the API server, and a proxy in front of it")]
    Circle,
    /// Page after page has no object.
    #[error(
        "the list does not end: {MOST_EMPTY} pages in a row are empty; check the API server, and a proxy in front of it"
    )]
    Empty,
    /// It has more objects than memory may hold.
    #[error("the list has more than {MOST_OBJECTS} objects; delete some, or check the API server if it has fewer")]
    Objects,
    /// Its objects are larger than memory may hold.
    #[error(
        "the objects of the list have more than {MOST_BYTES} bytes; delete some, or check the API server if they have fewer"
    )]
    Bytes,
}

/// The pages of a list so far.
#[derive(Debug)]
pub(super) struct ListLength {
    /// Objects and bytes that may still come, if the objects are kept in memory.
    left: Option<[usize; 2]>,
    /// Pages without an object since the last object.
    empty: usize,
    /// The token of an earlier page, to find a circle by: that of the page at the last power of two (Brent's algorithm).
    mark: Box<str>,
    /// Pages since then, and until the next one.
    lap: [usize; 2],
}

impl ListLength {
    /// Returns the length of a list of which nothing was read. `kept`: its objects are kept in memory.
    pub(super) fn new(kept: bool) -> Self {
        Self { left: kept.then_some([MOST_OBJECTS, MOST_BYTES]), empty: 0, mark: Box::default(), lap: [0, 1] }
    }

    /// Counts a page. `next` is the token of the page after it, `None` at the end.
    pub(super) fn count(&mut self, objects: usize, bytes: usize, next: Option<&str>) -> Result<(), EndlessList> {
        if let Some([objects_left, bytes_left]) = &mut self.left {
            *objects_left = objects_left.checked_sub(objects).ok_or(EndlessList::Objects)?;
            *bytes_left = bytes_left.checked_sub(bytes).ok_or(EndlessList::Bytes)?;
        }
        let Some(next) = next else { return Ok(()) };
        self.empty = if objects == 0 { self.empty + 1 } else { 0 };
        if self.empty > MOST_EMPTY {
            return Err(EndlessList::Empty);
        }
        if *self.mark == *next {
            return Err(EndlessList::Circle);
        }
        let [since, until] = &mut self.lap;
        *since += 1;
        if since == until {
            (*since, *until) = (0, until.saturating_mul(2));
            self.mark = next.into();
        }
        Ok(())
    }

    /// Forgets the tokens, because the list begins again with others.
    pub(super) fn restart(&mut self) {
        (self.mark, self.lap) = (Box::default(), [0, 1]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of pages that are read, and the reason why no more are.
    fn read(kept: bool, pages: impl IntoIterator<Item = (usize, usize, String)>) -> (usize, Option<EndlessList>) {
        let mut length = ListLength::new(kept);
        let mut pages = pages.into_iter();
        let mut read = 0;
        let end = pages.find_map(|(objects, bytes, next)| {
            read += 1;
            length.count(objects, bytes, Some(&next)).err()
        });
        (read, end)
    }

    #[test]
    fn every_list_without_an_end_is_found_and_a_long_one_is_none() {
        let tokens = || (0..).map(|number: usize| number.to_string());
        let round =
            |first: usize, length: usize| (0..).map(move |page: usize| page.min(first + page % length).to_string());
        for kept in [true, false] {
            for (first, length) in [(0, 1), (0, 2), (5, 3), (100, 40)] {
                let (pages, end) = read(kept, round(first, length).take(1_000).map(|next| (1, 10, next)));
                assert_eq!(end, Some(EndlessList::Circle), "{first} {length}");
                assert!(pages <= 3 * (first + length) + 2, "{pages} pages of {first} and {length}");
            }
            assert_eq!(read(kept, tokens().map(|next| (0, 0, next))), (MOST_EMPTY + 1, Some(EndlessList::Empty)));
            let sparse = tokens().take(10 * MOST_EMPTY).map(|next| (usize::from(next.ends_with("00")), 10, next));
            assert_eq!(read(kept, sparse), (10 * MOST_EMPTY, None));
        }
        let objects = || tokens().take(1_000).map(|next| (MOST_OBJECTS / 100, 10, next));
        assert_eq!((read(true, objects()), read(false, objects())), ((101, Some(EndlessList::Objects)), (1_000, None)));
        let bytes = || tokens().take(1_000).map(|next| (1, MOST_BYTES / 100 + 1, next));
        assert_eq!((read(true, bytes()), read(false, bytes())), ((100, Some(EndlessList::Bytes)), (1_000, None)));
    }
}
