//! The Skills extension (SEP-2640): methods that the gateway does not know and relays.

use crate::sdks;

const SCENARIOS: [&str; 3] = [
    "sep-2640-skills-directory",
    "sep-2640-skills-enumeration",
    "sep-2640-skills-manifest",
];

#[test]
fn skills_of_a_typescript_server() {
    sdks::compare(
        |tools, place| vec![tools.node(), place.join("skills_server.mjs")],
        |suite, url| {
            let scenarios = SCENARIOS.iter();
            scenarios
                .flat_map(|scenario| suite.extension(url, scenario))
                .collect()
        },
    );
}
