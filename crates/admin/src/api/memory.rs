//! Repair of a damaged memory file. Everything else is done with the tools of the memory server.

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use switchboard_inbound::problem::Problem;
use switchboard_rest::status::{RepairMemory, RepairedMemory};

use super::ask::MaySay;
use crate::admin::Admin;

pub(super) async fn repair(
    State(admin): State<Arc<Admin>>,
    MaySay(wish): MaySay<RepairMemory>,
) -> Result<Json<RepairedMemory>, Problem> {
    let Some(memory) = &admin.core.deps().memory else {
        let detail = "this build of Switchboard has no memory";
        return Err(Problem::new(StatusCode::NOT_FOUND, detail)
            .hint("use a build with the feature `memory`, which is on by default"));
    };
    let salvaged = memory.repair(wish.discard).await?;
    Ok(Json(RepairedMemory {
        versions: salvaged.versions,
        entities: salvaged.entities,
        relations: salvaged.relations,
        problems: salvaged.problems.iter().map(ToString::to_string).collect(),
    }))
}
