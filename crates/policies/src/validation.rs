//! Validation: the expressions of `ValidatingAdmissionPolicies`, in the words of
//! [`Violation`](kube_unions_core::union::Violation).
//!
//! A policy tells only the first of its validations that fails, so each policy has one validation, which joins all faults.

use crate::cel::{is_set, one_line, printable, text};
use crate::condition::Watched;
use crate::members::{Algorithm, Members, backticked, name_of, words};
use crate::places::{Places, Purpose, SEPARATOR};
use crate::variables::Variables;
use kube_unions_core::schema::Action;
use kube_unions_core::union::UnionPlace;

/// The treatment of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Treatment {
    /// Faults that were there before are let through.
    pub(crate) ratchet: bool,
    /// Overrides the action of the declarations.
    pub(crate) action: Option<Action>,
    /// The API server knows `flatten` and `sortBy`.
    pub(crate) list_functions: bool,
}

/// The faults that a policy tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// Faults that deny the request.
    Denied,
    /// Faults that are let through.
    LetThrough,
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

/// Compiles the validation of places. Returns `None` if it could tell nothing.
pub(crate) fn compile(places: &[UnionPlace<'_>], told: Told, treatment: Treatment) -> Option<Validation> {
    let mut variables = Variables::default();
    let mut entries = Places::new(Purpose::Validation, treatment.list_functions);
    let (mut faults, mut watched) = (Vec::new(), Watched::default());
    for place in places {
        for union in place.unions {
            let warns = treatment.action.unwrap_or(union.action()) == Action::Warn;
            let (wanted, suffix) = match (told, warns, treatment.ratchet) {
                (Told::Denied, false, true) => ("!f.known", ""),
                (Told::Denied, false, false) => ("true", ""),
                (Told::LetThrough, true, _) => ("true", WARN_ONLY),
                (Told::LetThrough, false, true) => ("f.known", UNCHANGED),
                (Told::Denied, true, _) | (Told::LetThrough, false, false) => continue,
            };
            watched.add(&place.steps, None);
            let entry = entries.variable(&place.steps, &mut variables);
            let name = name_of(&entry, union);
            let members = Members::new(union, &name, &mut variables);
            let union =
                UnionFaults { entry: &entry, dot: if place.steps.is_empty() { "" } else { "." }, members: &members };
            let expression = match Algorithm::of(members.union) {
                Algorithm::Map(discriminator) => union.of_map(discriminator, &name, &mut variables),
                Algorithm::Discriminated(discriminator) => union.of_list(Some(discriminator)),
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
    let condition = (told == Told::Denied && treatment.ratchet)
        .then(|| format!("oldObject == null || {}", watched.into_expression()));
    Some(Validation { variables, expression: format!("size({all}) == 0"), message, condition })
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
        let is_faulty = format!(
            "(u.now != \"\" || size(u.set) > 0) && (!(u.now in {selects}) || u.set.exists(m, m != {selected}){})",
            needs.as_ref().map(|needs| format!(" || {needs}")).unwrap_or_default()
        );
        let quoted = backticked(discriminator);
        let only = words(&[": Forbidden: may only be specified when ", &quoted, " is "]);
        let hint = words(&["; change ", &quoted, " to switch the member"]);
        let unchanged = format!("u.p.old.exists(o, {} == u.now)", members.discriminator_in("o"));
        let blamed = format!(
            "u.set.filter(m, m != {selected}).map(m, {})",
            self.fault("m", &format!("{only} + {values}[m] + ({unchanged} ? {hint} : \"\")"))
        );
        let missing = needs.map_or_else(String::new, |needs| {
            let needed = words(&[": Required value: must be specified when ", &quoted, " is \""]);
            let fault = self.fault(&selected, &format!("{needed} + {} + \"\\\"\"", one_line("u.now".to_owned())));
            format!(" + ({needs} ? [{fault}] : [])")
        });
        let at = text(discriminator);
        let required = words(&[": Required value: must be specified when `"]);
        let required = self.fault(&at, &format!("{required} + u.set[0] + \"` is set\""));
        let unsupported = text(": Unsupported value: \"");
        let supported = words(&["\": supported values: ", &members.supported()]);
        let unknown = self.fault(&at, &format!("{unsupported} + {} + {supported}", printable("u.now")));
        let state = format!("{{\"p\": dyn(p), \"now\": dyn({now}), \"set\": dyn({set})}}");
        format!(
            "{entry}.map(p, !({wrong}), {state}).filter(u, {is_faulty}).map(u, {{\"known\": dyn({}), \"faults\": dyn(\
             u.now in {selects} ? {blamed}{missing} : u.now == \"\" ? [{required}] : [{unknown}])}})",
            self.known()
        )
    }

    /// Returns the faults of the 2019 form: at most one member is set, and the request does not contradict itself.
    fn of_list(&self, discriminator: Option<&str>) -> String {
        let Self { entry, members, .. } = *self;
        let (now, set, added) = (members.discriminator_in("p.new"), members.set_in("p.new"), members.added());
        let value = &members.value;
        let several = words(&[": Forbidden: at most one of `"]);
        let several = self.fault("m", &format!("{several} + u.set.join(\"`, `\") + \"` may be set\""));
        let blamed = "size(u.p.old) == 1 && size(u.added) > 0 ? u.added : u.set.filter(m, m != u.set[0])";
        let too_many = format!("size(u.set) > 1 ? ({blamed}).map(m, {several}) : []");
        let state = |changed: &str| {
            format!(
                "{entry}.map(p, {{\"p\": dyn(p), \"now\": dyn({now}), \"changed\": dyn({changed}), \"set\": dyn({set}), \"added\": dyn({added})}})"
            )
        };
        let known = self.known();
        let Some(discriminator) = discriminator else {
            return format!(
                "{}.filter(u, size(u.set) > 1).map(u, {{\"known\": dyn({known}), \"faults\": dyn({too_many})}})",
                state("false")
            );
        };
        let contradicts = format!("u.changed && u.added.exists(m, {value}[m] != u.now)");
        let only = words(&[": Forbidden: may only be specified when ", &backticked(discriminator), " is \""]);
        let shown = printable(&format!("{value}[m]"));
        let fault = self.fault("m", &format!("{only} + {shown} + \"\\\"\""));
        let contradictions = format!("u.added.filter(m, {value}[m] != u.now).map(m, {fault})");
        format!(
            "{}.filter(u, size(u.set) > 1 || {contradicts}).map(u, {{\"known\": dyn({known}), \"faults\": dyn({contradicts} ? {contradictions} : {too_many})}})",
            state(&members.changed())
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
        let same = format!("{}.all(m, ({}) == (m in u.set))", members.all, is_set("o", "m"));
        let was = if members.union.discriminator().is_some() {
            format!("{} == u.now && ", members.discriminator_in("o"))
        } else {
            String::new()
        };
        format!("(u.p.old + u.p.lost).exists(o, {was}{same})")
    }
}
