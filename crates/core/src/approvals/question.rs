//! The wording of requests to a person: calls, and questions of servers.

use std::{sync::Arc, time::Duration};

use sha2::{Digest, Sha256};
use switchboard_approvals::{Ask, Asker, Holder, Kind, Patience, form::Form, rules::digest};
use switchboard_base::caller::Caller;
use switchboard_client::Raw;
use switchboard_config::Approvals as Settings;
use switchboard_text::hex;
use switchboard_wire::method;

use crate::approvals::shown::is_seen;

/// The most characters of a summary.
const SUMMARY_CHARS: usize = 200;
/// The subject of a request: the server, the item and the caller.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) server: Arc<str>,
    /// The fingerprint of the server, if it is configured.
    pub(crate) identity: Option<Arc<str>>,
    /// The tool whose call is in flight; for a resource or prompt, its URI or name.
    pub(crate) tool: Option<Arc<str>>,
    /// The caller, if known.
    pub(crate) caller: Option<Caller>,
    /// The name of the caller's principal.
    pub(crate) principal: Option<Arc<str>>,
    /// The client's description of itself, verbatim: only identical bytes count as the same client.
    pub(crate) client_info: Option<Raw>,
}

impl About {
    fn ask(&self, kind: Kind, settings: &Settings, request: &Raw) -> Ask {
        let client = self
            .caller
            .as_ref()
            .map(|caller| Arc::clone(&caller.client));
        let tool = self.tool.as_deref().unwrap_or_default();
        // An answer for one realm does not hold for another, even under the same client name.
        let realm = self.caller.as_ref().map(|caller| caller.realm.to_string());
        let mut hash = Sha256::new();
        for part in [
            kind.as_str(),
            &self.server,
            tool,
            client.as_deref().unwrap_or_default(),
            realm.as_deref().unwrap_or_default(),
            self.client_info.as_ref().map_or("", Raw::as_str),
            self.project().unwrap_or_default(),
        ]
        .into_iter()
        .chain(self.identity.as_deref())
        {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.update(digest(request));
        Ask {
            kind,
            server: Arc::clone(&self.server),
            tool: self.tool.clone(),
            identity: self.identity.clone(),
            session: self
                .caller
                .as_ref()
                .map(Caller::session)
                .unwrap_or_default(),
            holder: self
                .caller
                .as_ref()
                .map_or_else(Holder::default, |caller| caller.holder),
            project: self.project().map(Arc::from),
            client: self.caller.as_ref().map(Caller::shown),
            asker: self.asker(),
            summary: summary(kind, request, request).unwrap_or_default().into(),
            warnings: Vec::new(),
            rule: None,
            allowed_by: None,
            // Copied: it may be kept long after the frame that it came in.
            request: request.detached(),
            key: hex::encode(&hash.finalize()).into(),
            patience: Some(patience(settings)),
        }
    }

    fn asker(&self) -> Option<Asker> {
        Some(Asker {
            principal: self.principal.clone()?,
            door: self.caller.as_ref()?.door.into(),
        })
    }

    /// The folder that the client works in.
    fn project(&self) -> Option<&str> {
        self.caller.as_ref()?.project().map(|project| &**project)
    }

    /// A request to approve a tool call.
    pub(crate) fn call(
        &self,
        settings: &Settings,
        arguments: Option<Raw>,
        annotations: Option<Raw>,
    ) -> Ask {
        let tool = self.tool.as_deref().unwrap_or_default();
        let members = [("name", Raw::string(tool))].into_iter();
        let members = members.chain(arguments.map(|arguments| ("arguments", arguments)));
        let members = members.chain(annotations.map(|hints| ("annotations", hints)));
        self.ask(Kind::ToolCall, settings, &Raw::object(members))
    }

    /// A request to approve reading a resource.
    pub(crate) fn read(&self, settings: &Settings) -> Ask {
        let uri = self.tool.as_deref().unwrap_or_default();
        let request = Raw::object([
            ("method", Raw::string(method::RESOURCES_READ)),
            ("uri", Raw::string(uri)),
        ]);
        self.ask(Kind::Resource, settings, &request)
    }

    /// A request to approve getting a prompt.
    pub(crate) fn prompt(&self, settings: &Settings, arguments: Option<Raw>) -> Ask {
        let name = self.tool.as_deref().unwrap_or_default();
        let members = [
            ("method", Raw::string(method::PROMPTS_GET)),
            ("name", Raw::string(name)),
        ];
        let members = members.into_iter();
        let request = Raw::object(members.chain(arguments.map(|all| ("arguments", all))));
        self.ask(Kind::Prompt, settings, &request)
    }

    /// A question of a server; `None` if a person cannot answer it.
    pub(crate) fn question(
        &self,
        settings: &Settings,
        asked: &str,
        params: Option<&Raw>,
    ) -> Option<Ask> {
        let request = params.cloned().unwrap_or_else(Raw::empty_object);
        match asked {
            method::SAMPLING => Some(self.ask(Kind::Sampling, settings, &request)),
            method::ELICITATION => {
                let mut ask = self.ask(Kind::Elicitation, settings, &request);
                ask.warnings = Form::read(&request).warnings();
                Some(ask)
            }
            _ => None,
        }
    }

    /// A request to approve tools that are held.
    pub(crate) fn trust(&self, settings: &Settings, summary: &str, request: &Raw) -> Ask {
        let mut ask = self.ask(Kind::Trust, settings, request);
        ask.summary = line(summary).into();
        ask.patience = None;
        ask
    }
}

pub(crate) fn patience(settings: &Settings) -> Patience {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    Patience {
        short: millis(settings.short_timeout),
        long: millis(settings.long_timeout),
    }
}

/// The one-line summary of a request. The parts are taken from `shown`, which is the request itself
/// or its redacted form. `None` for trust requests, whose body does not say enough.
pub(super) fn summary(kind: Kind, request: &Raw, shown: &Raw) -> Option<String> {
    let text = |name: &str| shown.member(name).and_then(|text| text.to_text());
    let text = |name: &str| text(name).unwrap_or_default();
    let with = || {
        let arguments = shown.member("arguments");
        arguments.map_or(String::new(), |all| format!(" with {}", all.as_str()))
    };
    let whole = match kind {
        Kind::ToolCall => format!("wants to call {}{}", text("name"), with()),
        Kind::Prompt => format!("wants the prompt {}{}", text("name"), with()),
        Kind::Resource => format!("wants to read {}", text("uri")),
        Kind::Sampling => format!("wants a model's answer: {}", last_words(shown)),
        Kind::Elicitation => match Form::read(request).host() {
            Some(host) => format!("wants you to open a URL at {host}: {}", text("message")),
            None => format!("asks: {}", text("message")),
        },
        Kind::Trust => return None,
    };
    Some(line(&whole))
}

/// The last message of the conversation that a model is to continue.
fn last_words(params: &Raw) -> String {
    let messages = params
        .member("messages")
        .and_then(|messages| messages.elements());
    let last = messages.and_then(|messages| messages.last().cloned());
    let Some(content) = last.and_then(|message| message.member("content")) else {
        return "(no message)".to_owned();
    };
    let text = |block: &Raw| block.member("text").and_then(|text| text.to_text());
    match content.elements() {
        Some(blocks) => blocks.iter().find_map(text),
        None => text(&content),
    }
    .unwrap_or_else(|| "(no text)".to_owned())
}

/// Text as one line of at most [`SUMMARY_CHARS`]. Reads no more of a long text than it needs.
fn line(text: &str) -> String {
    let mut line = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        let space = (count > 0).then_some(' ');
        // Invisible characters could change the rendering of the rest.
        for character in space
            .into_iter()
            .chain(word.chars().filter(|&c| is_seen(c)))
        {
            if count == SUMMARY_CHARS {
                line.pop();
                line.push('…');
                return line;
            }
            line.push(character);
            count += 1;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_of_blanks_shows_its_cut() {
        let blanks = " \n".repeat(5_000);
        assert_eq!(line(&format!("ls{blanks}rm -rf ~")), "ls rm -rf ~");
        let long = line(&format!("ls{blanks}{}", "x".repeat(500)));
        assert_eq!(long.chars().count(), SUMMARY_CHARS);
        assert!(long.starts_with("ls xx") && long.ends_with("x…"), "{long}");
        assert_eq!(line(&"é".repeat(SUMMARY_CHARS)), "é".repeat(SUMMARY_CHARS));
        assert_eq!(line("\u{200b} a \u{202e}b"), "a b");
    }
}
