//! The attempts at one request, through every layer of the client.

use super::*;
use crate::RequestError;
use crate::request::{JSON, send, write};
use hyper::{Method, StatusCode};
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::Instant;
use tower::service_fn;

/// Returns a client of an API server that fails so many times and asks to be left alone for a while, and the number of requests.
fn failing(times: usize, code: u16, asked: Option<&'static str>) -> (Client, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let server = service_fn(move |_: Request<Body>| {
        let mut answer = Response::new(Body::from(b"{}".to_vec()));
        if count.fetch_add(1, Ordering::Relaxed) < times {
            let status = json!({"kind": "Status", "status": "Failure", "code": code, "message": "injected"});
            answer = Response::new(Body::from(status.to_string().into_bytes()));
            *answer.status_mut() = StatusCode::from_u16(code).unwrap();
            if let Some(asked) = asked {
                answer.headers_mut().insert("retry-after", HeaderValue::from_static(asked));
            }
        }
        async { Ok::<_, Infallible>(answer) }
    });
    let config = Config::new("http://cluster.invalid".parse().unwrap());
    (layered(&config, ChangingTokens::default(), server, &ServerClock::default()).unwrap(), requests)
}

const ASKED: [Option<&str>; 7] =
    [Some("300"), Some("86400"), Some("18446744073709551615"), Some("6"), Some("soon"), Some("-1"), None];

#[tokio::test(start_paused = true)]
async fn an_api_server_that_asks_for_minutes_is_asked_again_after_seconds() {
    for code in [429, 503, 504] {
        for asked in ASKED {
            let (client, requests) = failing(1, code, asked);
            let began = Instant::now();
            send(&client, Method::GET, "/a").await.unwrap();
            assert!(began.elapsed() < Duration::from_secs(6), "{code} {asked:?}: {:?}", began.elapsed());
            let (client, _) = failing(1, code, asked);
            write(&client, Method::PUT, "/a", JSON, &json!({})).await.unwrap();
            // A new CRD takes eight requests, one after the other, if it is the first.
            assert!(began.elapsed() * 4 < Duration::from_mins(1), "{code} {asked:?}: {:?}", began.elapsed());
            assert_eq!(requests.load(Ordering::Relaxed), 2);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_goes_on_to_fail_has_the_last_word() {
    for code in [429, 503, 504] {
        for (asked, most) in ASKED.into_iter().map(|asked| (asked, 16)).chain([(Some("1"), 13), (Some("300"), 3)]) {
            let (client, requests) = failing(usize::MAX, code, asked);
            let began = Instant::now();
            let failed = send(&client, Method::GET, "/a").await.unwrap_err();
            let RequestError::Status(status) = failed else { panic!("{code} {asked:?}: {failed}") };
            assert_eq!((status.code, &*status.message), (code, "injected"), "{asked:?}");
            assert!(began.elapsed() < Duration::from_secs(15), "{asked:?}: {:?}", began.elapsed());
            assert!((2..=most).contains(&requests.load(Ordering::Relaxed)), "{asked:?}: {requests:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_request_to_wait_is_not_asked_for_again() {
    for code in [400, 403, 409, 422, 500, 502] {
        let (client, requests) = failing(1, code, Some("1"));
        assert_eq!(send(&client, Method::GET, "/a").await.unwrap_err().code(), Some(code));
        assert_eq!(requests.load(Ordering::Relaxed), 1, "{code}");
    }
}
