//! Lists all objects of a resource page by page, as text, so that memory does not grow with their number.
//!
//! The page size adapts to the size of the objects read so far. A list that expires while it is read continues behind the last
//! object, so that no object comes twice. A list without an end is an error, see [`endless`](super::endless).

use super::discovery::DiscoveredResource;
use super::endless::ListLength;
use super::object::collection;
use super::refusal::LiveError;
use super::request::{RequestError, bounded_text};
use super::retry::{Doubling, WAITS};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::Client;
use kube::api::ListParams;
use kube::core::{Request, Status};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;

/// Objects in the first page, whose size is unknown.
const FIRST: u32 = 16;

/// Maximum number of objects in a page.
const MOST: u32 = 5000;

/// Maximum factor by which a page has more objects than the one before.
const GROWTH: u32 = 4;

/// Target size of a page, in bytes.
const WEIGHT: usize = 1 << 20;

/// Maximum size of a page, in bytes, before it is requested again with fewer objects: large objects may follow small ones.
const HEAVIEST: usize = 8 << 20;

/// Attempts at a page if the server fails or the connection breaks. The client itself also retries 429, 503 and 504.
const TRIES: u32 = 5;

/// Maximum number of expiries of a list between two objects.
const EXPIRIES: u32 = 3;

/// Pages shrink to an eighth after one that is too heavy, or did not arrive as a whole.
const SHRINKING: u32 = 3;

/// All objects of a resource.
pub struct Pages {
    client: Client,
    path: String,
    selection: ListParams,
    pub(super) size: PageSize,
    /// The list is read at one version: it fails when it expires, and no page is requested again.
    is_snapshot: bool,
    /// The version of the last page.
    pub(super) version: Option<String>,
    /// The token of the next page, empty for the first; `None` at the end.
    next: Option<String>,
    /// The last object read.
    last: Option<NamespacedName>,
    /// True while the objects come ordered by key, as all objects from etcd do.
    ordered: bool,
    /// The list began again; objects up to this key were read before.
    seen: Option<NamespacedName>,
    /// Expiries since the last object.
    expiries: u32,
    length: ListLength,
}

/// The size of the next page.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageSize {
    objects: u32,
    /// Target size, in bytes.
    weight: usize,
}

/// Some of the objects of a list.
#[derive(Debug)]
pub struct Page {
    text: String,
    objects: Vec<(Range<usize>, NamespacedName)>,
    remaining: Option<u64>,
    last: bool,
}

/// One object of a list.
#[derive(Debug, Clone, Copy)]
pub struct ListedObject<'p> {
    /// JSON text, as the API server wrote it.
    pub text: &'p str,
    /// The namespace, empty for a cluster-scoped object.
    pub namespace: &'p str,
    /// The name.
    pub name: &'p str,
}

/// `namespace/name`, or `name`: the order of a list.
type NamespacedName = Box<str>;

impl PageSize {
    /// Returns the size of a first page with this many objects.
    pub(super) fn of(objects: u32) -> Self {
        Self { objects, weight: WEIGHT }
    }

    /// Shrinks pages, because one did not arrive as a whole.
    pub(super) fn shrink(&mut self) {
        self.objects = (self.objects >> SHRINKING).max(1);
        self.weight >>= SHRINKING;
    }

    /// Adapts the size of the next page to one of `objects` objects and `bytes` bytes.
    fn measure(&mut self, objects: usize, bytes: usize) {
        if objects > 0 {
            let fitting = self.weight.saturating_mul(objects) / bytes.max(1);
            let most = self.objects.saturating_mul(GROWTH).min(MOST);
            self.objects = u32::try_from(fitting).unwrap_or(MOST).clamp(1, most);
        }
    }
}

impl Page {
    /// Returns the objects, in the order of the list.
    pub fn objects(&self) -> impl ExactSizeIterator<Item = ListedObject<'_>> {
        self.objects.iter().map(|(range, key)| {
            let (namespace, name) = key.rsplit_once('/').unwrap_or(("", key));
            ListedObject { text: self.text.get(range.clone()).unwrap_or_default(), namespace, name }
        })
    }

    /// Returns the number of objects after this page, if the server tells.
    pub fn remaining(&self) -> Option<u64> {
        if self.last { Some(0) } else { self.remaining }
    }
}

impl Pages {
    /// Returns the objects of a resource as they are stored, in one namespace or in all, however many they are: keep no more than a
    /// page. The namespace of a cluster-scoped resource is ignored. Sends nothing.
    pub fn of(client: &Client, resource: &DiscoveredResource, namespace: Option<&str>) -> Result<Self, LiveError> {
        Ok(Self { length: ListLength::new(false), ..Self::at(client, collection(resource, namespace)?) })
    }

    /// Returns the objects at the path of a collection, no more than can be kept. Sends nothing.
    pub fn at(client: &Client, path: String) -> Self {
        Self {
            client: client.clone(),
            path,
            selection: ListParams::default(),
            size: PageSize::of(FIRST),
            is_snapshot: false,
            version: None,
            next: Some(String::new()),
            last: None,
            ordered: true,
            seen: None,
            expiries: 0,
            length: ListLength::new(true),
        }
    }

    /// Selects the objects of one name, for example in all namespaces. The right to list objects of that name is enough.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.selection = self.selection.fields(&format!("metadata.name={name}"));
        self
    }

    /// Returns the selected objects at the path of a collection as they are at one version. Sends nothing.
    pub(super) fn snapshot(client: &Client, path: String, selection: ListParams, size: PageSize) -> Self {
        Self { selection, size, is_snapshot: true, ..Self::at(client, path) }
    }

    /// Returns the next page that has objects, `None` at the end. Do not continue after an error.
    pub async fn next(&mut self) -> Result<Option<Page>, LiveError> {
        while let Some(token) = &self.next {
            match self.fetch(token).await {
                Ok(Some(text)) => {
                    let page = self.read(text)?;
                    if !page.objects.is_empty() {
                        return Ok(Some(page));
                    }
                }
                Ok(None) => self.size.objects = (self.size.objects >> SHRINKING).max(1),
                // The first page has no token to continue from.
                Err(RequestError::Status(status)) if status.code == 410 && !token.is_empty() && !self.is_snapshot => {
                    self.next = Some(self.after_expiry(&status)?);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Requests a page, with retries. Returns `None` if it is too heavy.
    async fn fetch(&self, token: &str) -> Result<Option<String>, RequestError> {
        let token = (!token.is_empty()).then(|| token.to_owned());
        let page = ListParams { limit: Some(self.size.objects), continue_token: token, ..self.selection.clone() };
        let request = Request::new(&*self.path).list(&page).map_err(kube::Error::BuildRequest)?;
        let uri = request.uri().to_string();
        let heaviest = if self.size.objects > 1 { HEAVIEST } else { usize::MAX };
        let mut waits = Doubling::new(WAITS);
        let tries = if self.is_snapshot { 1 } else { TRIES };
        for _ in 1..tries {
            match bounded_text(&self.client, &uri, heaviest).await {
                Err(error) if !error.is_final() => tokio::time::sleep(waits.next_wait()).await,
                fetched => return fetched,
            }
        }
        bounded_text(&self.client, &uri, heaviest).await
    }

    /// Returns the token to continue with: the one that the server offers, or none to begin again.
    fn after_expiry(&mut self, status: &Status) -> Result<String, LiveError> {
        self.expiries = self.expiries.saturating_add(1);
        let offered = status.metadata.as_ref().and_then(|metadata| metadata.continue_.as_deref());
        let offered = offered.filter(|token| !token.is_empty());
        // Without an order it is unknown which objects were read.
        if self.expiries > EXPIRIES || (offered.is_none() && !self.ordered) {
            return Err(LiveError::Expired(self.last.clone().unwrap_or_default()));
        }
        if offered.is_none() {
            self.seen.clone_from(&self.last);
        }
        self.length.restart();
        Ok(offered.unwrap_or_default().to_owned())
    }

    fn read(&mut self, text: String) -> Result<Page, RequestError> {
        let list: RawList<'_> = serde_json::from_str(&text)?;
        let (items, metadata) = (list.items.unwrap_or_default(), list.metadata);
        self.size.measure(items.len(), text.len());
        let mut objects = Vec::with_capacity(items.len());
        for item in items {
            let key = ItemMetadata::of(item.get()).key();
            if self.seen.as_ref().is_some_and(|seen| key <= *seen) {
                continue;
            }
            self.ordered &= self.last.as_ref().is_none_or(|last| *last < key);
            let start = item.get().as_ptr().addr().saturating_sub(text.as_ptr().addr());
            objects.push((start..start.saturating_add(item.get().len()), key.clone()));
            self.last = Some(key);
            self.expiries = 0;
        }
        self.next = metadata.continue_.filter(|token| !token.is_empty());
        self.version = metadata.resource_version;
        self.length.count(objects.len(), text.len(), self.next.as_deref())?;
        let remaining = metadata.remaining_item_count.and_then(|count| u64::try_from(count).ok());
        Ok(Page { text, objects, remaining, last: self.next.is_none() })
    }
}

#[derive(Deserialize)]
struct RawList<'a> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct RawItem<'a> {
    #[serde(borrow)]
    metadata: ItemMetadata<'a>,
}

/// The metadata by which lists and watches proceed.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ItemMetadata<'a> {
    #[serde(borrow)]
    namespace: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) resource_version: Cow<'a, str>,
}

impl<'a> ItemMetadata<'a> {
    /// Reads the metadata of an object, given as JSON text. Any JSON may be stored: what cannot be read is empty.
    pub(super) fn of(object: &'a str) -> Self {
        serde_json::from_str::<RawItem<'a>>(object).map(|item| item.metadata).unwrap_or_default()
    }

    fn key(&self) -> NamespacedName {
        let slash = if self.namespace.is_empty() { "" } else { "/" };
        format!("{}{slash}{}", self.namespace, self.name).into()
    }
}
