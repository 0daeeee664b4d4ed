//! From a request to an answer: identity, permission, limits, and on to the resource.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use http::header::{AUTHORIZATION, HeaderValue};
use http::{Method, Request, Response};
use hyper::body::Incoming;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::answer;
use super::body::Answer;
use super::discovery;
use super::limits::Limits;
use super::metrics::Metrics;
use super::path::{self, ResourcePath};
use super::query::Query;
use crate::auth::{Attributes, Authenticator, Authorizer};
use crate::error::Subject;
use crate::user::User;
use crate::{Api, ApiError};

/// Everything that requests need.
pub(crate) struct Handler {
    pub(crate) api: Arc<Api>,
    pub(crate) limits: Limits,
    pub(crate) metrics: Arc<Metrics>,
    /// Done when the server goes: ends watches.
    pub(crate) stop: CancellationToken,
    /// Where the server listens, for discovery.
    pub(crate) address: String,
    pub(crate) watches: Arc<Semaphore>,
    authenticator: Authenticator,
    authorizer: Arc<dyn Authorizer>,
    requests: Semaphore,
    ready: AtomicBool,
}

impl Handler {
    pub(crate) fn new(
        api: Arc<Api>,
        limits: Limits,
        address: String,
        authenticator: Authenticator,
        authorizer: Arc<dyn Authorizer>,
        stop: CancellationToken,
    ) -> Self {
        Self {
            api,
            metrics: Arc::default(),
            stop,
            address,
            watches: Arc::new(Semaphore::new(limits.watches)),
            requests: Semaphore::new(limits.requests),
            limits,
            authenticator,
            authorizer,
            ready: AtomicBool::new(true),
        }
    }

    /// Errors while the server is going away.
    pub(crate) fn ready(&self) -> Result<(), ApiError> {
        if self.ready.load(Ordering::Acquire) && !self.stop.is_cancelled() {
            return Ok(());
        }
        Err(ApiError::Unavailable("the server is going away".to_owned()))
    }

    /// Answers one request. `peer` is the user of the connection's client certificate.
    pub(crate) async fn handle(
        &self,
        peer: Option<&Arc<User>>,
        request: Request<Incoming>,
    ) -> Result<Response<Answer>, Infallible> {
        let start = Instant::now();
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let mut label = Label::default();
        let outcome = self.route(peer, request, &mut label).await;
        let mut response = outcome.unwrap_or_else(|error| {
            if error.code() >= 500 {
                tracing::warn!(%method, path, %error, "request failed");
            }
            answer::error(&error)
        });
        if method == Method::HEAD {
            *response.body_mut() = super::body::full("");
        }
        if response.status() == http::StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(http::header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        let code = response.status().as_u16();
        self.metrics.count(label.verb, &label.resource, code, start.elapsed());
        Ok(response)
    }

    async fn route(
        &self,
        peer: Option<&Arc<User>>,
        request: Request<Incoming>,
        label: &mut Label,
    ) -> Result<Response<Answer>, ApiError> {
        let path = request.uri().path().to_owned();
        let user = self.user(peer, &request);
        if discovery::open(&path) {
            return discovery::answer(self, request.method(), &path, request.headers());
        }
        let user = user.ok_or(ApiError::Unauthorized)?;
        let Some(resource) = path::parse(&path)?.filter(|r| !r.version.is_empty()) else {
            let verb = request.method().as_str().to_ascii_lowercase();
            self.authorize(&Attributes {
                user: &user,
                verb: &verb,
                group: "",
                resource: "",
                namespace: "",
                name: "",
                path: &path,
            })?;
            // A group alone has no version: `/apis/batch`.
            return discovery::answer(self, request.method(), &path, request.headers());
        };
        if resource.resource.is_empty() {
            if request.method() != Method::GET {
                return Err(ApiError::MethodNotAllowed(
                    "the server does not allow this method on the requested resource".to_owned(),
                ));
            }
            return discovery::resources(self, &resource);
        }
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let verb = verb(request.method(), &resource, &query)?;
        label.verb = verb;
        let with_subresource = if resource.subresource.is_empty() {
            resource.resource.clone()
        } else {
            format!("{}/{}", resource.resource, resource.subresource)
        };
        self.authorize(&Attributes {
            user: &user,
            verb,
            group: &resource.group,
            resource: &with_subresource,
            namespace: &resource.namespace,
            name: &resource.name,
            path: &path,
        })?;
        let busy =
            || ApiError::TooManyRequests("too many requests at once, please try again later".to_owned());
        let endpoint = self.api.resource(&resource.group, &resource.version, &resource.resource)?;
        label.resource.clone_from(&endpoint.kind().plural);
        let call = super::resources::Call { handler: self, endpoint, path: resource, query, user, verb };
        if verb == "watch" {
            return call.watch(request.headers()).await;
        }
        let _permit = self.requests.try_acquire().map_err(|_| busy())?;
        match tokio::time::timeout(self.limits.request, call.answer(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(ApiError::Timeout("the request did not complete within the time limit".to_owned())),
        }
    }

    fn user(&self, peer: Option<&Arc<User>>, request: &Request<Incoming>) -> Option<Arc<User>> {
        if let Some(peer) = peer {
            return Some(peer.clone());
        }
        let header = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
        self.authenticator.bearer(header).map(Arc::new)
    }

    fn authorize(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        self.authorizer.authorize(attributes).map_err(|message| ApiError::Forbidden {
            subject: Box::new(Subject {
                group: attributes.group.to_owned(),
                resource: attributes.resource.to_owned(),
                kind: String::new(),
                name: attributes.name.to_owned(),
            }),
            message,
            causes: Vec::new(),
        })
    }
}

#[derive(Debug, Default)]
struct Label {
    verb: &'static str,
    resource: String,
}

/// Kubernetes' verb of a request.
fn verb(method: &Method, path: &ResourcePath, query: &Query) -> Result<&'static str, ApiError> {
    let collection = path.name.is_empty();
    Ok(match (method.as_str(), collection) {
        ("GET" | "HEAD", _) if path.subresource.is_empty() && query.watch()? => "watch",
        ("GET" | "HEAD", true) => "list",
        ("GET" | "HEAD", false) => "get",
        ("POST", true) => "create",
        ("PUT", false) => "update",
        ("PATCH", false) => "patch",
        ("DELETE", true) => "deletecollection",
        ("DELETE", false) => "delete",
        _ => {
            return Err(ApiError::MethodNotAllowed(
                "the server does not allow this method on the requested resource".to_owned(),
            ));
        }
    })
}
