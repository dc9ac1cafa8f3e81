//! Asking a server what it offers.

use switchboard_catalog::Offers;
use switchboard_client::{Client, Error, ErrorKind, Lossless, Pages, Raw, model};

/// Which lists to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lists {
    tools: bool,
    prompts: bool,
    resources: bool,
}

impl Lists {
    pub(crate) const ALL: Self = Self {
        tools: true,
        prompts: true,
        resources: true,
    };

    const NONE: Self = Self {
        tools: false,
        prompts: false,
        resources: false,
    };

    /// Which lists a notification says have changed.
    pub(crate) fn changed(method: &str) -> Option<Self> {
        match method {
            "notifications/tools/list_changed" => Some(Self {
                tools: true,
                ..Self::NONE
            }),
            "notifications/prompts/list_changed" => Some(Self {
                prompts: true,
                ..Self::NONE
            }),
            "notifications/resources/list_changed" => Some(Self {
                resources: true,
                ..Self::NONE
            }),
            _ => None,
        }
    }
}

/// More items than this of one kind are no list but a trap.
const ITEMS_MAX: usize = 10_000;

/// What the server offers: these lists anew, the others as they were known. `None` if it could not be
/// asked, in which case what was known stands.
pub(crate) async fn learn(
    name: &str,
    client: &Client,
    lists: Lists,
    known: Option<std::sync::Arc<Offers>>,
) -> Option<Offers> {
    let session = client.ready().await.ok()?;
    let capabilities = &session.capabilities;
    let has = |what: &str| capabilities.member(what).is_some();
    let known = known.as_deref();
    let mut complete = true;
    let mut list = |result: Result<Vec<Raw>, Error>, before: Option<&Vec<Raw>>| match result {
        Ok(items) => items,
        // A server may say that it has a kind of thing and not know how to list it.
        Err(Error::Server(_)) => Vec::new(),
        Err(error) => {
            complete &= error.kind() == ErrorKind::Protocol;
            tracing::warn!(server = name, %error, "Cannot learn what the server offers.");
            before.cloned().unwrap_or_default()
        }
    };
    let mut offers = known.cloned().unwrap_or_default();
    if lists.tools {
        let tools = gather(has("tools").then(|| client.tools())).await;
        offers.tools = list(tools, known.map(|known| &known.tools));
    }
    if lists.prompts {
        let prompts = gather(has("prompts").then(|| client.prompts())).await;
        offers.prompts = list(prompts, known.map(|known| &known.prompts));
    }
    if lists.resources {
        let resources = gather(has("resources").then(|| client.resources())).await;
        offers.resources = list(resources, known.map(|known| &known.resources));
        let templates = gather(has("resources").then(|| client.resource_templates())).await;
        offers.templates = list(templates, known.map(|known| &known.templates));
    }
    offers.capabilities = Some(capabilities.clone());
    offers.server_info.clone_from(&session.server_info);
    offers.instructions = session.instructions.as_deref().map(str::to_owned);
    offers.era = Some(session.revision.era());
    offers.revision = Some(session.revision);
    complete.then_some(offers)
}

async fn gather<T: model::Listed>(pages: Option<Pages<T>>) -> Result<Vec<Raw>, Error> {
    let Some(mut pages) = pages else {
        return Ok(Vec::new());
    };
    let mut items = Vec::new();
    while items.len() < ITEMS_MAX
        && let Some(item) = pages.next().await
    {
        items.push(Lossless::raw(&item?).clone());
    }
    Ok(items)
}
