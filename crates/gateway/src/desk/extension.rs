//! Requests that the gateway does not know, for a server that has declared an extension.

use std::sync::Arc;

use switchboard_client::Raw;

use super::{Room, part};
use crate::{
    extensions::{declares, is_foreign},
    failure::Failure,
    view::View,
};

impl Room<'_> {
    /// Hands a request on to the server of this view. It takes a place, a deadline and a record like any call.
    pub(super) async fn extension(
        &self,
        method: String,
        params: Option<Raw>,
    ) -> Result<Raw, Failure> {
        let unknown = Failure::method_not_found(&method);
        let View::Server(server) = self.view else {
            return Err(unknown);
        };
        if !is_foreign(&method) {
            return Err(unknown);
        }
        let part = part(self.gateway, server).await?;
        if !part.offers().capabilities.as_ref().is_some_and(declares) {
            return Err(unknown);
        }
        let params = params.unwrap_or_else(Raw::empty_object);
        let text = |name: &str| params.member(name).and_then(|text| text.to_text());
        let name = text("name").or_else(|| text("uri")).unwrap_or_default();
        self.errand(server, method, Arc::from(name), params).await
    }
}
