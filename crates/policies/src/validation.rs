//! Validation: the expressions of `ValidatingAdmissionPolicies`, in the words of
//! [`Violation`](kube_unions_core::union::Violation).
//!
//! A policy tells only the first of its validations that fails, so each policy has one validation, which joins all faults.

use crate::cel::{one_line, printable, text};
use crate::claims::{self, ClaimExpressions};
use crate::condition::Watched;
use crate::members::{Algorithm, Members, backticked, name_of, words};
use crate::places::{Places, Purpose, SEPARATOR};
use crate::variables::Variables;
use kube_unions_core::schema::Actions;
use kube_unions_core::union::{Part, UnionPlace};

/// The treatment of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Treatment {
    /// Faults that were there before are let through.
    pub(crate) ratchet: bool,
    /// Overrides the actions of the declarations.
    pub(crate) actions: Option<Actions>,
    /// The API server knows `flatten` and `sortBy`.
    pub(crate) list_functions: bool,
}

/// A validating policy, without its frame.
#[derive(Debug)]
pub(crate) struct Validation {
    pub(crate) variables: Variables,
    /// True if there is no fault.
    pub(crate) expression: String,
    /// All faults, in the order of paths.
    pub(crate) message: String,
    /// False for a request that cannot fail. `None` if every request may.
    pub(crate) condition: Option<String>,
}

/// The longest message, in bytes. The API server replaces longer ones by a fixed text.
const LONGEST_MESSAGE: usize = 5000;

/// Most faults that are sorted: an API server charges the square of their number. More do not fit into a message anyway.
const MOST_SORTED: usize = 400;

/// Characters that are kept of a longer message: each takes at most four bytes.
const KEPT: usize = LONGEST_MESSAGE / 4 - 3;

const UNCHANGED: &str = "; let through because the union did not change";
const WARN_ONLY: &str = "; let through because its declaration only warns";

/// Compiles the faults of places to which a binding with these actions reacts. Returns `None` if there can be none.
pub(crate) fn compile(
    part: Part,
    places: &[UnionPlace<'_>],
    actions: Actions,
    treatment: Treatment,
) -> Option<Validation> {
    let mut variables = Variables::default();
    claims::add(part, &mut variables);
    let mut entries = Places::new(Purpose::Validation, treatment.list_functions);
    let (mut faults, mut watched) = (Vec::new(), Watched::default());
    for place in places {
        for (position, union) in place.unions.iter().enumerate() {
            let declared = treatment.actions.unwrap_or(union.actions());
            let Some((wanted, suffix)) = wanted(declared, actions, treatment.ratchet) else { continue };
            watched.add(&place.steps, None);
            let entry = entries.variable(&place.steps, &mut variables);
            let name = name_of(&entry, union);
            let members = Members::new(union, &name, &mut variables);
            let dot = if place.steps.is_empty() { "" } else { "." };
            let union = UnionFaults { entry: &entry, dot, position, members: &members };
            let expression = match Algorithm::of(members.union) {
                Algorithm::Map(discriminator) => union.of_map(discriminator, &name, &mut variables),
                Algorithm::Discriminated(discriminator) if members.union.is_normalized() => {
                    union.of_list(Some(discriminator))
                }
                Algorithm::Discriminated(discriminator) => union.of_list_alone(discriminator),
                Algorithm::Undiscriminated => union.of_list(None),
            };
            let found = variables.add(&format!("{name}_faults"), expression);
            let lines = entries.flat(&format!("{found}.map(f, {wanted}, f.faults)"));
            let line = if suffix.is_empty() { lines } else { with_suffix(&lines, suffix) };
            faults.push(line);
        }
    }
    if faults.is_empty() {
        return None;
    }
    let all = variables.add("faults", faults.join(" + "));
    let sorted = if treatment.list_functions {
        format!("(size({all}) <= {MOST_SORTED} ? {all}.sortBy(f, string(f.by)) : {all})")
    } else {
        all.clone()
    };
    let told_text = format!("{sorted}.map(f, string(f.text)).join(\"; \")");
    let told_text = variables.add("told", told_text);
    let message = format!(
        "size(bytes({told_text})) <= {LONGEST_MESSAGE} ? {told_text} : {told_text}.substring(0, {KEPT}) + \"…\""
    );
    // A fault of a union that the request left as it was never denies.
    let condition =
        (actions.denies() && treatment.ratchet).then(|| format!("oldObject == null || {}", watched.into_expression()));
    Some(Validation { variables, expression: format!("size({all}) == 0"), message, condition })
}

/// Returns the faults of a union that a binding reacts to, as a condition on `f`, with the end of their text. `None` if the
/// binding is not for this union.
fn wanted(declared: Actions, binding: Actions, ratchet: bool) -> Option<(&'static str, &'static str)> {
    match (declared, binding) {
        (Actions::Deny { .. }, Actions::Deny { .. }) if declared == binding => {
            Some((if ratchet { "!f.known" } else { "true" }, ""))
        }
        // A fault that was there before is a warning.
        (Actions::Deny { audit }, Actions::Warn { audit: audits }) if audit == audits && ratchet => {
            Some(("f.known", UNCHANGED))
        }
        (Actions::Warn { .. }, Actions::Warn { .. }) if declared == binding => Some(("true", WARN_ONLY)),
        (Actions::Audit, Actions::Audit) => Some(("true", "")),
        (Actions::Deny { .. } | Actions::Warn { .. } | Actions::Audit, _) => None,
    }
}

/// Returns names, a list that is not empty, in backticks and with "and" before the last one. `names` is evaluated several times.
fn joined(names: &str) -> String {
    let last = format!("{names}[size({names}) - 1]");
    format!(
        "(size({names}) == 1 ? \"\" : \"`\" + {names}.filter(x, x != {last}).join(\"`, `\") + \"` and \") + \"`\" + {last} + \"`\""
    )
}

fn with_suffix(lines: &str, suffix: &str) -> String {
    format!("{lines}.map(f, {{\"by\": dyn(f.by), \"text\": dyn(f.text + {})}})", text(suffix))
}

/// The faults of a union at a place: a list of `{known, faults}`, and in `faults` of `{by, text}`.
struct UnionFaults<'a> {
    /// The variable of the place.
    entry: &'a str,
    /// Separates the path of the object and a field.
    dot: &'static str,
    /// The position of the union in its object.
    position: usize,
    members: &'a Members<'a>,
}

impl UnionFaults<'_> {
    /// Returns the faults of the 2022 form: the discriminator and the members must agree.
    fn of_map(&self, discriminator: &str, name: &str, variables: &mut Variables) -> String {
        let Self { entry, members, .. } = *self;
        let (now, set) = (members.discriminator_in("p.new"), members.set_in("p.new"));
        let (wrong, selects) = (members.is_wrong_type(), &members.selects);
        let selected = format!("{selects}[u.now]");
        let needs = members
            .required()
            .map(|required| variables.constant(&format!("{name}_required"), required))
            .map(|required| format!("u.now in {required} && !({selected} in u.set)"));
        let values = variables.constant(&format!("{name}_values"), members.listed_values());
        // Nothing at all is a fault only if a choice is required.
        let guard = if members.union.is_required() { "" } else { "(u.now != \"\" || size(u.set) > 0) && " };
        let is_faulty = format!(
            "{guard}(!(u.now in {selects}) || u.set.exists(m, m != {selected}){})",
            needs.as_ref().map(|needs| format!(" || {needs}")).unwrap_or_default()
        );
        let quoted = backticked(discriminator);
        let only = words(&[": Forbidden: may only be specified when ", &quoted, " is "]);
        let hint = words(&["; remove it, or change ", &quoted, " to switch the member"]);
        let unchanged = format!("u.p.old.exists(o, {} == u.now)", members.discriminator_in("o"));
        let blamed = format!(
            "u.set.filter(m, m != {selected}).map(m, {})",
            self.fault("m", &format!("{only} + {values}[m] + ({unchanged} ? {hint} : \"\")"))
        );
        let told = self.told_by_manifest(Some(&format!("m == {selected}")));
        let blamed = format!("[{told}].map(t, !u.set.exists(m, m != {selected}) ? [] : size(t) > 0 ? t : {blamed})[0]");
        let missing = needs.map_or_else(String::new, |needs| {
            let needed = words(&[": Required value: must be specified when ", &quoted, " is \""]);
            let fault = self.fault(&selected, &format!("{needed} + {} + \"\\\"\"", one_line("u.now".to_owned())));
            format!(" + ({needs} ? [{fault}] : [])")
        });
        let at = text(discriminator);
        let required = words(&[": Required value: must be specified when `"]);
        let required = self.fault(&at, &format!("{required} + u.set[0] + \"` is set\""));
        let without_value = if members.union.is_required() {
            let chosen = words(&[": Required value: must be specified: supported values: ", &members.supported()]);
            format!("(size(u.set) == 0 ? [{}] : [{required}])", self.fault(&at, &chosen))
        } else {
            format!("[{required}]")
        };
        let unsupported = text(": Unsupported value: \"");
        let supported = words(&["\": supported values: ", &members.supported()]);
        let unknown = self.fault(&at, &format!("{unsupported} + {} + {supported}", printable("u.now")));
        let state = format!("{{\"p\": dyn(p), \"now\": dyn({now}), \"set\": dyn({set})}}");
        format!(
            "{entry}.map(p, !({wrong}), {state}).filter(u, {is_faulty}).map(u, {{\"known\": dyn({}), \"faults\": dyn(\
             u.now in {selects} ? {blamed}{missing} : u.now == \"\" ? {without_value} : [{unknown}])}})",
            self.known()
        )
    }

    /// Returns the faults of the 2019 form: at most one member is set, and the request does not contradict itself.
    fn of_list(&self, discriminator: Option<&str>) -> String {
        let Self { entry, members, .. } = *self;
        let (now, set, added) = (members.discriminator_in("p.new"), members.set_in("p.new"), members.added());
        let value = &members.value;
        let (is_wrong_number, wrong_number) = self.wrong_number();
        let known = self.known();
        let selects_it = format!("{value}[m] == u.now");
        let told = self.told_by_manifest(discriminator.map(|_| selects_it.as_str()));
        let contested = self.contested(discriminator);
        let state = |changed: &str| {
            format!(
                "{entry}.map(p, {{\"p\": dyn(p), \"now\": dyn({now}), \"changed\": dyn({changed}), \"set\": dyn({set}), \"added\": dyn({added})}})\
                 .map(u, {{\"p\": u.p, \"now\": u.now, \"changed\": u.changed, \"set\": u.set, \"added\": u.added, \
                 \"told\": dyn([{told}, {contested}].filter(t, size(t) > 0))}})"
            )
        };
        let Some(discriminator) = discriminator else {
            return format!(
                "{}.filter(u, {is_wrong_number}).map(u, {{\"known\": dyn({known}), \"faults\": dyn(size(u.told) > 0 ? u.told[0] : {wrong_number})}})",
                state("false")
            );
        };
        let contradicts = format!("u.changed && u.added.exists(m, {value}[m] != u.now)");
        let only = words(&[": Forbidden: may only be specified when ", &backticked(discriminator), " is \""]);
        let shown = printable(&format!("{value}[m]"));
        let fault = self.fault("m", &format!("{only} + {shown} + \"\\\"\""));
        let contradictions = format!("u.added.filter(m, {value}[m] != u.now).map(m, {fault})");
        format!(
            "{}.filter(u, size(u.told) > 0 || {is_wrong_number} || {contradicts}).map(u, {{\"known\": dyn({known}), \
             \"faults\": dyn(size(u.told) > 0 ? u.told[0] : {contradicts} ? {contradictions} : {wrong_number})}})",
            state(&ClaimExpressions { members, object: "p" }.changed())
        )
    }

    /// Returns the fault of the manifest that the request applies, if it sets fields of the union that may not be set together.
    /// `selects` is true if the value `u.now` selects the member `m`.
    fn told_by_manifest(&self, selects: Option<&str>) -> String {
        let claims = ClaimExpressions { members: self.members, object: "u.p" };
        let sets = claims.sets();
        let several = self.of_object(&format!(
            "{} + {} + \"; keep one\"",
            text("Invalid value: the applied manifest sets "),
            joined("s")
        ));
        // A union that is created has nothing that the manifest could switch.
        let several =
            format!("[u.set.filter(m, {sets})].filter(s, size(u.p.old) == 1 && size(s) > 1).map(s, {several})");
        let (Some(selects), Some(discriminator)) = (selects, self.members.union.discriminator()) else {
            return several;
        };
        let begin = words(&["Invalid value: the applied manifest sets ", &backticked(discriminator), " to \""]);
        let names = joined("s");
        let value = printable("u.now");
        let not_selected = self.of_object(&format!(
            "{begin} + {value} + \"\\\" and \" + {names} + \", which \\\"\" + {value} + \"\\\" does not select; remove \" + {names}"
        ));
        let not_selected = format!(
            "[u.set.filter(m, {sets} && !({selects}))].filter(s, size(u.p.old) == 1 && size(s) > 0).map(s, {not_selected})"
        );
        format!("({} ? {not_selected} : {several})", claims.sets_value("u.now"))
    }

    /// Returns the fault of a manifest that is applied again and whose member was cleared for the manifest of another field manager.
    fn contested(&self, discriminator: Option<&str>) -> String {
        let members = self.members;
        let claims = ClaimExpressions { members, object: "u.p" };
        let end = words(&[", and the manifest of another field manager sets "]);
        let fault = |others: &str| {
            let begin = text("Invalid value: the applied manifest sets `");
            self.of_object(&format!("{begin} + a + \"`\" + {end} + {others} + \"; keep one\""))
        };
        let others = format!("u.set.filter(m, m != a && {})", claims.claims("other", "m"));
        let members_of_others = format!("[{others}].filter(s, size(s) > 0).map(s, {})", fault(&joined("s")));
        let again = format!(
            "(size(u.added) == 1 ? u.added : size(u.set) == 1 ? u.set : []).filter(a, {})",
            claims.sets_again("a")
        );
        let Some(discriminator) = discriminator else {
            return Self::flat(&format!("{again}.map(a, size(u.set) > 1, {members_of_others})"));
        };
        let overwrites = format!("{}[a] != u.now && u.now != \"\" && {}", members.value, claims.other_sets_value());
        let value_of_other = format!("({overwrites} ? [{}] : [])", fault(&text(&backticked(discriminator))));
        Self::flat(&format!(
            "{again}.filter(a, !u.changed).map(a, u.set.exists(m, m != a && {}) ? {members_of_others} : {value_of_other})",
            claims.claims("other", "m")
        ))
    }

    /// Returns the lists in a list of at most one list, as one list.
    fn flat(list: &str) -> String {
        format!("({list} + [[]])[0]")
    }

    /// Returns the faults of the 2019 form with a discriminator that is never deduced: the discriminator and the members must
    /// agree.
    fn of_list_alone(&self, discriminator: &str) -> String {
        let Self { entry, members, .. } = *self;
        let (now, set, added) = (members.discriminator_in("p.new"), members.set_in("p.new"), members.added());
        let value = &members.value;
        let quoted = backticked(discriminator);
        let only = words(&[": Forbidden: may only be specified when ", &quoted, " is \""]);
        let hint = words(&["; remove it, or change ", &quoted, " to switch the member"]);
        let unchanged = format!("u.p.old.exists(o, {} == u.now)", members.discriminator_in("o"));
        let shown = printable(&format!("{value}[m]"));
        let fault = self.fault("m", &format!("{only} + {shown} + \"\\\"\" + ({unchanged} ? {hint} : \"\")"));
        let not_selected = format!("u.set.filter(m, {value}[m] != u.now)");
        let (is_wrong_number, wrong_number) = self.wrong_number();
        let told = self.told_by_manifest(Some(&format!("{value}[m] == u.now")));
        // A value without a member is a fault of the number of members, if one is required.
        let has_value = if members.union.is_required() { "size(u.set) > 0 && u.now != \"\"" } else { "u.now != \"\"" };
        format!(
            "{entry}.map(p, {{\"p\": dyn(p), \"now\": dyn({now}), \"set\": dyn({set}), \"added\": dyn({added})}})\
             .filter(u, {has_value} ? u.set.exists(m, {value}[m] != u.now) : {is_wrong_number})\
             .map(u, {{\"known\": dyn({}), \"faults\": dyn([{told}].map(t, size(t) > 0 ? t : {has_value} ? {not_selected}.map(m, {fault}) : {wrong_number})[0])}})",
            self.known()
        )
    }

    /// Returns true if more than one member is set, or none although one is required, and the faults of that.
    fn wrong_number(&self) -> (&'static str, String) {
        let several = words(&[": Forbidden: at most one of `"]);
        let several = self.fault("m", &format!("{several} + u.set.join(\"`, `\") + \"` may be set\""));
        let blamed = "size(u.p.old) == 1 && size(u.added) > 0 ? u.added : u.set.filter(m, m != u.set[0])";
        let too_many = format!("size(u.set) > 1 ? ({blamed}).map(m, {several}) : []");
        if self.members.union.is_required() {
            ("size(u.set) != 1", format!("size(u.set) == 0 ? [{}] : {too_many}", self.none_set()))
        } else {
            ("size(u.set) > 1", too_many)
        }
    }

    /// Returns the fault of an object without a member. It comes before the faults of fields.
    fn none_set(&self) -> String {
        let names: Vec<_> = self.members.union.members().map(backticked).collect();
        let one_of = if names.len() == 1 { "" } else { "one of " };
        self.of_object(&words(&["Required value: ", one_of, &names.join(", "), " must be set"]))
    }

    /// Returns a fault of the object with these words, an expression. It comes before the faults of fields.
    fn of_object(&self, words: &str) -> String {
        // The root has no path.
        let colon = if self.dot.is_empty() { "" } else { "\": \" + " };
        let position = text(&format!("{:03}", self.position));
        format!(
            "{{\"by\": dyn(u.p.by + \"{SEPARATOR}{SEPARATOR}\" + {position}), \"text\": dyn(u.p.at + {colon}{words})}}"
        )
    }

    /// Returns a fault of a field `name`, an expression, with the words after its path.
    fn fault(&self, name: &str, words: &str) -> String {
        let dot = if self.dot.is_empty() { String::new() } else { format!(" + \"{}\"", self.dot) };
        format!("{{\"by\": dyn(u.p.by + \"{SEPARATOR}\" + {name}), \"text\": dyn(u.p.at{dot} + {name} + {words})}}")
    }

    /// Returns true if the same choice stood there before.
    fn known(&self) -> String {
        let members = self.members;
        let same = format!("{}.all(m, ({}) == (m in u.set))", members.all, members.is_set("o"));
        let was = if members.union.discriminator().is_some() {
            format!("{} == u.now && ", members.discriminator_in("o"))
        } else {
            String::new()
        };
        format!("(u.p.old + u.p.lost).exists(o, {was}{same})")
    }
}
