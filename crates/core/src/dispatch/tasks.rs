//! Requests about tasks, whose IDs are the gateway's in every view.

use switchboard_base::{error::Error, tasks, view::View};
use switchboard_client::{ErrorObject, Raw};
use switchboard_wire::{Era, code, method};

use super::{Dispatch, distinct_text, renamed, required};

impl Dispatch<'_> {
    /// Forwards a request about a task to the task's server.
    pub(super) async fn task(
        &self,
        method: &'static str,
        params: Option<Raw>,
    ) -> Result<Raw, Error> {
        let params = required(params)?;
        if self.guest.era() == Era::Modern && !self.has_tasks(&params) {
            let wanted = Raw::object([(tasks::EXTENSION, Raw::empty_object())]);
            let wanted = Raw::object([("extensions", wanted)]);
            let data = Raw::object([("requiredCapabilities", wanted)]);
            let message = "the client did not declare the tasks extension";
            let error = ErrorObject::new(code::MISSING_CLIENT_CAPABILITY, message);
            return Err(Error::Refused(error.with_data(data)));
        }
        let exposed = distinct_text(&params, &["taskId"])?;
        let signer = &self.core.signer;
        let found = tasks::locate(signer, self.caller.realm, &exposed);
        let found = found.and_then(|(place, task)| {
            // A name has no slash.
            let server = place.split('/').next()?;
            let is_seen = self.view.sees(server) && self.scope.permits_server(server);
            // Another instance may have another task with the same ID.
            let is_here = is_seen && *self.core.place(server, self.caller) == *place;
            is_here.then(|| (server.to_owned(), task))
        });
        let Some((server, task)) = found else {
            return Err(Error::invalid_params("there is no such task"));
        };
        let params = renamed(&params, "taskId", &task)?;
        let name = task.as_str().into();
        let result = self.outgoing(&server, method, name, params).await?;
        let result = self.expose_tasks(&server, result);
        self.deliver_task(&server, result).await
    }

    /// Tests if the client declared the tasks extension with this request.
    fn has_tasks(&self, params: &Raw) -> bool {
        let said = self.guest.capabilities(Some(params)).member("extensions");
        said.is_some_and(|said| said.member(tasks::EXTENSION).is_some())
    }

    pub(super) async fn list_tasks(&self, params: Option<Raw>) -> Result<Raw, Error> {
        let View::Server(server) = self.view else {
            return Err(Error::method_not_found(method::TASKS_LIST));
        };
        let params = params.unwrap_or_else(Raw::empty_object);
        let upstream = self.upstream(server)?;
        let result = self.outgoing(server, method::TASKS_LIST, "".into(), params);
        let own = upstream.begun.only_of(self.caller.realm, &result.await?);
        let own = own.map_err(|error| tasks::unclear(server, &error))?;
        Ok(self.expose_tasks(server, own))
    }

    pub(super) fn expose_tasks(&self, server: &str, result: Raw) -> Raw {
        let signer = &self.core.signer;
        let place = self.core.place(server, self.caller);
        tasks::expose_result(result, &|task| {
            tasks::expose(signer, self.caller.realm, &place, task)
        })
    }
}
