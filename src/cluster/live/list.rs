//! All objects of a resource, as they are stored: page by page and as text, so that what is held does not grow with what
//! is there.
//!
//! The size of a page follows from that of the objects seen so far. A list that expires while it is read goes on behind the
//! last object seen, and no object comes twice.

use super::super::call::LIMIT;
use super::super::watch::Retry;
use super::{LiveError, RESERVED, Refusal, request};
use http_body_util::BodyExt;
use hyper::StatusCode;
use kube::Client;
use kube::client::Body;
use percent_encoding::utf8_percent_encode;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// Objects in the first page, when nobody knows how large they are.
const FIRST: u32 = 16;

/// Objects in a page at most.
const MOST: u32 = 5000;

/// A page grows no faster.
const GROWTH: u32 = 4;

/// What a page is to weigh, in bytes.
const WEIGHT: usize = 1 << 20;

/// What is read of a page before it is asked for again with fewer objects: a few small ones may stand before many large ones.
const HEAVIEST: usize = 8 << 20;

/// How often a page is asked for while the server can't give it, or the connection breaks. The client itself waits and tries
/// again on 429, 503 and 504.
const TRIES: u32 = 5;

/// How often a list may expire without bringing any object.
const EXPIRIES: u32 = 3;

/// All objects of a resource.
pub struct Pages {
    client: Client,
    path: String,
    limit: u32,
    /// The token of the next page, empty for the first; `None` at the end.
    next: Option<String>,
    /// The last object seen.
    last: Option<Key>,
    /// Whether they have come in the order of their keys, as all do that are stored in etcd.
    ordered: bool,
    /// The list has begun again; what stands up to here was seen.
    seen: Option<Key>,
    /// Expiries since an object was seen.
    expiries: u32,
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Some of the objects of a list.
#[derive(Debug)]
pub struct Page {
    text: String,
    objects: Vec<(Range<usize>, Key)>,
    remaining: Option<u64>,
    last: bool,
}

/// One object of a list.
#[derive(Debug, Clone, Copy)]
pub struct Object<'p> {
    /// As the API server wrote it.
    pub text: &'p str,
    /// Empty where it is in none.
    pub namespace: &'p str,
    /// Its name.
    pub name: &'p str,
}

/// `namespace/name`, or `name`: what the order of a list goes by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key(Box<str>);

impl Page {
    /// The objects, in the order of the list.
    pub fn objects(&self) -> impl ExactSizeIterator<Item = Object<'_>> {
        self.objects.iter().map(|(range, key)| {
            let (namespace, name) = key.0.rsplit_once('/').unwrap_or(("", &key.0));
            Object { text: self.text.get(range.clone()).unwrap_or_default(), namespace, name }
        })
    }

    /// How many objects come after these, where the server tells.
    pub fn remaining(&self) -> Option<u64> {
        if self.last { Some(0) } else { self.remaining }
    }
}

/// What came of a request.
enum Fetched {
    Page(String),
    TooHeavy,
    Expired(Box<Refusal>),
}

impl Pages {
    pub(super) fn new(client: Client, path: String) -> Self {
        let next = Some(String::new());
        Self { client, path, limit: FIRST, next, last: None, ordered: true, seen: None, expiries: 0 }
    }

    /// The next page that has objects; `None` when all were seen. An error is for good.
    pub async fn next(&mut self) -> Result<Option<Page>, LiveError> {
        while let Some(token) = &self.next {
            match self.fetch(token).await? {
                Fetched::TooHeavy => self.limit = (self.limit / 8).max(1),
                Fetched::Expired(refusal) => self.next = Some(self.after_expiry(&refusal)?),
                Fetched::Page(text) => {
                    let page = self.read(text)?;
                    if !page.objects.is_empty() {
                        return Ok(Some(page));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Asks for a page, more than once if need be.
    async fn fetch(&self, token: &str) -> Result<Fetched, LiveError> {
        let mut waits = Retry::default();
        for _ in 1..TRIES {
            let fetched = self.fetch_once(token).await;
            match (fetched, waits.next()) {
                (Err(error), Some(wait)) if may_pass(&error) => tokio::time::sleep(wait).await,
                (fetched, _) => return fetched,
            }
        }
        self.fetch_once(token).await
    }

    async fn fetch_once(&self, token: &str) -> Result<Fetched, LiveError> {
        match tokio::time::timeout(LIMIT, self.exchange(token)).await {
            Ok(fetched) => fetched,
            Err(_) => Err(LiveError::Slow(LIMIT.as_secs())),
        }
    }

    async fn exchange(&self, token: &str) -> Result<Fetched, LiveError> {
        let mut uri = format!("{}?limit={}", self.path, self.limit);
        if !token.is_empty() {
            uri.push_str("&continue=");
            uri.extend(utf8_percent_encode(token, RESERVED));
        }
        let answer = self.client.send(request("GET", &uri, None)?.map(Body::from)).await?;
        let code = answer.status();
        let heaviest = if self.limit > 1 { HEAVIEST } else { usize::MAX };
        let Some(text) = text_of(answer.into_body(), heaviest).await? else { return Ok(Fetched::TooHeavy) };
        if code.is_success() {
            return Ok(Fetched::Page(text));
        }
        let refusal = Box::new(Refusal::read(code.as_u16(), &text));
        // Of the first page there is nothing to go on with.
        let expired = code == StatusCode::GONE && !token.is_empty();
        if expired { Ok(Fetched::Expired(refusal)) } else { Err(LiveError::Refused(refusal)) }
    }

    /// The token to go on with: the one that the server offers, or none, and all of the list once more.
    fn after_expiry(&mut self, refusal: &Refusal) -> Result<String, LiveError> {
        self.expiries = self.expiries.saturating_add(1);
        let offered = refusal.continuation();
        // Without an order nobody knows which objects were seen.
        if self.expiries > EXPIRIES || (offered.is_none() && !self.ordered) {
            let last = self.last.as_ref().map_or("", |key| &key.0);
            return Err(LiveError::Expired(last.into()));
        }
        if offered.is_none() {
            self.seen.clone_from(&self.last);
        }
        Ok(offered.unwrap_or_default().to_owned())
    }

    fn read(&mut self, text: String) -> Result<Page, LiveError> {
        let list: List<'_> = serde_json::from_str(&text)?;
        let (items, ListMetadata { next, remaining }) = (list.items.unwrap_or_default(), list.metadata);
        self.measure(items.len(), text.len());
        let mut objects = Vec::with_capacity(items.len());
        for item in items {
            let key = Key::of(item)?;
            if self.seen.as_ref().is_some_and(|seen| key <= *seen) {
                continue;
            }
            self.ordered &= self.last.as_ref().is_none_or(|last| *last < key);
            let start = item.get().as_ptr().addr().saturating_sub(text.as_ptr().addr());
            objects.push((start..start.saturating_add(item.get().len()), key.clone()));
            self.last = Some(key);
            self.expiries = 0;
        }
        self.next = next.filter(|token| !token.is_empty()).map(Cow::into_owned);
        Ok(Page { text, objects, remaining, last: self.next.is_none() })
    }

    /// Learns from a page how many objects the next one may have.
    fn measure(&mut self, objects: usize, bytes: usize) {
        if objects > 0 {
            let fitting = WEIGHT.saturating_mul(objects) / bytes.max(1);
            let most = self.limit.saturating_mul(GROWTH).min(MOST);
            self.limit = u32::try_from(fitting).unwrap_or(MOST).clamp(1, most);
        }
    }
}

impl Key {
    fn of(object: &RawValue) -> Result<Self, LiveError> {
        let Named { metadata: Metadata { namespace, name } } = serde_json::from_str(object.get())?;
        let slash = if namespace.is_empty() { "" } else { "/" };
        Ok(Self(format!("{namespace}{slash}{name}").into()))
    }
}

/// Whether a failure may be over in a moment.
fn may_pass(error: &LiveError) -> bool {
    match error {
        LiveError::Refused(refusal) => matches!(refusal.code(), 429 | 500..=599),
        LiveError::Transport(_) => true,
        LiveError::Malformed(_)
        | LiveError::Slow(_)
        | LiveError::Expired(_)
        | LiveError::NoResource(_)
        | LiveError::Name(_)
        | LiveError::Schema(_)
        | LiveError::Definition { .. }
        | LiveError::NotDescribed(_) => false,
    }
}

/// The text of a body; `None` as soon as there is more of it than that.
async fn text_of(mut body: Body, heaviest: usize) -> Result<Option<String>, LiveError> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            if bytes.len().saturating_add(data.len()) > heaviest {
                return Ok(None);
            }
            bytes.extend_from_slice(&data);
        }
    }
    Ok(Some(String::from_utf8(bytes).map_err(kube::Error::FromUtf8)?))
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow, default)]
    metadata: ListMetadata<'a>,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
struct ListMetadata<'a> {
    #[serde(borrow, rename = "continue")]
    next: Option<Cow<'a, str>>,
    #[serde(rename = "remainingItemCount")]
    remaining: Option<u64>,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
}
