//! Reads requests line by line, and answers each before it reads the next. The size of a request is bounded.

use crate::answer::{ErrorObject, FaultReason, write_answer};
use crate::methods;
use crate::request::Request;
use crate::schemas::SchemaCache;
use serde_json::error::Category;
use serde_json::value::RawValue;
use std::io::{BufRead, Read, Result, Write};

/// Longest request in bytes.
const LONGEST: usize = 64 * 1024 * 1024;

/// Largest buffer that is kept for the next request.
const KEPT: usize = 1024 * 1024;

/// Answers requests until the input ends. Returns the first error of the input or the output.
///
/// ```
/// let requests = concat!(
///     r#"{"jsonrpc":"2.0","id":1,"method":"define","params":{"schema":"site","source":{"jsonSchema":{"name":"Site","document":{}}}}}"#,
///     "\n",
///     r#"{"jsonrpc":"2.0","id":2,"method":"apply","params":{"schema":"site","original":{"price":1.10,"old":1},"patch":{"old":null}}}"#,
/// );
/// let mut answers = Vec::new();
/// strategic_merge_patch_stdio::serve(requests.as_bytes(), &mut answers)?;
/// assert_eq!(String::from_utf8(answers)?, concat!(
///     r#"{"jsonrpc":"2.0","id":1,"result":{"warnings":[]}}"#, "\n",
///     r#"{"jsonrpc":"2.0","id":2,"result":{"price":1.10}}"#, "\n",
/// ));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn serve(mut input: impl BufRead, mut output: impl Write) -> Result<()> {
    let mut schemas = SchemaCache::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        line.shrink_to(KEPT);
        let read = input.by_ref().take(LONGEST as u64 + 1).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        if read > LONGEST && line.last() != Some(&b'\n') {
            skip_line(&mut input)?;
            let fault =
                ErrorObject::new(FaultReason::InvalidRequest, format!("the request is longer than {LONGEST} bytes"));
            write_answer(&mut output, None, Err(fault))?;
        } else if !line.trim_ascii().is_empty() {
            answer(&line, &mut schemas, &mut output)?;
        }
    }
}

fn answer(line: &[u8], schemas: &mut SchemaCache, output: &mut impl Write) -> Result<()> {
    match read(line) {
        Err(fault) => write_answer(output, None, Err(fault)),
        Ok(request) => {
            let outcome = methods::run(&request, schemas);
            match request.id {
                Some(id) => write_answer(output, Some(id), outcome),
                None => Ok(()),
            }
        }
    }
}

fn read(line: &[u8]) -> std::result::Result<Request<'_>, ErrorObject> {
    let text =
        std::str::from_utf8(line).map_err(|error| ErrorObject::new(FaultReason::ParseError, error.to_string()))?;
    if text.trim_start().starts_with('[') {
        return Err(ErrorObject::new(
            FaultReason::InvalidRequest,
            "a request must be an object: send several on lines of their own",
        ));
    }
    let request: Request<'_> = serde_json::from_str(text).map_err(|error| {
        let reason = match error.classify() {
            Category::Data => FaultReason::InvalidRequest,
            Category::Io | Category::Syntax | Category::Eof => FaultReason::ParseError,
        };
        ErrorObject::new(reason, error.to_string())
    })?;
    let is_id = |id: &RawValue| id.get() == "null" || id.get().starts_with(|c: char| "-\"0123456789".contains(c));
    if request.id.is_some_and(|id| !is_id(id)) {
        return Err(ErrorObject::new(FaultReason::InvalidRequest, "`id` must be a number, a string or null"));
    }
    Ok(request)
}

/// Reads up to the end of the line.
fn skip_line(input: &mut impl BufRead) -> Result<()> {
    input.skip_until(b'\n').map(|_| ())
}
