//! Reads the tags of fields.

use crate::quoting::quoted;
use crate::types::JsonTag;

/// Returns the `json` key of a tag, for example of `protobuf:"…" json:"name,omitempty"`.
pub(super) fn json_tag(tag: &str) -> JsonTag {
    let mut rest = tag.trim_start();
    while let Some((key, after)) = rest.split_once(':') {
        let Some(Ok((value, after))) = quoted(after) else { break };
        if key.trim() == "json" {
            let (name, options) = value.split_once(',').unwrap_or((&value, ""));
            return JsonTag {
                name: Some(name).filter(|name| !name.is_empty()).map(Into::into),
                inline: options.split(',').any(|option| option == "inline"),
                skipped: value == "-",
            };
        }
        rest = after.trim_start();
    }
    JsonTag::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_json_key_among_others() {
        let tag = |name: Option<&str>, inline, skipped| JsonTag { name: name.map(Into::into), inline, skipped };
        let rows = [
            (r#"json:"canary,omitempty""#, tag(Some("canary"), false, false)),
            (r#"protobuf:"bytes,1,opt,name=\"x\"" json:"canary""#, tag(Some("canary"), false, false)),
            (r#"json:",inline""#, tag(None, true, false)),
            (r#"json:"-""#, tag(Some("-"), false, true)),
            (r#"json:"-,""#, tag(Some("-"), false, false)),
            (r#"yaml:"x""#, tag(None, false, false)),
            ("json:\"x", tag(None, false, false)),
            ("", tag(None, false, false)),
        ];
        for (text, expected) in rows {
            assert_eq!(json_tag(text), expected, "{text}");
        }
    }
}
