//! Locations of the files on each system.

use std::path::{Path, PathBuf};

use switchboard_client_configs::{Client, Dirs, Os};

fn check(client: Client, os: Os, expected: &[&str]) {
    let dirs = Dirs::new("/h".into(), "/p".into(), os);
    let expected: Vec<_> = expected.iter().map(PathBuf::from).collect();
    assert_eq!(client.config_files(&dirs), expected, "{client} {os:?}");
}

#[test]
fn every_client_has_its_default_locations() {
    use Client::{
        ClaudeCode, ClaudeDesktop, Codex, Cursor, GeminiCli, OpenCode, VsCode, Windsurf, Zed,
    };

    let desktop = "claude_desktop_config.json";
    let at = |folder: &str| format!("{folder}/Claude/{desktop}");
    check(ClaudeDesktop, Os::Linux, &[&at("/h/.config")]);
    check(
        ClaudeDesktop,
        Os::MacOs,
        &[&at("/h/Library/Application Support")],
    );
    let boxed = "/h/AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming";
    check(
        ClaudeDesktop,
        Os::Windows,
        &[&at("/h/AppData/Roaming"), &at(boxed)],
    );
    for (os, config) in [
        (Os::Linux, "/h/.config"),
        (Os::MacOs, "/h/Library/Application Support"),
        (Os::Windows, "/h/AppData/Roaming"),
    ] {
        check(ClaudeCode, os, &["/h/.claude.json", "/p/.mcp.json"]);
        check(Cursor, os, &["/h/.cursor/mcp.json", "/p/.cursor/mcp.json"]);
        let user = |variant: &str| format!("{config}/{variant}/User/mcp.json");
        let files = [user("Code"), user("Code - Insiders"), user("VSCodium")];
        let [stable, insiders, free] = files.each_ref().map(String::as_str);
        check(VsCode, os, &[stable, insiders, free, "/p/.vscode/mcp.json"]);
        check(
            Windsurf,
            os,
            &[
                "/h/.codeium/windsurf/mcp_config.json",
                "/h/.codeium/mcp_config.json",
            ],
        );
        check(
            OpenCode,
            os,
            &[
                "/h/.config/opencode/opencode.json",
                "/h/.config/opencode/opencode.jsonc",
                "/p/opencode.json",
                "/p/opencode.jsonc",
                "/p/.opencode/opencode.json",
                "/p/.opencode/opencode.jsonc",
            ],
        );
        check(
            Codex,
            os,
            &["/h/.codex/config.toml", "/p/.codex/config.toml"],
        );
        check(
            GeminiCli,
            os,
            &["/h/.gemini/settings.json", "/p/.gemini/settings.json"],
        );
    }
    let project = "/p/.zed/settings.json";
    check(Zed, Os::Linux, &["/h/.config/zed/settings.json", project]);
    check(Zed, Os::MacOs, &["/h/.config/zed/settings.json", project]);
    let roaming = "/h/AppData/Roaming/Zed/settings.json";
    check(Zed, Os::Windows, &[roaming, project]);
}

#[test]
fn moved_locations_are_found() {
    let dirs = Dirs {
        config: "/xdg".into(),
        codex_home: Some("/codex".into()),
        claude_config: Some("/claude".into()),
        ..Dirs::new("/h".into(), "/h".into(), Os::Linux)
    };
    let first = |client: Client| client.config_files(&dirs)[0].clone();
    assert_eq!(first(Client::Zed), Path::new("/xdg/zed/settings.json"));
    assert_eq!(
        first(Client::OpenCode),
        Path::new("/xdg/opencode/opencode.json")
    );
    assert_eq!(first(Client::Codex), Path::new("/codex/config.toml"));
    assert_eq!(first(Client::ClaudeCode), Path::new("/claude/.claude.json"));
    // In the home directory, the user's file and the project's are the same.
    assert_eq!(
        Client::Cursor.config_files(&dirs),
        [Path::new("/h/.cursor/mcp.json")]
    );
}
