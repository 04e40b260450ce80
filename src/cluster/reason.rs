//! An error of the API server's, in one line.

use crate::causes::append_cause;
use std::error::Error;
use std::sync::Arc;

/// The error with its causes, each said once. Of a refusal it has the API server's own sentence, which names who, what and
/// where; the client's error says the same three times over.
pub(super) fn reason(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let said = error.to_string();
        if let Some(sentence) = refusal(error) {
            // Many an error's message repeats its source.
            if text.contains(&said) {
                return text.replace(&said, sentence);
            }
            append_cause(&mut text, sentence);
            return text;
        }
        append_cause(&mut text, &said);
        next = error.source();
    }
    text
}

fn refusal<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e str> {
    let error = error.downcast_ref().or_else(|| error.downcast_ref::<Arc<kube::Error>>().map(AsRef::as_ref))?;
    let kube::Error::Api(status) = error else { return None };
    Some(status.message.trim()).filter(|sentence| !sentence.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::SchemaError;
    use kube::core::Status;
    use kube::runtime::watcher;

    fn forbidden() -> kube::Error {
        let status = Status::failure("foos is forbidden: User \"u\" cannot list", "Forbidden").with_code(403);
        kube::Error::Api(Box::new(status))
    }

    #[test]
    fn a_refusal_is_said_in_the_api_servers_words_and_once() {
        assert_eq!(reason(&forbidden()), "foos is forbidden: User \"u\" cannot list");
        let watched = reason(&watcher::Error::InitialListFailed(forbidden()));
        assert!(watched.ends_with(": foos is forbidden: User \"u\" cannot list"), "{watched}");
        assert!(!watched.contains("Status {"), "{watched}");
        let shared = reason(&SchemaError::Index(Arc::new(forbidden())));
        assert_eq!(shared, "cannot read the index of OpenAPI documents: foos is forbidden: User \"u\" cannot list");
    }
}
