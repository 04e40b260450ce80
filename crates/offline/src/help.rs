//! The pages of the book about what a report says, and their addresses. A finding has the address of its page.

use std::fmt;

/// A page of the book, perhaps with a heading: a path below `docs`, as a link there has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HelpPage(&'static str);

impl HelpPage {
    // Pages about sentences of the API server.
    pub const ERRORS: Self = Self("errors/index.md");
    pub const BACKEND: Self = Self("errors/backend.md");
    pub const BUDGET: Self = Self("errors/budget.md");
    pub const DECODE: Self = Self("errors/decode.md");
    pub const EXACTLY_ONE: Self = Self("errors/exactly-one.md");
    pub const HANDLER: Self = Self("errors/handler.md");
    pub const IMMUTABLE: Self = Self("errors/immutable.md");
    pub const IMMUTABLE_SOURCE: Self =
        Self("errors/immutable.md#specpersistentvolumesource-is-immutable-after-creation");
    pub const METRIC: Self = Self("errors/metric.md");
    pub const NULL: Self = Self("errors/null.md");
    pub const ON_DELETE: Self = Self("errors/on-delete.md");
    pub const ONE_OF: Self = Self("errors/one-of.md");
    pub const PORT: Self = Self("errors/port.md");
    pub const PROFILE: Self = Self("errors/profile.md");
    pub const RECREATE: Self = Self("errors/recreate.md");
    pub const SERVICE: Self = Self("errors/service.md");
    pub const VALUE_FROM: Self = Self("errors/value-from.md");
    pub const VOLUME: Self = Self("errors/volume.md");

    // Pages about messages of kube-unions.
    pub const AGAINST: Self = Self("reference/findings.md#lint---against");
    pub const CLEARED: Self = Self("reference/messages.md#warnings-of-allowed-writes");
    pub const DENIALS: Self = Self("reference/messages.md#denials");
    pub const GENERATE: Self = Self("reference/findings.md#generate");
    pub const HOOKS: Self = Self("guide/preview.md#hooks");
    pub const JUDGED: Self = Self("guide/preview.md#what-is-judged");
    pub const LINT: Self = Self("reference/findings.md#lint");
    pub const MATRIX: Self = Self("guide/kustomize-and-helm.md#values-that-contradict-a-chart");
}

impl HelpPage {
    /// Returns the address below the root of the site.
    pub fn page(self) -> String {
        self.0.replacen(".md", ".html", 1)
    }
}

impl fmt::Display for HelpPage {
    /// Writes the address of the page in the published book.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", env!("CARGO_PKG_HOMEPAGE"), self.page())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    impl HelpPage {
        const ALL: [Self; 26] = [
            Self::ERRORS,
            Self::BACKEND,
            Self::BUDGET,
            Self::DECODE,
            Self::EXACTLY_ONE,
            Self::HANDLER,
            Self::IMMUTABLE,
            Self::IMMUTABLE_SOURCE,
            Self::METRIC,
            Self::NULL,
            Self::ON_DELETE,
            Self::ONE_OF,
            Self::PORT,
            Self::PROFILE,
            Self::RECREATE,
            Self::SERVICE,
            Self::VALUE_FROM,
            Self::VOLUME,
            Self::AGAINST,
            Self::CLEARED,
            Self::DENIALS,
            Self::GENERATE,
            Self::HOOKS,
            Self::JUDGED,
            Self::LINT,
            Self::MATRIX,
        ];

        fn file(self) -> PathBuf {
            let path = self.0.split('#').next().unwrap();
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(path)
        }

        /// Returns the text of the page.
        pub(crate) fn read(self) -> String {
            fs::read_to_string(self.file()).unwrap_or_else(|error| panic!("{self}: {error}"))
        }
    }

    /// The pages about sentences that no command predicts, each with the reason.
    const NOT_PREDICTED: [(&str, &str); 3] = [
        ("conflict.md", "a preview overwrites conflicts"),
        ("rule-cost.md", "only an API server estimates the cost of a rule"),
        ("unknown-field.md", "the schemas of built-in kinds that commands know have unions alone"),
    ];

    fn anchor(heading: &str) -> String {
        let kept = heading.chars().filter(|it| it.is_alphanumeric() || " -_".contains(*it));
        kept.map(|it| if it == ' ' { '-' } else { it.to_ascii_lowercase() }).collect()
    }

    #[test]
    fn every_page_has_its_heading() {
        for page in HelpPage::ALL {
            let text = page.read();
            let Some((_, wanted)) = page.0.split_once('#') else { continue };
            let mut headings = text.lines().filter_map(|line| line.strip_prefix("## "));
            assert!(headings.any(|heading| anchor(heading) == wanted), "{page}");
        }
    }

    #[test]
    fn every_page_about_a_sentence_is_that_of_a_finding() {
        let known: BTreeSet<String> = HelpPage::ALL
            .iter()
            .filter_map(|page| page.0.strip_prefix("errors/"))
            .map(|name| name.split('#').next().unwrap().to_owned())
            .collect();
        let not_predicted = NOT_PREDICTED.map(|(name, _)| name.to_owned());
        let pages = fs::read_dir(HelpPage::ERRORS.file().parent().unwrap()).unwrap();
        let pages: BTreeSet<String> = pages.map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
        assert_eq!(known.into_iter().chain(not_predicted).collect::<BTreeSet<_>>(), pages);
    }

    #[test]
    fn an_address_is_below_that_of_the_book() {
        let addresses = [HelpPage::RECREATE, HelpPage::DENIALS].map(|page| page.to_string());
        assert_eq!(
            addresses,
            ["https://kube-unions.dev/errors/recreate.html", "https://kube-unions.dev/reference/messages.html#denials"]
        );
    }
}
