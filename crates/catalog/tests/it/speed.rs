//! Measurements. Not part of a test run, because they would fail on a busy machine:
//! `cargo test --release -p switchboard-catalog -- --ignored --nocapture --test-threads 1`.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use switchboard_catalog::{
    Catalog, Kind, Offers, Presented, ServerPart, Snapshot, load_all, write,
};
use switchboard_wire::Raw;

use crate::raw;

/// A tool of about 1 KB, like those of real servers.
fn tool(n: usize) -> Raw {
    let properties: Vec<_> = (0..6)
        .map(|p| format!(r#""argument_{p}":{{"type":"string","description":"What the argument number {p} of this tool is good for, in a sentence.","minLength":1}}"#))
        .collect();
    raw(format!(
        r#"{{"name":"tool_{n}","description":"Does what the tool \"{n}\" does, and says so at some length.","inputSchema":{{"type":"object","properties":{{{}}},"required":["argument_0"],"additionalProperties":false}}}}"#,
        properties.join(",")
    ))
}

fn snapshots(servers: usize, tools: usize) -> Vec<Snapshot> {
    (0..servers)
        .map(|server| Snapshot {
            server: format!("server-{server}"),
            fingerprint: "f".into(),
            held: switchboard_catalog::Held::default(),
            offers: Offers {
                tools: (0..tools).map(tool).collect(),
                ..Offers::default()
            }
            .into(),
        })
        .collect()
}

/// The median time of several runs.
fn median<T>(mut run: impl FnMut() -> T) -> Duration {
    let mut times: Vec<_> = (0..15)
        .map(|_| {
            let start = Instant::now();
            black_box(run());
            start.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

#[expect(clippy::print_stdout)] // Measurements are printed.
fn measure(what: &str, servers: usize, tools: usize, bound: Duration) {
    let home = tempfile::tempdir().unwrap();
    let snapshots = snapshots(servers, tools);
    let bytes: usize = snapshots
        .iter()
        .map(|snapshot| snapshot.encode().len())
        .sum();
    for snapshot in &snapshots {
        write(home.path(), snapshot).unwrap();
    }
    let load = median(|| load_all(home.path()));
    let prepare = |snapshot: &Snapshot| {
        ServerPart::prepare(&snapshot.server, snapshot.offers.clone(), &|_, _, _| {
            Presented::Unchanged
        })
        .into()
    };
    let build = median(|| Catalog::from_parts(snapshots.iter().map(prepare)));
    let catalog = Catalog::from_parts(snapshots.iter().map(prepare));
    let changed = catalog.server("server-0").unwrap().clone();
    let with = median(|| catalog.with("server-0", Some(changed.clone())));
    let look_up = median(|| {
        for _ in 0..1000 {
            black_box(catalog.tool(black_box("server-0__tool_7")));
        }
    });
    let suggest = median(|| catalog.suggest_tool("server-0__tol_7"));
    let first_page = median(|| {
        let fresh = catalog.with("server-0", Some(changed.clone()));
        fresh.page(Kind::Tool, None).unwrap().encoded(&[])
    });
    println!(
        "{what}: {bytes} bytes; load {load:?}, prepare and merge {build:?}, one server changed {with:?}, \
         first page {first_page:?}, look up {:?}, suggest {suggest:?}",
        look_up / 1000
    );
    assert!(load <= bound, "{what}: {load:?}");
}

#[test]
#[ignore = "a measurement"]
fn cold_start_is_fast() {
    measure("50 servers of 20 tools", 50, 20, Duration::from_millis(3));
    measure(
        "one server of 10,000 tools",
        1,
        10_000,
        Duration::from_millis(40),
    );
    measure(
        "50 servers of 200 tools",
        50,
        200,
        Duration::from_millis(40),
    );
}
