//! Finds the name that a misspelt one was meant to be.

/// Most names that are compared, and longest name in bytes: the comparison takes the product of the lengths.
const MOST: usize = 512;
const LONGEST: usize = 48;

/// Returns the known name that differs from `name` by letter case, or by at most two edits. A short name must differ by
/// less, since any two short names are similar.
///
/// An edit is an insertion, deletion or substitution of a character, or a swap of two neighbours.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    within(name, known, 2)
}

/// Returns the known name that differs from `name` by letter case, or by one edit. A name of one or two letters must differ
/// by case only.
pub fn one_edit_off<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    within(name, known, 1)
}

fn within<'k>(name: &str, known: impl IntoIterator<Item = &'k str>, edits: usize) -> Option<&'k str> {
    let most = (name.len() / 3).min(edits);
    if name.len() > LONGEST {
        return None;
    }
    let distance = |known: &str| {
        if known.eq_ignore_ascii_case(name) { 0 } else { strsim::osa_distance(name, known) }
    };
    let similar = |known: &&str| *known != name && known.len().abs_diff(name.len()) <= most;
    let known = known.into_iter().filter(similar).take(MOST);
    let near = known.map(|known| (distance(known), known)).filter(|(distance, _)| *distance <= most);
    near.min().map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_has_a_nearest_one_and_another_name_has_none() {
        for (name, known, nearest_known) in [
            ("canery", &["blueGreen", "canary"][..], Some("canary")),
            ("canray", &["canary"], Some("canary")),
            ("bluegreen", &["blueGreen"], Some("blueGreen")),
            ("rollingUpdat", &["rollingUpdate", "rollingUpdates"], Some("rollingUpdate")),
            ("git", &["oci"], None),
            ("gti", &["git"], Some("git")),
            ("a", &["b", "ab"], None),
            ("D", &["c", "d"], Some("d")),
            ("webhook", &["webhook", "vault"], None),
            ("", &["a"], None),
        ] {
            assert_eq!(nearest(name, known.iter().copied()), nearest_known, "{name}");
        }
        assert_eq!(one_edit_off("canary", ["canray", "canery"]), Some("canery"));
        assert_eq!(one_edit_off("TCPRoute", ["TLSRoute", "tcproute"]), Some("tcproute"));
        assert_eq!(one_edit_off("TCPRoute", ["TLSRoute"]), None);
        let long = "x".repeat(10_000);
        assert_eq!(nearest(&long, [&*format!("{long}y")]), None);
    }
}
