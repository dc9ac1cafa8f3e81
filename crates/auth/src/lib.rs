//! OAuth sign-in to Model Context Protocol (MCP) servers as a state machine.
//!
//! [`Machine`] is deterministic: it has no socket, no clock and no source of randomness. The caller passes in the time
//! and [`Event`]s, and carries out the resulting [`Action`]s: it sends requests, opens the browser, and stores the
//! [`Credential`].
//!
#![doc = include_str!("../README.md")]
//!
//! # States
//!
//! | event | `Unknown`, `NeedsSignIn`, `SignedOut` | `SignedIn` | `AwaitingUser` | `Discovering`, `Registering` | `Exchanging` | `Refreshing` |
//! |---|---|---|---|---|---|---|
//! | refused by the server | note the challenge | ask if the issuer is the same, then refresh; without a refresh token `SignedOut`; note a challenge for scopes | the same, if there is a refresh token | note | note | note |
//! | accepted by the server | `SignedIn`, if there is a token | – | – | – | – | – |
//! | sign-in | discover | discover | start again | start again | – | – |
//! | renew | end | load, then refresh | load, then refresh | – | – | – |
//! | key | – | – | – | go on with the discovery | – | – |
//! | assertion | – | – | – | – | exchange it, at the identity provider first if there is one | – |
//! | response | – | – | wait for the next request, or end; with tokens save, then `SignedIn` | next document, register, then open the browser; with a code for the user, show it | save, then `SignedIn` | save, then `SignedIn` |
//! | nonce demanded | – | – | send again, once | – | send again, once | send again, once |
//! | refresh token refused | – | – | – | – | – | load again; the second time save without tokens, then `SignedOut` |
//! | no assertion, or no signature | – | – | end | end | end | end; the tokens are kept |
//! | renewed elsewhere | – | – | – | – | – | `SignedIn`, `SignedOut`, or end |
//! | request failed | – | – | wait longer, and note the cause | end | end | end; the tokens are kept |
//! | callback, other state | ignore | ignore | ignore | ignore | ignore | ignore |
//! | callback | ignore | ignore | check issuer, exchange the code; ignore if the user enters a code | ignore | ignore | ignore |
//! | time for the next request | – | – | ask for tokens, if the user enters a code; once more shortly before the time is up | – | – | – |
//! | time is up | – | – | end, with the cause if the last request failed | – | – | – |
//! | cancel | – | – | end | end | – | – |
//! | sign-out | forget | revoke, forget | forget | forget | – | – |
//!
//! While a user finishes in the browser, tokens can be renewed. Before a refresh token is used, the stored credential is
//! loaded, because another process may have used it; the caller locks it from then until the work has ended. Instead, it may
//! have a process that outlives it do all of that.
//!
//! A credential is in use once it has been saved, and not before.

mod address;
mod challenge;
mod credential;
mod error;
mod form;
mod machine;
mod metadata;
mod pkce;
mod secret;
mod settings;
mod signed;
mod tokens;

pub use address::Reach;
pub use challenge::Challenge;
pub use credential::{Authentication, Client, Credential, Tokens};
pub use error::Error;
pub use machine::{
    Action, Body, Event, Machine, Renewed, Request, Response, SignIn, State, UserCode,
};
pub use secret::Secret;
pub use settings::{ConfiguredClient, Grant, IdentityProvider, ResourceParameter, Settings};
pub use signed::{Algorithm, PrivateKey, ProofKey, Unsigned};

/// The most characters of a text of another party that are repeated.
const EXCERPT: usize = 200;

/// Makes a text of another party safe to show: its beginning, without control and formatting characters.
fn shown(text: &str) -> String {
    let blank = |character: char| {
        let is_formatting = matches!(character, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}');
        character.is_control() || is_formatting
    };
    let clean = text
        .chars()
        .map(|character| if blank(character) { ' ' } else { character });
    clean.take(EXCERPT).collect::<String>().trim().to_owned()
}
