//! Requests of servers of older revisions, answered by the client of a call or by a person.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use switchboard_base::{
    caller::{Caller, answers},
    extensions::{declares, is_foreign},
    tasks,
};
use switchboard_client::{Asked, ErrorObject, Raw};
use switchboard_outbound::{
    instances::Key,
    questions::{Located, Owner, Question, Questions, Ruling, UnderWay, unanswerable},
};
use switchboard_wire::{code, method};
use tokio::{sync::oneshot, time::timeout};

use super::{
    human::{Answerer, Person},
    question_rules::{self, Asker},
};
use crate::{core::Core, roots};

/// The longest time that a client may take to list its roots, if no call waits for that.
const ROOTS_PATIENCE: Duration = Duration::from_secs(10);

/// A request of an instance of a server.
pub(crate) struct Asking {
    pub(crate) questions: Arc<Questions>,
    pub(crate) server: Arc<str>,
    /// The callers that the instance is for, if it is not for all of them.
    pub(crate) key: Option<Key>,
    /// The directory that the callers of the instance work in.
    pub(crate) project: Option<Arc<str>>,
    pub(crate) asked: Asked,
    /// The calls that were in flight when it was read.
    pub(crate) under_way: UnderWay,
}

impl Asking {
    fn is_for_roots(&self) -> bool {
        self.asked.method == method::ROOTS_LIST
    }

    /// Tests if the instance may get the roots of this client, which it serves to all its callers from then on.
    fn may_get_roots(&self, core: &Core, client: &Caller, is_of_call: bool) -> bool {
        match &self.key {
            Some(key) => key.serves(client),
            None => core.upstream(&self.server).is_some_and(|upstream| {
                upstream.may_get_roots(&self.questions, client, is_of_call)
            }),
        }
    }

    /// The answer to a request for roots in a call of this client, unless it is put to the client.
    fn known_roots(
        &self,
        core: &Core,
        client: &Caller,
        client_can: bool,
    ) -> Option<Result<Raw, ErrorObject>> {
        let granted = roots::granted(&self.asked.method, client);
        let has_some = self.is_for_roots() && (client_can || granted.is_some());
        if has_some && !self.may_get_roots(core, client, true) {
            return Some(self.without_sharing());
        }
        granted.map(Ok)
    }

    /// Tests if one of the clients that the request may be for would be asked if it had a process of its own. Clients with
    /// tokens do not count if the owner has used the process: they must not end it.
    fn some_client_can(&self) -> bool {
        let Asked { method, params, .. } = &self.asked;
        self.under_way.any(|call| {
            let is_withheld = self.questions.is_for_owner(call.caller.realm.principal);
            !is_withheld && answers(&call.capabilities, method, params.as_ref())
        })
    }

    /// The answer if there is no client that can give one: the directory of the callers is known as a root.
    fn without_client(&self) -> Result<Raw, ErrorObject> {
        match self.project.as_ref().filter(|_| self.is_for_roots()) {
            Some(project) => Ok(roots::of_project(project)),
            None => Err(unanswerable(&self.asked.method)),
        }
    }

    /// The answer to a request for roots that other clients would notice.
    fn without_sharing(&self) -> Result<Raw, ErrorObject> {
        self.without_client().map_err(|_| {
            let message = "no client is asked for its roots: other clients may use this process or connection, too";
            ErrorObject::new(code::METHOD_NOT_FOUND, message)
        })
    }

    /// The answer if several clients could be meant.
    fn without_one_client(&self) -> Result<Raw, ErrorObject> {
        let Self { server, asked, .. } = self;
        // They may work in the same project.
        if self.is_for_roots() {
            return self.without_sharing();
        }
        tracing::warn!(%server, question = %asked.method, "Cannot tell which client a question is for.");
        let message = "several clients use this server, and the request does not say which client it is for; ask again when fewer calls are in flight";
        Err(ErrorObject::new(code::INTERNAL, message))
    }
}

/// Has a request of a server answered. Dropping the future withdraws it.
pub(crate) async fn answer(core: &Arc<Core>, asking: &Asking) -> Result<Raw, ErrorObject> {
    let server = &asking.server;
    if core.live_catalog.permits(server, None).is_err() {
        let message =
            "this server is not approved yet, so the gateway answers none of its requests";
        return Err(ErrorObject::new(code::METHOD_NOT_FOUND, message));
    }
    loop {
        if let Some(answer) = put(core, asking).await {
            return answer;
        }
    }
}

/// Puts a request of a server to the client of the call that it seems to belong to, or to a person. `None` if that call
/// turned out to be answered already: the request belongs to another one.
async fn put(core: &Arc<Core>, asking: &Asking) -> Option<Result<Raw, ErrorObject>> {
    let Asking {
        questions,
        server,
        asked,
        under_way,
        ..
    } = asking;
    let answerer = |client_can, ruling: &Ruling| {
        let route = core.config.load().approvals.route;
        Answerer::of(route, &asked.method, client_can, ruling)
    };
    let Located {
        owner,
        task,
        is_sure,
        is_of_one,
        is_named,
    } = questions.locate(asked, under_way).await;
    let call = match &owner {
        Owner::Call(owner) => Some(owner),
        Owner::Several | Owner::Nobody => None,
    };
    if let Some(call) = call {
        let counted = call.count().question(&core.config.load().approvals);
        if let Err(exceeded) = counted {
            let limits = &core.approvals.question_limits;
            return Some(Err(limits.refuse(server, &asked.method, exceeded)));
        }
    }
    let asker = Asker {
        server,
        tool: call.and_then(|call| call.tool.as_deref().filter(|_| is_sure)),
        caller: call.map(|call| &call.caller).filter(|_| is_of_one),
    };
    let params = asked.params.as_ref();
    let ruling = question_rules::judge(core, asker, &asked.method, params).await;
    let ruling = match ruling {
        Ok(ruling) => ruling,
        Err(denied) => return Some(Err(question_rules::untold(denied))),
    };
    if matches!(owner, Owner::Several) {
        // With processes of their own, the client would have been asked.
        if answerer(asking.some_client_can(), &ruling) == Answerer::Client {
            note_question(core, asking, None);
        }
    }
    let owner = match owner {
        // The client of a withdrawn call may have left, and must not get the process as its own.
        Owner::Call(owner) if !owner.is_withdrawn() => owner,
        Owner::Several | Owner::Nobody if answerer(false, &ruling) == Answerer::Person => {
            let person = Person::alone(core, server);
            return Some(person.answer(&asked.method, params, &ruling).await);
        }
        Owner::Several => return Some(asking.without_one_client()),
        Owner::Call(_) | Owner::Nobody => return Some(answer_roots(core, asking).await),
    };
    let client_can = answers(&owner.capabilities, &asked.method, params)
        || owner.is_alone()
            && is_foreign(&asked.method)
            && declares(&owner.capabilities)
            && core.live_catalog.declares_extension(server);
    if let Some(roots) = asking.known_roots(core, &owner.caller, client_can) {
        return Some(roots);
    }
    let to_person = match answerer(client_can, &ruling) {
        Answerer::Client => None,
        Answerer::Person => Some(ruling),
        // A request for roots may belong to no call.
        Answerer::Nobody => return Some(answer_roots(core, asking).await),
    };
    let mut params = asked.params.clone();
    if to_person.is_none() {
        if !is_named {
            note_question(core, asking, Some(&owner.caller).filter(|_| is_of_one));
        }
        let place = core.place(server, &owner.caller);
        let (signer, realm) = (&core.signer, owner.caller.realm);
        params = params.map(|params| tasks::expose_related(params, signer, realm, &place));
    }
    let (reply, answer) = oneshot::channel();
    let is_taken = Arc::new(AtomicBool::new(false));
    owner.ask(Question {
        method: asked.method.clone(),
        params,
        name: asked.name.clone(),
        to_person,
        is_sure,
        count: Arc::clone(owner.count()),
        is_taken: Arc::clone(&is_taken),
        reply,
    });
    Some(match answer.await {
        Ok(Ok(answer)) => Ok(match task {
            Some(task) => tasks::rename_related(answer, &|_| task.clone()),
            None => answer,
        }),
        Ok(Err(refused)) => Err(refused),
        // The response to the call was read before the question, so neither client nor approver was asked.
        Err(_) if owner.is_answered() && !is_named && !is_taken.load(Relaxed) => return None,
        // The call has ended, and its client cannot answer for it. A request for roots may have belonged to no call.
        Err(_) => answer_roots(core, asking).await,
    })
}

/// Records a question of a server that does not name its call. If it came over a pipe, the server is one that asks its
/// clients, so each of them gets its own process.
fn note_question(core: &Core, asking: &Asking, caller: Option<&Caller>) {
    let Asking { server, asked, .. } = asking;
    let is_for_client = matches!(
        &*asked.method,
        method::ELICITATION | method::SAMPLING | method::ROOTS_LIST
    );
    if !asked.of_request
        && is_for_client
        && let Some(upstream) = core.upstream(server)
    {
        upstream.has_asked(caller);
    }
}

/// Answers a request that belongs to no call, or to one that has ended. Only a request for roots has a client to go to:
/// the one that has announced a change of them, unless it may have been for a call of another one.
async fn answer_roots(core: &Arc<Core>, asking: &Asking) -> Result<Raw, ErrorObject> {
    let Asking {
        questions,
        server,
        asked,
        under_way,
        ..
    } = asking;
    let is_for_roots = asking.is_for_roots() && !asked.of_request;
    let line = questions.roots().filter(|_| is_for_roots);
    // The profile of the client may have lost the server since.
    let line = line.filter(|(client, _)| core.permits_server(client.realm, server));
    let may_ask = |client: &Caller| {
        if under_way.may_concern(client) {
            return asking.may_get_roots(core, client, false);
        }
        note_question(core, asking, None);
        false
    };
    let Some((_, line)) = line.filter(|(client, _)| may_ask(client)) else {
        return asking.without_client();
    };
    // There is no call whose count could limit it.
    let settings = &core.config.load().approvals;
    let counted = core.approvals.question_limits.question(server, settings);
    counted.map_err(|exceeded| {
        let asking = &core.approvals.question_limits;
        asking.refuse(server, &asked.method, exceeded)
    })?;
    let listing = line.ask(server, &asked.method, asked.params.as_ref());
    match timeout(ROOTS_PATIENCE, listing).await {
        Ok(Ok(roots)) => Ok(roots),
        Ok(Err(_)) | Err(_) => asking.without_client(),
    }
}
