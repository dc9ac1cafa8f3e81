//! Has a model answer a sampling request that a person approved.

use std::sync::Arc;

use switchboard_approvals::{Record, Usage};
use switchboard_base::scrub;
use switchboard_client::Raw;
use switchboard_config::ProviderKind;
use switchboard_provider::{Kind, Prices, Provider, Settings};
use switchboard_results::estimate_tokens;
use switchboard_wire::with_hint;

use super::Approvals;
use crate::question_limits::Charge;

/// A model's answer and its cost, or the reason why there is none.
pub(super) type Generated = Result<(Raw, Usage), Arc<str>>;

pub(super) async fn generate(approvals: &Arc<Approvals>, record: &Record) -> Generated {
    let provider = provider(approvals).await?;
    let server = &record.ask.server;
    if record.ask.allowed_by.is_none() {
        approvals.question_limits.approved(server);
    }
    let (request, model) = record.effective_request();
    let input = estimate_tokens(request.as_str()) as u64;
    let (output, cost) = provider.most(&request, input);
    let charge = Charge::new(input, output, cost.unwrap_or_default());
    approvals.question_limits.charge(server, &charge);
    let generated = provider.generate(&request, model.as_deref()).await;
    let generated = generated.map_err(|error| {
        if error.is_free() {
            approvals.question_limits.refund(server, &charge);
        }
        Arc::from(with_hint(&error, error.hint()))
    })?;
    let usage = generated.usage;
    let usage = Usage {
        model: usage.model.into(),
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cost: usage.cost,
        seconds: usage.took.as_secs_f64(),
    };
    approvals.question_limits.settle(server, &charge, &usage);
    Ok((generated.result, usage))
}

/// The configured provider, with its key resolved. Reads files, since the key may be in one.
async fn provider(approvals: &Arc<Approvals>) -> Result<Provider, Arc<str>> {
    let wanted = approvals.deps.config.load().sampling.provider.clone();
    let wanted =
        wanted.ok_or("the model is no longer configured: `sampling.provider` was removed")?;
    let approvals = Arc::clone(approvals);
    let reading = tokio::task::spawn_blocking(move || {
        let variable = |name: &str| approvals.deps.environment.get(name).map(Into::into);
        wanted.resolve(&approvals.deps.home.secrets(), &variable)
    });
    let wanted = reading
        .await
        .map_err(|error| Arc::from(error.to_string()))?
        .map_err(|error| Arc::from(with_hint(&error, error.hint())))?;
    scrub::register(scrub::Owner::Provider, &wanted.secrets).map_err(|error| {
        Arc::from(with_hint(
            format_args!("`sampling.provider` has {error}"),
            Some(error.hint()),
        ))
    })?;
    let wanted = wanted.value;
    let settings = Settings {
        kind: match wanted.kind {
            ProviderKind::OpenAi => Kind::OpenAi,
            ProviderKind::Anthropic => Kind::Anthropic,
        },
        base_url: wanted.base_url,
        model: wanted.model,
        models: wanted.models,
        api_key: wanted.api_key,
        max_tokens: Some(wanted.max_tokens),
        timeout: wanted.timeout,
        prices: wanted.prices.map(|prices| Prices {
            input: prices.input,
            output: prices.output,
        }),
    };
    Provider::new(settings).map_err(|error| Arc::from(with_hint(&error, error.hint())))
}
