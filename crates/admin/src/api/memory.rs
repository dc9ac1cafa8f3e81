//! Mending the memory after its file was damaged. Everything else of it is done with its tools.

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use serde::{Deserialize, Serialize};
use switchboard_inbound::problem::Problem;

use super::ask::MaySay;
use crate::admin::Admin;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Wish {
    /// Begin without what could be brought back.
    #[serde(default)]
    discard: bool,
}

#[derive(Serialize)]
pub(super) struct Mended {
    /// Versions of memories that were brought back.
    versions: u64,
    entities: u64,
    relations: u64,
    /// What could not be read.
    problems: Vec<Arc<str>>,
}

pub(super) async fn repair(
    State(admin): State<Arc<Admin>>,
    MaySay(wish): MaySay<Wish>,
) -> Result<Json<Mended>, Problem> {
    let Some(memory) = &admin.core.deps().memory else {
        let detail = "this build of Switchboard has no memory";
        return Err(Problem::new(StatusCode::NOT_FOUND, detail));
    };
    let salvaged = memory.repair(wish.discard).await?;
    Ok(Json(Mended {
        versions: salvaged.versions,
        entities: salvaged.entities,
        relations: salvaged.relations,
        problems: salvaged.problems,
    }))
}
