//! Searching for tools, as agents do, with explanations.

use std::sync::Arc;

use axum::{Json, extract::State};
use hyper::StatusCode;
use switchboard_catalog::Kind;
use switchboard_core::{finder::ToolQuery, tool_result};
use switchboard_inbound::problem::Problem;
use switchboard_rest::tools::{FoundTool, Match, Search, SearchQuery, Why};
use switchboard_search::Hit;

use super::ask::{Asked, unknown_server};
use crate::admin::Admin;

/// The most tools in a response.
const MOST: usize = 200;
/// The longest summary of a tool, in bytes.
const SUMMARY_BYTES: usize = 200;

pub(super) async fn search(
    State(admin): State<Arc<Admin>>,
    Asked(question): Asked<SearchQuery>,
) -> Result<Json<Search>, Problem> {
    let server = question.server.filter(|server| !server.is_empty());
    if let Some(name) = &server
        && admin.core.upstream(name).is_none()
    {
        return Err(unknown_server(&admin, name));
    }
    let core = &admin.core;
    let wish = ToolQuery {
        text: question.q,
        limit: question.limit.clamp(1, MOST),
        server,
        read_only: question.read_only,
        trusted: question.trusted,
        within: None,
        explain: question.explain,
    };
    let found = core.finder.find(wish).await?;
    let catalog = core.live_catalog.catalog();
    let tool = |hit: Hit| {
        let part = catalog.server(&hit.server)?;
        let item = part.find_shown(Kind::Tool, &hit.name)?;
        let described = item.definition().member("description");
        let described = described
            .and_then(|text| text.to_text())
            .unwrap_or_default();
        Some(FoundTool {
            name: format!("{}:{}", hit.server, hit.name),
            summary: tool_result::summary(&described, SUMMARY_BYTES),
            score: hit.score,
            why: hit.why.map(reasons),
            server: hit.server.to_string(),
            tool: item.name().to_owned(),
        })
    };
    Ok(Json(Search {
        tools: found.hits.into_iter().filter_map(tool).collect(),
        by_meaning: found.by_meaning,
        learnt: core.finder.feedback.count() as u64,
    }))
}

/// Forgets the feedback of earlier searches.
pub(super) async fn forget(State(admin): State<Arc<Admin>>) -> Result<StatusCode, Problem> {
    let core = Arc::clone(&admin.core);
    let forgetting = tokio::task::spawn_blocking(move || core.finder.feedback.forget());
    match forgetting.await {
        Ok(Ok(())) => Ok(StatusCode::NO_CONTENT),
        Ok(Err(error)) => {
            let detail = format!(
                "the search feedback is cleared until the next start, but its file cannot be removed: {error}"
            );
            Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail))
        }
        Err(_) => {
            let detail = "the gateway is stopping";
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
                .hint("try again when the gateway is running again"))
        }
    }
}

fn reasons(why: switchboard_search::Why) -> Why {
    let matches = why.matches.into_iter().map(|found| Match {
        word: found.word,
        found: found.stem,
        fields: found
            .fields
            .iter()
            .map(|field| field.as_str().to_owned())
            .collect(),
        score: found.score,
    });
    Why {
        words: why.words,
        meaning: why.meaning,
        learnt: why.learnt,
        matches: matches.collect(),
    }
}
