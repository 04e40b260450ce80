//! Formats an error of the API server as one line.

use crate::causes::append_cause;
use std::error::Error;
use std::sync::Arc;

/// Returns an error with its causes, each once. A refusal is reduced to the API server's own sentence, which names the user, the
/// verb and the resource; the client's error repeats it.
pub(crate) fn reason(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let said = error.to_string();
        if let Some(sentence) = refusal(error) {
            // Some messages repeat their source.
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
    use kube::core::Status;
    use kube::runtime::watcher;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read the index")]
    struct Shared(#[source] Arc<kube::Error>);

    fn forbidden() -> kube::Error {
        let status = Status::failure("foos is forbidden: User \"u\" cannot list", "Forbidden").with_code(403);
        kube::Error::Api(Box::new(status))
    }

    #[test]
    fn a_refusal_is_formatted_once_in_the_api_servers_words() {
        assert_eq!(reason(&forbidden()), "foos is forbidden: User \"u\" cannot list");
        let watched = reason(&watcher::Error::InitialListFailed(forbidden()));
        assert!(watched.ends_with(": foos is forbidden: User \"u\" cannot list"), "{watched}");
        assert!(!watched.contains("Status {"), "{watched}");
        let shared = reason(&Shared(Arc::new(forbidden())));
        assert_eq!(shared, "cannot read the index: foos is forbidden: User \"u\" cannot list");
    }
}
