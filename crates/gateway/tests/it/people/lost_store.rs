//! Remembered denials after the store was lost.

use serde_json::{Value, json};

use super::{asks_deletions, mute, staged};
use crate::mcp_rig::{LEGACY, refusal_of, until};

/// Denies deletions for good, takes the rule that asks away and does something to the store. Then the denial still
/// holds, is listed, and holds after one more start.
async fn denial_survives(damage: impl FnOnce(&std::path::Path)) {
    let (stage, rig) = staged(asks_deletions()).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("delete_file", json!({})).await;
    let waiting = rig.one_waiting().await;
    let never = json!({ "remember": { "scope": "always" } });
    rig.decided(&waiting["id"], "reject", never).await;
    client.finish(&call).await;
    until("the file", || async { rig.home.rules().exists() }).await;
    let mut rig = rig
        .restarted(|home| {
            let text = std::fs::read_to_string(home.config_file()).unwrap();
            let mut config: Value = serde_json::from_str(&text).unwrap();
            config["approvals"]["rules"] = json!([]);
            std::fs::write(home.config_file(), config.to_string()).unwrap();
            damage(&home.database());
        })
        .await;
    for _ in 0..2 {
        let listed = rig
            .until("/api/v1/approvals/rules", |rules| {
                rules["rules"]
                    .as_array()
                    .is_some_and(|rules| !rules.is_empty())
            })
            .await;
        assert_eq!(listed["rules"][0]["source"], "remembered", "{listed}");
        rig.until_tools("s", super::tools().len()).await;
        let mut client = mute(&rig, LEGACY).await;
        let call = client.send_call("delete_file", json!({})).await;
        refusal_of(&client.finish(&call).await.json);
        assert_eq!(stage.calls(), 0);
        // The store has the denial again, so that it no longer depends on the file.
        rig = rig
            .restarted(|home| drop(std::fs::remove_file(home.rules())))
            .await;
    }
    rig.stop().await;
}

#[tokio::test]
async fn denial_survives_a_removed_store() {
    denial_survives(|store| std::fs::remove_file(store).unwrap()).await;
}

#[tokio::test]
async fn denial_survives_a_damaged_store() {
    denial_survives(|store| std::fs::write(store, [0x5a; 5_000]).unwrap()).await;
}
