//! Requests for resources.

use std::sync::Arc;

use horchestra_core::patch;
use http::header::USER_AGENT;
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::accept::{self, Form};
use super::answer::{self, JSON};
use super::body::{self, Answer};
use super::handler::Handler;
use super::path::ResourcePath;
use super::query::Query;
use super::stream::{self, Writer};
use crate::ApiError;
use crate::kinds::Endpoint;
use crate::object::Object;
use crate::rest::{Change, Deleted, Listing, Subresource, Target, Written, partial, table};
use crate::user::User;

/// A request whose resource is known.
pub(crate) struct Call<'a> {
    pub(crate) handler: &'a Handler,
    pub(crate) endpoint: Endpoint,
    pub(crate) path: ResourcePath,
    pub(crate) query: Query,
    pub(crate) user: Arc<User>,
    pub(crate) verb: &'static str,
}

impl Call<'_> {
    /// Answers everything but watches.
    pub(crate) async fn answer(self, request: Request<Incoming>) -> Result<Response<Answer>, ApiError> {
        self.check_path()?;
        let (parts, incoming) = request.into_parts();
        let headers = parts.headers;
        let agent = headers.get(USER_AGENT).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
        let subresource = self.subresource()?;
        let form = accept::form(&headers, |form| *form != Form::Discovery)?;
        match self.verb {
            "get" if subresource == Subresource::Scale => {
                let scale =
                    self.handler.api.scale(&self.endpoint, &self.path.namespace, &self.path.name).await?;
                Ok(answer::json(200, &scale))
            }
            "get" => {
                let object =
                    self.handler.api.get(&self.endpoint, &self.path.namespace, &self.path.name).await?;
                self.handler.api.check_reached(self.query.get("resourceVersion"))?;
                self.object(200, &object, &form)
            }
            "list" => {
                let options = self.query.list()?;
                let listing = self.handler.api.list(&self.endpoint, &self.path.namespace, &options).await?;
                self.listing(&listing, &form)
            }
            "create" => {
                let bytes = body::read(&headers, incoming, self.handler.limits.body).await?;
                let body = body::decode(&body::media_type(&headers), &bytes)?;
                let options = self.query.write(&self.user, &agent, false)?;
                let written =
                    self.handler.api.create(&self.endpoint, &self.path.namespace, body, &options).await?;
                self.written(&written, &form)
            }
            "update" | "patch" => self.change(&headers, incoming, &agent, subresource, &form).await,
            "delete" => {
                let options = self.delete_options(&headers, incoming).await?;
                let deleted = self
                    .handler
                    .api
                    .delete(&self.endpoint, &self.path.namespace, &self.path.name, &options)
                    .await?;
                match deleted {
                    Deleted::Gone(object) => Ok(answer::json(200, &self.gone(&object))),
                    Deleted::Pending(object) => self.object(200, &object, &form),
                }
            }
            _ => {
                let which = self.query.list()?;
                let options = self.delete_options(&headers, incoming).await?;
                let listing = self
                    .handler
                    .api
                    .delete_collection(&self.endpoint, &self.path.namespace, &which, &options)
                    .await?;
                self.listing(&listing, &form)
            }
        }
    }

    /// Answers a watch.
    pub(crate) async fn watch(self, headers: &HeaderMap) -> Result<Response<Answer>, ApiError> {
        self.check_path()?;
        let form = accept::form(headers, |form| *form != Form::Discovery)?;
        let options = self.query.watch_options(&self.path.name)?;
        let include = self.query.include_object()?;
        let permit = self.handler.watches.clone().try_acquire_owned().map_err(|_| {
            ApiError::TooManyRequests("too many watches at once, please try again later".to_owned())
        })?;
        let body = match self.handler.api.watch(&self.endpoint, &self.path.namespace, &options).await {
            Ok(watch) => {
                let writer = Writer { endpoint: self.endpoint.clone(), form, include, headings: true };
                stream::body(watch, writer, self.handler.stop.clone(), self.handler.metrics.clone(), permit)
            }
            // Clients look for this one among the events.
            Err(error @ ApiError::Expired(_)) => stream::failed(&error),
            Err(error) => return Err(error),
        };
        Ok(answer::with_body(200, JSON, body))
    }

    /// Namespaced kinds are written under a namespace, others are not.
    fn check_path(&self) -> Result<(), ApiError> {
        let namespaced = self.endpoint.kind().namespaced();
        let named = !self.path.namespace.is_empty();
        let across = matches!(self.verb, "list" | "watch" | "deletecollection") && self.path.name.is_empty();
        if (named && !namespaced) || (!named && namespaced && !across) {
            return Err(ApiError::UnknownPath);
        }
        Ok(())
    }

    fn subresource(&self) -> Result<Subresource, ApiError> {
        let version = self.endpoint.version();
        match self.path.subresource.as_str() {
            "" => Ok(Subresource::None),
            _ if matches!(self.verb, "create" | "delete") => Err(ApiError::MethodNotAllowed(
                "the server does not allow this method on the requested resource".to_owned(),
            )),
            "status" if version.status => Ok(Subresource::Status),
            "scale" if version.scale.is_some() => Ok(Subresource::Scale),
            _ => Err(ApiError::UnknownPath),
        }
    }

    async fn change(
        &self,
        headers: &HeaderMap,
        incoming: Incoming,
        agent: &str,
        subresource: Subresource,
        form: &Form,
    ) -> Result<Response<Answer>, ApiError> {
        let media_type = body::media_type(headers);
        let apply = self.verb == "patch" && media_type == "application/apply-patch+yaml";
        let options = self.query.write(&self.user, agent, apply)?;
        let bytes = body::read(headers, incoming, self.handler.limits.body).await?;
        let change = if self.verb == "update" {
            Change::Replace(body::decode(&media_type, &bytes)?)
        } else {
            patch_of(&media_type, &bytes)?
        };
        let (namespace, name) = (self.path.namespace.as_str(), self.path.name.as_str());
        if subresource == Subresource::Scale {
            let apply = |scale: Value| scaled(&change, scale);
            let scale =
                self.handler.api.change_scale(&self.endpoint, namespace, name, apply, &options).await?;
            return Ok(answer::json(200, &scale));
        }
        let target = Target { endpoint: &self.endpoint, namespace, name, subresource };
        let written = self.handler.api.change(target, change, &options).await?;
        self.written(&written, form)
    }

    async fn delete_options(
        &self,
        headers: &HeaderMap,
        incoming: Incoming,
    ) -> Result<crate::rest::DeleteOptions, ApiError> {
        let bytes = body::read(headers, incoming, self.handler.limits.body).await?;
        let body = if bytes.is_empty() {
            json!({})
        } else {
            body::decode(&body::media_type(headers), &bytes)?.value
        };
        self.query.delete(&self.user, &body)
    }

    fn written(&self, written: &Written, form: &Form) -> Result<Response<Answer>, ApiError> {
        let response = self.object(if written.created { 201 } else { 200 }, &written.object, form)?;
        Ok(answer::warn(response, &written.warnings))
    }

    fn object(&self, code: u16, object: &Object, form: &Form) -> Result<Response<Answer>, ApiError> {
        let api_version = self.endpoint.api_version();
        Ok(match form {
            Form::Plain | Form::Discovery => {
                let mut out = Vec::new();
                object.write(api_version, &self.endpoint.kind().kind, &mut out);
                answer::bytes(code, JSON, out)
            }
            Form::Partial(version) => answer::json(code, &partial(object.value(), version)),
            Form::Table(version) => {
                let value = object.value_as(api_version);
                let metadata = json!({"resourceVersion": object.revision().to_string()});
                let include = self.query.include_object()?;
                answer::json(code, &table(&self.endpoint, &[&value], metadata, include, version, true))
            }
        })
    }

    fn listing(&self, listing: &Listing, form: &Form) -> Result<Response<Answer>, ApiError> {
        Ok(match form {
            Form::Plain | Form::Discovery => answer::bytes(200, JSON, listing.to_json(&self.endpoint)),
            Form::Partial(version) => {
                let items: Vec<Value> =
                    listing.objects()?.iter().map(|o| partial(o.value(), version)).collect();
                answer::json(
                    200,
                    &json!({
                        "kind": "PartialObjectMetadataList",
                        "apiVersion": format!("meta.k8s.io/{version}"),
                        "metadata": listing.metadata(),
                        "items": items,
                    }),
                )
            }
            Form::Table(version) => {
                let objects = listing.objects()?;
                let values: Vec<Value> =
                    objects.iter().map(|o| o.value_as(self.endpoint.api_version())).collect();
                let values: Vec<&Value> = values.iter().collect();
                let include = self.query.include_object()?;
                answer::json(200, &table(&self.endpoint, &values, listing.metadata(), include, version, true))
            }
        })
    }

    fn gone(&self, object: &Object) -> Value {
        let kind = self.endpoint.kind();
        let mut details = json!({"name": object.name(), "kind": kind.plural, "uid": object.uid()});
        if !kind.group.is_empty() {
            details["group"] = json!(kind.group);
        }
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
    }
}

/// A patch by its media type.
fn patch_of(media_type: &str, bytes: &[u8]) -> Result<Change, ApiError> {
    Ok(match media_type {
        "application/json-patch+json" => Change::JsonPatch(body::decode_json(bytes)?.value),
        "application/merge-patch+json" => Change::MergePatch(body::decode_json(bytes)?.value),
        "application/strategic-merge-patch+json" => Change::StrategicPatch(body::decode_json(bytes)?.value),
        "application/apply-patch+yaml" => Change::Apply(body::decode_yaml(bytes)?),
        _ => {
            return Err(ApiError::UnsupportedMediaType(
                "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml".to_owned(),
            ));
        }
    })
}

/// A Scale after a change.
fn scaled(change: &Change, mut scale: Value) -> Result<Value, ApiError> {
    let refused = |error: patch::PatchError| ApiError::BadRequest(error.to_string());
    match change {
        Change::Replace(body) => return Ok(body.value.clone()),
        Change::JsonPatch(operations) => patch::json_patch(&mut scale, operations).map_err(refused)?,
        // A Scale has no lists, so that these are the same.
        Change::MergePatch(patch) | Change::StrategicPatch(patch) => {
            patch::merge_patch(&mut scale, patch).map_err(refused)?;
        }
        Change::Apply(body) => patch::merge_patch(&mut scale, &body.value).map_err(refused)?,
    }
    Ok(scale)
}
