//! The application that embeds the client, as far as the tests need one: it answers servers' requests, and
//! records their notifications.

use std::time::Duration;

use serde_json::json;
use switchboard_client::{
    Client, ClientBuilder, Notification, Raw, Revision,
    model::{ElicitationAnswer, Root, SamplingResult},
};

use super::{PATIENCE, Record};

/// The root that the host exposes.
pub(crate) const ROOT: &str = "file:///srv/project";

#[derive(Clone, Default)]
pub(crate) struct Host {
    /// Notifications of servers.
    pub(crate) news: Record<Notification>,
    /// Questions of servers, both sampling and elicitation.
    pub(crate) questions: Record<String>,
}

impl Host {
    /// A client that speaks no newer revision than this and answers everything: sampling with an echo, forms
    /// with their defaults and the name Ann, addresses with consent, roots with [`ROOT`].
    pub(crate) fn client(&self, newest: Revision) -> ClientBuilder {
        let news = self.news.clone();
        let [samplings, forms, addresses] = [(); 3].map(|()| self.questions.clone());
        Client::builder("switchboard-tests", "1.0")
            .newest_revision(newest)
            .backoff(Duration::from_millis(50), Duration::from_secs(1))
            // A busy machine may take long to start an interpreter.
            .handshake_timeout(2 * PATIENCE)
            .request_timeout(2 * PATIENCE)
            .roots([Root::new(ROOT)])
            .on_notification(move |notification| news.push(notification))
            .on_sampling(move |request| {
                let asked = request.messages.iter().flat_map(|message| &message.content);
                let asked: String = asked.filter_map(|content| content.as_text()).collect();
                samplings.push(asked.clone());
                async move {
                    Ok(SamplingResult::text(
                        "echo-model",
                        format!("You said: {asked}"),
                    ))
                }
            })
            .on_elicitation(move |question| {
                forms.push(question.message.clone());
                let mut form = question.defaults();
                form.insert("name".to_owned(), json!("Ann"));
                async move { Ok(ElicitationAnswer::accept(form)) }
            })
            .on_url_elicitation(move |question| {
                addresses.push(question.message.clone());
                async { Ok(ElicitationAnswer::consent()) }
            })
    }

    /// Waits for a notification of this method.
    pub(crate) async fn told(&self, method: &str) -> Raw {
        self.told_from(0, method, |_| true).await
    }

    /// Waits for a notification of this method with matching parameters, after the first `skipped`
    /// notifications of any method.
    pub(crate) async fn told_from(
        &self,
        skipped: usize,
        method: &str,
        is_it: impl Fn(&Raw) -> bool,
    ) -> Raw {
        let find = |news: &Notification| {
            let params = news.params.clone().unwrap_or_else(Raw::empty_object);
            (news.method == method && is_it(&params)).then_some(params)
        };
        self.news.wait_from(skipped, method, find).await
    }
}
