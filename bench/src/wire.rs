//! Read, route, forward: the work of a gateway for every message that passes through it.

mod samples;

use std::{hint::black_box, time::Duration};

use bytes::Bytes;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use serde_json::Value;
use switchboard_wire::{Frame, Id, Message};

use crate::{
    Effort, Result,
    report::{Cell, Report, Table},
    stats::{Contender, Summary, race},
};
use samples::{Direction, Sample};

/// The new id of each message.
const NEW_ID: u32 = 4_000_123;

pub(crate) fn run(effort: Effort) -> Result<Report> {
    let (rounds, turn) = match effort {
        Effort::Quick => (10, Duration::from_micros(500)),
        // Many short turns: another program then interrupts only a few of them.
        Effort::Full => (400, Duration::from_micros(500)),
    };
    let mut ratios = Vec::new();
    let mut times = Vec::new();
    for sample in samples::all() {
        verify(&sample)?;
        let [ours, value, rmcp] = measure(&sample, rounds, turn)?;
        let name = [Cell::from(sample.name), sample.frame.len().into()];
        let ratio = |other: Summary| {
            [
                Cell::from(other.min / ours.min),
                (other.median / ours.median).into(),
            ]
        };
        ratios.push([name.to_vec(), ratio(rmcp).into(), ratio(value).into()].concat());
        let micros = |of: Summary| [Cell::from(of.min / 1e3), (of.median / 1e3).into()];
        let all = [ours, rmcp, value].map(micros);
        times.push([name.to_vec(), all.concat()].concat());
    }
    let ratios = Table {
        title: "Read, route and forward: time relative to this library",
        columns: vec![
            "message",
            "bytes",
            "rmcp (min)",
            "rmcp (median)",
            "Value (min)",
            "Value (median)",
        ],
        rows: ratios,
    };
    let times = Table {
        title: "Absolute figures: µs per message",
        columns: vec![
            "message",
            "bytes",
            "ours (min)",
            "ours (median)",
            "rmcp (min)",
            "rmcp (median)",
            "Value (min)",
            "Value (median)",
        ],
        rows: times,
    };
    let rules = format!(
        "{rounds} alternating rounds. Verified before: all three forward the same message, and this library changes only the ID."
    );
    Ok(Report {
        tables: vec![ratios, times],
        notes: vec![rules],
    })
}

/// The parts of a message that a router needs.
#[derive(Debug, PartialEq, Eq)]
struct Route {
    id: u64,
    method: Option<String>,
}

fn measure(sample: &Sample, rounds: u32, turn: Duration) -> Result<[Summary; 3]> {
    let mut contenders: Vec<Contender<'_>> = vec![
        Box::new(|times| repeat(times, sample, ours)),
        Box::new(|times| repeat(times, sample, value)),
        match sample.direction {
            Direction::FromServer => Box::new(|times| repeat(times, sample, rmcp_from_server)),
            Direction::FromClient => Box::new(|times| repeat(times, sample, rmcp_from_client)),
        },
    ];
    let summaries = race(&mut contenders, rounds, turn);
    summaries
        .try_into()
        .map_err(|_| "three contenders, three summaries".into())
}

fn repeat<T>(times: u32, sample: &Sample, forward: impl Fn(&Bytes) -> Result<T>) {
    for _ in 0..times {
        // Success has been verified before.
        let _ = black_box(forward(black_box(&sample.frame)));
    }
}

fn ours(frame: &Bytes) -> Result<(Route, Bytes)> {
    let id = Id::from(u64::from(NEW_ID));
    match Frame::parse(frame.clone())? {
        Frame::Single(Message::Response(response)) => {
            let route = Route {
                id: response
                    .id
                    .as_ref()
                    .and_then(Id::as_u64)
                    .ok_or("the ID is not a number")?,
                method: None,
            };
            Ok((route, response.with_id(&id)))
        }
        Frame::Single(Message::Request(request)) => {
            let out = request.with_id(&id);
            let route = Route {
                id: request.id.as_u64().ok_or("the ID is not a number")?,
                method: Some(request.method),
            };
            Ok((route, out))
        }
        _ => Err("neither a request nor a response".into()),
    }
}

fn value(frame: &Bytes) -> Result<(Route, Vec<u8>)> {
    let mut message: Value = serde_json::from_slice(frame)?;
    let id = message["id"].as_u64().ok_or("the ID is not a number")?;
    let method = message.get("method").and_then(Value::as_str);
    let method = method.map(str::to_owned);
    message["id"] = NEW_ID.into();
    Ok((Route { id, method }, serde_json::to_vec(&message)?))
}

fn rmcp_from_server(frame: &Bytes) -> Result<(Route, Vec<u8>)> {
    let mut message: ServerJsonRpcMessage = serde_json::from_slice(frame)?;
    let JsonRpcMessage::Response(response) = &mut message else {
        return Err("not a response to rmcp".into());
    };
    let id = number(&response.id)?;
    response.id = RequestId::Number(NEW_ID.into());
    let route = Route { id, method: None };
    Ok((route, serde_json::to_vec(&message)?))
}

fn rmcp_from_client(frame: &Bytes) -> Result<(Route, Vec<u8>)> {
    let mut message: ClientJsonRpcMessage = serde_json::from_slice(frame)?;
    let JsonRpcMessage::Request(request) = &mut message else {
        return Err("not a request to rmcp".into());
    };
    let route = Route {
        id: number(&request.id)?,
        method: Some(request.request.method().to_owned()),
    };
    request.id = RequestId::Number(NEW_ID.into());
    Ok((route, serde_json::to_vec(&message)?))
}

fn number(id: &RequestId) -> Result<u64> {
    match id {
        RequestId::Number(number) => Ok(u64::try_from(*number)?),
        RequestId::String(_) => Err("the ID is a string".into()),
    }
}

/// Verifies that all three route alike and forward the same message, and that ours changes nothing but the
/// id.
fn verify(sample: &Sample) -> Result<()> {
    let wrong = |who: &str| format!("{who} does not forward {:?} unchanged", sample.name);
    let mut expected: Value = serde_json::from_slice(&sample.frame)?;
    expected["id"] = NEW_ID.into();
    let (route, out) = ours(&sample.frame)?;
    let old = format!("\"id\":{}", route.id);
    let new = format!("\"id\":{NEW_ID}");
    let text = std::str::from_utf8(&sample.frame)?;
    if out != text.replacen(&old, &new, 1) {
        return Err(wrong("this library").into());
    }
    let others = [
        ("Value", value(&sample.frame)?),
        match sample.direction {
            Direction::FromServer => ("rmcp", rmcp_from_server(&sample.frame)?),
            Direction::FromClient => ("rmcp", rmcp_from_client(&sample.frame)?),
        },
    ];
    for (who, (other_route, out)) in others {
        if other_route != route || serde_json::from_slice::<Value>(&out)? != expected {
            return Err(wrong(who).into());
        }
    }
    Ok(())
}
