//! Skips over a JSON value, and checks that it is one. Every function takes and returns offsets of bytes, and returns `None` if
//! the text is not JSON.

/// The most calls of [`inside`] in each other. Each skips [`u64::BITS`] levels of nesting.
const CALLS: u32 = 160;

/// Returns the next byte that is not white space, and its offset.
#[inline]
pub(super) fn white_space(text: &[u8], mut at: usize) -> Option<(u8, usize)> {
    loop {
        match *text.get(at)? {
            b' ' | b'\n' | b'\r' | b'\t' => at += 1,
            byte => return Some((byte, at)),
        }
    }
}

/// Returns the end of a string, and true if it has escapes. `at` is after the first quote, the end after the last one.
#[inline]
pub(super) fn string_end(text: &[u8], mut at: usize) -> Option<(usize, bool)> {
    let mut escaped = false;
    loop {
        while let Some(chunk) = text.get(at..).and_then(|rest| rest.first_chunk()) {
            match first_special(u64::from_le_bytes(*chunk)) {
                Some(offset) => {
                    at += offset;
                    break;
                }
                None => at += 8,
            }
        }
        match *text.get(at)? {
            b'"' => return Some((at + 1, escaped)),
            b'\\' => {
                escaped = true;
                at = escape_end(text, at + 1)?;
            }
            0..=0x1f => return None,
            _ => at += 1,
        }
    }
}

/// Returns the position of the first quote, backslash or control character in eight bytes.
#[inline]
fn first_special(bytes: u64) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // Sets the highest bit of the first byte that is less than `limit`, and perhaps of bytes after it.
    let less = |bytes: u64, limit: u64| bytes.wrapping_sub(ONES * limit) & !bytes;
    let quote = less(bytes ^ (ONES * 0x22), 1);
    let backslash = less(bytes ^ (ONES * 0x5c), 1);
    let special = (quote | backslash | less(bytes, 0x20)) & (ONES << 7);
    (special != 0).then(|| special.trailing_zeros() as usize / 8)
}

fn escape_end(text: &[u8], at: usize) -> Option<usize> {
    match *text.get(at)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 1),
        b'u' => text.get(at + 1..at + 5)?.iter().all(u8::is_ascii_hexdigit).then_some(at + 5),
        _ => None,
    }
}

#[inline]
pub(super) fn number(text: &[u8], mut at: usize) -> Option<usize> {
    let digits = |mut at: usize| {
        while text.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let some_digits = |at: usize| Some(digits(at)).filter(|end| *end > at);
    if text.get(at) == Some(&b'-') {
        at += 1;
    }
    let leading_zero = text.get(at) == Some(&b'0');
    at = some_digits(at).filter(|end| !leading_zero || *end == at + 1)?;
    if text.get(at) == Some(&b'.') {
        at = some_digits(at + 1)?;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1;
        if matches!(text.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        at = some_digits(at)?;
    }
    Some(at)
}

#[inline]
fn literal(text: &[u8], at: usize, word: &str) -> Option<usize> {
    text.get(at..)?.starts_with(word.as_bytes()).then_some(at + word.len())
}

/// Returns the end of the value whose first byte is at `at`. Needs no memory, and gives up at 10,240 levels of nesting.
#[inline]
pub(super) fn skip(text: &[u8], at: usize) -> Option<usize> {
    value(text, *text.get(at)?, at, CALLS)
}

#[inline]
fn value(text: &[u8], first: u8, at: usize, calls: u32) -> Option<usize> {
    match first {
        b'"' => string_end(text, at + 1).map(|(end, _)| end),
        b'{' | b'[' => inside(text, first, at, calls.checked_sub(1)?),
        b'-' | b'0'..=b'9' => number(text, at),
        b't' => literal(text, at, "true"),
        b'f' => literal(text, at, "false"),
        b'n' => literal(text, at, "null"),
        _ => None,
    }
}

/// Skips a list or a map, at its first bracket. Each turn of the outer loop skips one value, or its first bracket.
fn inside(text: &[u8], mut byte: u8, mut at: usize, calls: u32) -> Option<usize> {
    // The open lists and maps, a bit for each below a one, and true for a map.
    let mut open = 1_u64;
    loop {
        if matches!(byte, b'{' | b'[') && open >> 63 == 0 {
            let is_map = byte == b'{';
            (byte, at) = white_space(text, at + 1)?;
            if byte != if is_map { b'}' } else { b']' } {
                open = open << 1 | u64::from(is_map);
                if is_map {
                    (byte, at) = after_name(text, byte, at)?;
                }
                continue;
            }
            at += 1;
        } else {
            at = value(text, byte, at, calls)?;
        }
        // Behind a value.
        loop {
            if open == 1 {
                return Some(at);
            }
            let is_map = open & 1 == 1;
            (byte, at) = white_space(text, at)?;
            if byte == b',' {
                (byte, at) = white_space(text, at + 1)?;
                if is_map {
                    (byte, at) = after_name(text, byte, at)?;
                }
                break;
            }
            if byte != if is_map { b'}' } else { b']' } {
                return None;
            }
            open >>= 1;
            at += 1;
        }
    }
}

/// Returns the first byte of a field's value, and its offset.
#[inline]
fn after_name(text: &[u8], first: u8, at: usize) -> Option<(u8, usize)> {
    if first != b'"' {
        return None;
    }
    let (end, _) = string_end(text, at + 1)?;
    match white_space(text, end)? {
        (b':', at) => white_space(text, at + 1),
        _ => None,
    }
}
