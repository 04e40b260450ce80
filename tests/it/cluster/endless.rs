//! Lists whose pages never end, of an API server that is broken, or of a proxy in front of it.

use super::{Followed, faulty, kinds, until_kinds};
use fixtures::api_server::{Call, DECLARATIONS, DEFINITIONS, Stream, status};
use fixtures::object_server::definition;
use fixtures::wait::until;
use serde_json::json;
use std::sync::{Arc, Mutex};

/// Objects and the token of the next page, by the number of the page.
type EndlessPages = fn(usize, fn(usize) -> String) -> (Vec<String>, String);

/// Endless lists, and what is said of them.
const ENDLESS: [(EndlessPages, &str); 4] = [
    (|_, object| (vec![object(0)], "again".to_owned()), "its pages come again"),
    (|page, object| (vec![object(page % 3)], format!("page-{}", page % 3)), "its pages come again"),
    (|page, _| (vec![], format!("page-{page}")), "pages in a row are empty"),
    (
        |page, object| ((0..500).map(|at| object(500 * page + at)).collect(), format!("page-{page}")),
        "the list has more than 20000 objects",
    ),
];

/// Returns an object by its number, as JSON text.
type NumberedObject = fn(usize) -> String;

/// A cluster with one CRD and one declaration. The lists of a resource become endless, and end again.
#[derive(Clone, Default)]
struct Broken(Arc<Mutex<Lists>>);

#[derive(Default)]
struct Lists {
    /// The path, the pages and the objects of the list that does not end.
    endless: Option<(&'static str, EndlessPages, NumberedObject)>,
    /// More CRDs than the first.
    more: Vec<String>,
    /// Pages of it that were asked for.
    pages: usize,
    /// The number of the first page of each attempt.
    attempts: Vec<usize>,
    streams: Vec<(String, Stream)>,
}

impl Broken {
    fn follow(&self) -> Followed {
        let server = self.clone();
        Followed::served_by(move |call| server.0.lock().unwrap().answer(call))
    }

    fn set(&self, change: impl FnOnce(&mut Lists)) {
        change(&mut self.0.lock().unwrap());
    }

    /// Waits until the list was given up, and is tried again. Returns the number of pages of the first attempt.
    async fn given_up(&self) -> usize {
        until("it is tried again", async || self.0.lock().unwrap().attempts.len() > 1).await;
        self.0.lock().unwrap().attempts[1]
    }
}

impl Lists {
    fn answer(&mut self, call: Call) {
        let path = call.path.clone();
        if call.is_watch() {
            return self.streams.push((path, call.stream()));
        }
        if let Some((_, pages, object)) = self.endless.filter(|(endless, ..)| *endless == path) {
            if call.parameter("continue").is_none() {
                self.attempts.push(self.pages);
            }
            let (items, next) = pages(self.pages, object);
            self.pages += 1;
            return call.page(&items, &next);
        }
        match &*path {
            DEFINITIONS => call.page(&[&[definition("Apple", 1)][..], &self.more].concat(), ""),
            DECLARATIONS => call.page(&[declaration(0)], ""),
            // Statuses of declarations are not found either, and do not matter.
            _ => call.not_found(),
        }
    }

    /// Has the lists of a resource begin anew, and never end.
    fn break_lists(&mut self, path: &'static str, pages: EndlessPages, object: fn(usize) -> String) {
        (self.endless, self.pages, self.attempts) = (Some((path, pages, object)), 0, Vec::new());
        let expired = status(410, "Expired", "too old resource version").to_string();
        self.streams.retain(|(of, stream)| {
            let is_broken = *of == path;
            if is_broken {
                stream.event("ERROR", &expired);
            }
            !is_broken
        });
    }
}

/// Returns a CRD without a schema.
fn empty_definition(number: usize) -> String {
    json!({"metadata": {"name": format!("kind{number}s.watch.example"), "resourceVersion": "7"}}).to_string()
}

/// Returns a declaration. The first one is in force.
fn declaration(number: usize) -> String {
    let kind = if number == 0 { "Apple".to_owned() } else { format!("Kind{number}") };
    let spec = json!({"target": {"group": "watch.example", "kind": kind},
        "unions": [{"path": "", "fieldsToDiscriminateBy": {"spec": "Spec", "data": "Data"}}]});
    json!({"apiVersion": "kube-unions.dev/v1alpha1", "kind": "UnionDeclaration", "spec": spec,
        "metadata": {"name": format!("declaration-{number}"), "resourceVersion": "7"}})
    .to_string()
}

#[tokio::test(start_paused = true)]
async fn a_list_of_crds_without_an_end_is_given_up_and_the_last_catalog_stays() {
    for (pages, says) in ENDLESS {
        let server = Broken::default();
        let mut followed = server.follow();
        until_kinds(&mut followed, &["Apple"]).await;
        followed.until_up(true).await;
        server.set(|it| it.break_lists(DEFINITIONS, pages, empty_definition));
        until(says, async || followed.link.evidence().contains(says)).await;
        followed.until_up(false).await;
        let pages = server.given_up().await;
        assert!(pages <= 1_010, "{says}: {pages} pages");
        assert!(!followed.catalogs.has_changed().unwrap(), "{says}");
        server.set(|it| (it.endless, it.more) = (None, vec![definition("Pear", 2)]));
        let catalog = until_kinds(&mut followed, &["Apple", "Pear"]).await;
        assert!(faulty(&catalog).is_empty(), "{says}: {:?}", catalog.faults());
        followed.until_up(true).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_list_without_an_end_brings_no_catalog_until_it_ends() {
    for (pages, says) in ENDLESS {
        let server = Broken::default();
        server.set(|it| it.break_lists(DEFINITIONS, pages, empty_definition));
        let mut followed = server.follow();
        until(says, async || followed.link.evidence().contains(says)).await;
        assert!(followed.catalogs.borrow().is_none(), "{says}");
        server.set(|it| it.endless = None);
        let catalog = followed.published().await;
        assert_eq!((kinds(&catalog), catalog.faults().len()), (vec!["Apple"], 0), "{says}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_of_declarations_without_an_end_is_given_up_and_those_known_stay() {
    let declared = |followed: &Followed| {
        let catalog = followed.catalogs.borrow().clone().unwrap();
        let unions = catalog.entries().iter().flat_map(|entry| entry.plan().unions());
        (unions.filter_map(|union| union.declaration().map(str::to_owned)).collect::<Vec<_>>(), catalog.faults().len())
    };
    let known = || (vec!["declaration-0".to_owned()], 0);
    for (pages, says) in ENDLESS {
        let server = Broken::default();
        let followed = server.follow();
        until("the declaration is in force", async || followed.catalogs.borrow().is_some()).await;
        assert_eq!(declared(&followed), known(), "{says}");
        server.set(|it| it.break_lists(DECLARATIONS, pages, declaration));
        let pages = server.given_up().await;
        assert!(pages <= 1_010, "{says}: {pages} pages");
        server.set(|it| it.endless = None);
        until(says, async || declared(&followed) == known()).await;
    }
}
