//! Finds the name that a misspelt one was meant to be.

/// Most names that are compared, and longest name in bytes: the comparison takes the product of the lengths.
const MOST: usize = 512;
const LONGEST: usize = 48;

/// Returns the known name that differs from `name` by letter case, or by at most two edits. A short name must differ by
/// less, since any two short names are similar.
pub(crate) fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let most = (name.len() / 3).min(2);
    if name.len() > LONGEST {
        return None;
    }
    let distance = |known: &str| {
        let similar = known.len().abs_diff(name.len()) <= most;
        if known.eq_ignore_ascii_case(name) { Some(0) } else { similar.then(|| strsim::osa_distance(name, known)) }
    };
    let known = known.into_iter().take(MOST).filter(|known| *known != name);
    let near = known.filter_map(|known| Some((distance(known).filter(|distance| *distance <= most)?, known)));
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
        let long = "x".repeat(10_000);
        assert_eq!(nearest(&long, [&*format!("{long}y")]), None);
    }
}
