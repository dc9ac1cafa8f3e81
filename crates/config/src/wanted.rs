//! Variables that well-known servers read, but that they only get if their entries say so.

use crate::environment::Environment;
use crate::model::CommandLine;

/// Words in a server's command, such as the name of its package, and the variables that such a server
/// reads.
const WANTED: &[(&[&str], &[&str])] = &[
    (
        &["aws", "awslabs", "dynamodb", "s3", "bedrock"],
        &[
            "AWS_ACCESS_KEY_ID",
            "AWS_CONFIG_FILE",
            "AWS_DEFAULT_REGION",
            "AWS_PROFILE",
            "AWS_REGION",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AWS_SHARED_CREDENTIALS_FILE",
        ],
    ),
    (
        &["kubernetes", "k8s", "kubectl", "helm"],
        &["KUBECONFIG", "KUBERNETES_SERVICE_HOST"],
    ),
    (
        &["docker", "podman", "portainer"],
        &["DOCKER_CONTEXT", "DOCKER_HOST", "CONTAINER_HOST"],
    ),
    (
        &[
            "playwright",
            "puppeteer",
            "chrome",
            "browser",
            "browsermcp",
            "selenium",
        ],
        &[
            "DBUS_SESSION_BUS_ADDRESS",
            "DISPLAY",
            "PLAYWRIGHT_BROWSERS_PATH",
            "WAYLAND_DISPLAY",
            "XAUTHORITY",
        ],
    ),
    (
        &["blender", "figma", "desktop", "obsidian"],
        &[
            "DBUS_SESSION_BUS_ADDRESS",
            "DISPLAY",
            "WAYLAND_DISPLAY",
            "XAUTHORITY",
        ],
    ),
    (
        &["github"],
        &["GITHUB_PERSONAL_ACCESS_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"],
    ),
    (
        &["gitlab"],
        &["GITLAB_PERSONAL_ACCESS_TOKEN", "GITLAB_TOKEN"],
    ),
    (&["git", "ssh"], &["SSH_AUTH_SOCK"]),
    (
        &["android", "mobile"],
        &["ANDROID_HOME", "ANDROID_SDK_ROOT"],
    ),
    (&["brave"], &["BRAVE_API_KEY"]),
    (&["exa"], &["EXA_API_KEY"]),
    (&["firecrawl"], &["FIRECRAWL_API_KEY"]),
    (&["notion", "notionhq"], &["NOTION_TOKEN"]),
    (&["sentry"], &["SENTRY_ACCESS_TOKEN", "SENTRY_AUTH_TOKEN"]),
    (&["slack"], &["SLACK_BOT_TOKEN", "SLACK_TEAM_ID"]),
    (&["stripe"], &["STRIPE_SECRET_KEY"]),
    (&["tavily"], &["TAVILY_API_KEY"]),
    (
        &["npx", "npm", "bunx", "pnpm"],
        &["NODE_AUTH_TOKEN", "NPM_TOKEN"],
    ),
    (
        &["uvx", "uv"],
        &["UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_URL"],
    ),
    (&["pipx", "pip"], &["PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"]),
];

impl Environment {
    /// The variables that are set here and that a server with this command probably reads, but does not
    /// get.
    pub fn missed_by(&self, line: &CommandLine) -> Vec<&'static str> {
        let words = words(line);
        let is_said = |known: &&str| words.iter().any(|word| word == known);
        let wanted = WANTED.iter().filter(|(known, _)| known.iter().any(is_said));
        let mut missed: Vec<_> = wanted
            .flat_map(|(_, variables)| *variables)
            .copied()
            .filter(|name| self.withholds(name, line))
            .collect();
        missed.sort_unstable();
        missed.dedup();
        missed
    }
}

/// The words of the program's file name and of arguments that may name a package. Paths, addresses and
/// options do not identify the program.
fn words(line: &CommandLine) -> Vec<String> {
    let program = line.command.rsplit('/').next().unwrap_or_default();
    let args = line.args.iter().map(String::as_str);
    let named = args.filter(|arg| !arg.starts_with(['/', '.', '-', '~']) && !arg.contains("://"));
    std::iter::once(program)
        .chain(named)
        .flat_map(|text| text.split(|letter: char| !letter.is_ascii_alphanumeric()))
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Inherit;

    fn line(command: &str, args: &[&str]) -> CommandLine {
        CommandLine {
            command: command.to_owned(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            ..CommandLine::default()
        }
    }

    #[test]
    fn missed_variables_are_set_wanted_and_withheld() {
        let set = [
            "KUBECONFIG",
            "DISPLAY",
            "GITHUB_TOKEN",
            "AWS_PROFILE",
            "HOME",
        ];
        let environment = Environment::new(set.map(|name| (name.into(), "x".into())), None);
        for (line, missed) in [
            (
                line("npx", &["-y", "kubernetes-mcp-server@latest"]),
                &["KUBECONFIG"][..],
            ),
            (line("npx", &["@playwright/mcp"]), &["DISPLAY"]),
            (
                line("uvx", &["awslabs.aws-documentation-mcp-server"]),
                &["AWS_PROFILE"],
            ),
            (
                line("/opt/github-mcp-server", &["stdio"]),
                &["GITHUB_TOKEN"],
            ),
            (
                line("npx", &["-y", "server-filesystem", "/srv/github"]),
                &[],
            ),
            (line("npx", &["gitbook"]), &[]),
        ] {
            assert_eq!(environment.missed_by(&line), missed, "{line:?}");
        }
        let mut given = line("npx", &["kubernetes"]);
        given.inherit_env = Inherit::Names(vec!["KUBECONFIG".to_owned()]);
        assert!(environment.missed_by(&given).is_empty());
        let mut given = line("npx", &["kubernetes"]);
        given.env.insert("KUBECONFIG".to_owned(), "/own".to_owned());
        assert!(environment.missed_by(&given).is_empty());
    }
}
