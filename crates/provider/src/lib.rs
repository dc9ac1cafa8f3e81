//! Models behind HTTP, for servers that request a completion from a model.
//!
//! A [`Provider`] turns the params of `sampling/createMessage`, once a person has approved them, into one
//! call of a model, and its response into a `CreateMessageResult`. It speaks the chat completions API of
//! `OpenAI`, which most local servers speak too, and the messages API of Anthropic.
//!
//! ```no_run
//! use std::time::Duration;
//! use switchboard_provider::{Kind, Provider, Settings};
//! use switchboard_wire::Raw;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let provider = Provider::new(Settings {
//!     base_url: Some("http://127.0.0.1:11434".to_owned()),
//!     timeout: Duration::from_secs(120),
//!     ..Settings::new(Kind::OpenAi, "llama3.2")
//! })?;
//! let params = Raw::parse(
//!     r#"{"messages":[{"role":"user","content":{"type":"text","text":"Hi"}}],"maxTokens":100}"#,
//! )?;
//! let generated = provider.generate(&params, None).await?;
//! assert_eq!(generated.result.member("role").and_then(|role| role.to_text()).as_deref(), Some("assistant"));
//! # Ok(())
//! # }
//! ```
//!
//! The request is parsed into a form that both APIs share (`ask`), encoded for one of them (`openai`,
//! `anthropic`) and sent (`exchange`); the response is parsed and converted the same way (`answer`). Every
//! response of the provider becomes a result or an error, and no error contains the key.

mod address;
mod answer;
mod anthropic;
mod ask;
mod choice;
mod error;
mod exchange;
mod names;
mod openai;
mod provider;
mod settings;

pub use error::{ProviderError, Said};
pub use provider::{Generated, Provider, Usage};
pub use settings::{Kind, Prices, Settings};
