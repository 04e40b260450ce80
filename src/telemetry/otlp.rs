//! Sends spans to a collector, by OTLP over HTTP with protobuf.
//!
//! Spans go into a bounded queue, and a thread sends them in batches. While the collector is down the queue fills up and more
//! spans are dropped. Nothing else waits for the collector.

use super::LogOnce;
use super::spans::{Span, SpanStart, Spans};
use async_trait::async_trait;
use http_body_util::{BodyExt, Full, Limited};
use hyper::Uri;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube_unions_core::causes::with_causes;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{Span as _, SpanBuilder, SpanKind, Status, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{ExporterBuildError, Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use parking_lot::Mutex;
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

const SERVICE: &str = "kube-unions";

/// Timeout of one request to the collector.
const PATIENCE: Duration = Duration::from_secs(5);

/// Most bytes that are read of a collector's answer.
const LONGEST_ANSWER: usize = 64 * 1024;

/// The URL of a collector, without `/v1/traces`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    traces: String,
    secure: bool,
}

/// The exporter of spans cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OtlpError {
    /// The endpoint is not an HTTP URL with a host.
    #[error("invalid collector URL `{0}`: use http or https and a host, for example http://collector:4318")]
    Endpoint(String),
    /// The system has no CA certificates.
    #[error("no CA certificates to verify the collector: set SSL_CERT_FILE, or use http")]
    Roots(#[source] io::Error),
    /// TLS cannot be set up.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// An `OTEL_EXPORTER_OTLP_*` variable has a value that is not supported.
    #[error("cannot set up OTLP: check the `OTEL_EXPORTER_OTLP_` variables")]
    Exporter(#[from] ExporterBuildError),
}

impl FromStr for Endpoint {
    type Err = OtlpError;

    fn from_str(text: &str) -> Result<Self, OtlpError> {
        let fail = || OtlpError::Endpoint(text.to_owned());
        let uri: Uri = text.parse().map_err(|_| fail())?;
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(_) | None => return Err(fail()),
        };
        if uri.host().is_none_or(str::is_empty) || uri.query().is_some() {
            return Err(fail());
        }
        Ok(Self { traces: format!("{}/v1/traces", text.trim_end_matches('/')), secure })
    }
}

/// Sends spans to a collector. The `OTEL_*` variables set everything but the endpoint.
pub struct Otlp {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    propagator: TraceContextPropagator,
}

impl Otlp {
    /// Returns an exporter that sends on `runtime`, which must outlive [`finish`](Spans::finish).
    pub fn new(endpoint: &Endpoint, runtime: Handle) -> Result<Self, OtlpError> {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&endpoint.traces)
            .with_http_client(Collector::new(endpoint, runtime)?)
            .build()?;
        let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource()).build();
        let tracer = provider.tracer(SERVICE);
        Ok(Self { provider, tracer, propagator: TraceContextPropagator::new() })
    }
}

impl Spans for Otlp {
    fn record(&self, span: &Span<'_>) {
        let parent = self.propagator.extract_with_context(&Context::new(), &Headers(span.start));
        let mut builder = SpanBuilder::from_name(span.name).with_kind(SpanKind::Server);
        builder.start_time = Some(span.start.clock);
        builder.attributes =
            Some(span.attributes.iter().map(|(name, value)| KeyValue::new(*name, (*value).to_owned())).collect());
        let mut recorded = self.tracer.build_with_context(builder, &parent);
        if span.failed {
            recorded.set_status(Status::error(""));
        }
        recorded.end_with_timestamp(span.start.clock + span.start.instant.elapsed());
    }

    fn finish(&self, within: Duration) {
        if let Err(error) = self.provider.shutdown_with_timeout(within) {
            tracing::warn!(reason = with_causes(&error), "the last traces were not sent");
        }
    }
}

/// Returns the attributes of this service. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` can change them.
fn resource() -> Resource {
    let ours = [KeyValue::new("service.name", SERVICE), KeyValue::new("service.version", env!("CARGO_PKG_VERSION"))];
    let resource = Resource::builder_empty()
        .with_attributes(ours)
        .with_detectors(&[Box::new(TelemetryResourceDetector), Box::new(EnvResourceDetector::new())]);
    match std::env::var("OTEL_SERVICE_NAME") {
        Ok(name) if !name.is_empty() => resource.with_service_name(name),
        Ok(_) | Err(_) => resource,
    }
    .build()
}

struct Headers<'a>(&'a SpanStart);

impl Extractor for Headers<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.header(name)
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}

/// The HTTP client of the collector. The thread that sends has no runtime, so each request is a task on `runtime`.
struct Collector {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    runtime: Handle,
    failure: Mutex<LogOnce>,
}

impl Collector {
    fn new(endpoint: &Endpoint, runtime: Handle) -> Result<Self, OtlpError> {
        let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?;
        let tls = if endpoint.secure {
            tls.with_native_roots().map_err(OtlpError::Roots)?
        } else {
            // An image without CA certificates must not fail for a collector with plain HTTP.
            tls.with_root_certificates(RootCertStore::empty())
        };
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls.with_no_client_auth())
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { client, runtime, failure: Mutex::default() })
    }

    /// Logs each failure once, and the recovery once.
    fn log(&self, failure: Option<String>) {
        let mut logged = self.failure.lock();
        match failure {
            Some(reason) if logged.is_new(&reason) => {
                tracing::warn!(reason, "traces cannot be sent, and are dropped until they can");
            }
            None if logged.is_over() => tracing::info!("traces are sent again"),
            Some(_) | None => {}
        }
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let exchange = async move {
            let (head, body) = client.request(request.map(Full::new)).await?.into_parts();
            let body = Limited::new(body, LONGEST_ANSWER).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(head, body))
        };
        // A timeout needs the clock of a runtime, so it starts inside the task.
        let answer = self.runtime.spawn(async { tokio::time::timeout(PATIENCE, exchange).await }).await;
        let answer = match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(_elapsed)) => Err("the collector did not answer in time".into()),
            // The runtime shuts down.
            Err(cancelled) => return Err(cancelled.into()),
        };
        self.log(match &answer {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("the collector answered {}", answer.status())),
            Err(error) => Some(with_causes(&**error)),
        });
        answer
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Collector").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_an_http_url_with_a_host() {
        for (text, traces) in [
            ("http://collector:4318", "http://collector:4318/v1/traces"),
            ("http://collector:4318/", "http://collector:4318/v1/traces"),
            ("https://[::1]/otlp", "https://[::1]/otlp/v1/traces"),
        ] {
            assert_eq!(text.parse::<Endpoint>().map(|it| it.traces).ok().as_deref(), Some(traces), "{text}");
        }
        for text in
            ["", "collector:4318", "collector", "ftp://collector", "http://", "http://collector/?a=b", "grpc://x:1"]
        {
            let error = text.parse::<Endpoint>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("invalid collector URL `{text}`")), "{error}");
        }
    }
}
