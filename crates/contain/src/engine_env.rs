//! The environment variables that an engine's command uses itself, and the ones that it inherits.

use std::ffi::OsStr;

/// The variables that the engine's command uses and needs: to find its programs, its configuration, its
/// daemon, a registry.
const HEEDED_AND_NEEDED: [&str; 4] = [
    // The system, and the programs that podman starts.
    "PATH HOME USER TMPDIR SSH_AUTH_SOCK DBUS_SESSION_BUS_ADDRESS XDG_CONFIG_HOME XDG_DATA_HOME XDG_RUNTIME_DIR",
    // Go, in which both engines are written.
    "SSL_CERT_DIR SSL_CERT_FILE",
    // docker.
    "DOCKER_API_VERSION DOCKER_CERT_PATH DOCKER_CONFIG DOCKER_CONTENT_TRUST DOCKER_CONTENT_TRUST_SERVER \
     DOCKER_CONTEXT DOCKER_CUSTOM_HEADERS DOCKER_DEFAULT_PLATFORM DOCKER_HOST DOCKER_TLS DOCKER_TLS_VERIFY",
    // podman and its libraries.
    "CONTAINERS_CONF CONTAINERS_CONF_OVERRIDE CONTAINERS_HELPER_BINARY_DIR CONTAINERS_REGISTRIES_CONF \
     CONTAINERS_SHORT_NAME_ALIASING CONTAINERS_STORAGE_CONF CONTAINER_CONNECTION CONTAINER_HOST CONTAINER_SSHKEY \
     PODMAN_CONNECTIONS_CONF PODMAN_USERNS REGISTRY_AUTH_FILE STORAGE_DRIVER STORAGE_OPTS",
];

/// The variables that the engine's command uses and does not inherit.
const HEEDED: [&str; 4] = [
    // The system, and the programs that podman starts.
    "SHELL PWD NOTIFY_SOCKET DBUS_SYSTEM_BUS_ADDRESS XDG_CACHE_HOME XDG_CONFIG_DIRS XDG_DATA_DIRS",
    // The loader. Full names, because other variables share the prefix.
    "GLIBC_TUNABLES LD_AUDIT LD_BIND_NOT LD_BIND_NOW LD_DEBUG LD_DEBUG_OUTPUT LD_DYNAMIC_WEAK LD_HWCAP_MASK \
     LD_LIBRARY_PATH LD_ORIGIN_PATH LD_PRELOAD LD_PROFILE LD_PROFILE_OUTPUT LD_SHOW_AUXV LD_TRACE_LOADED_OBJECTS",
    // Go, in which both engines are written.
    "GODEBUG GOGC GOMAXPROCS GOMEMLIMIT GOTRACEBACK",
    // The gateway's marker.
    crate::instance::MARKER,
];

/// The variables that the engine's command needs, and for which a server may have its own values.
const NEEDED: [&str; 1] =
    ["ALL_PROXY HTTPS_PROXY HTTP_PROXY NO_PROXY http_proxy https_proxy no_proxy LANG"];

/// Tests if an environment variable has a meaning to the engine's command itself, or to the loader that
/// starts it, so that it cannot be passed on through its environment.
///
/// Full names are compared, because a value that cannot be passed on that way is visible to all in the
/// process list, and many keys share a prefix with these. For the same reason, engine variables that hold
/// secrets are left out, such as `DOCKER_AUTH_CONFIG`. At worst, the engine uses them to pull an image.
pub(crate) fn is_engine_env(name: &OsStr) -> bool {
    let has_prefix = |prefix: &str| name.as_encoded_bytes().starts_with(prefix.as_bytes());
    is_listed(&HEEDED_AND_NEEDED, name)
        || is_listed(&HEEDED, name)
        // Podman's internal variables, and those of the macOS loader; no other program uses these prefixes.
        || has_prefix("_CONTAINERS_")
        || has_prefix("DYLD_")
}

/// Tests if the engine's command needs this variable of the gateway's environment. Variables of the loader
/// and of Go, which change the way a program runs, do not count.
pub(crate) fn is_needed(name: &OsStr) -> bool {
    is_listed(&HEEDED_AND_NEEDED, name) || is_listed(&NEEDED, name)
}

fn is_listed(groups: &[&str], name: &OsStr) -> bool {
    groups
        .iter()
        .any(|names| names.split(' ').any(|listed| name == listed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engine_needs_neither_keys_nor_loader_settings() {
        for name in [
            "AWS_SECRET_ACCESS_KEY",
            "DOCKER_PASSWORD",
            "GODEBUG",
            "LD_PRELOAD",
            "DYLD_INSERT_LIBRARIES",
        ] {
            assert!(!is_needed(OsStr::new(name)), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "DOCKER_HOST",
            "XDG_RUNTIME_DIR",
            "https_proxy",
        ] {
            assert!(is_needed(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn keys_with_a_shared_prefix_stay_hidden() {
        for name in [
            "GOOGLE_API_KEY",
            "GOPATH_TOKEN",
            "CONTAINER_REGISTRY_PASSWORD",
            "CONTAINERD",
            "DOCKER_PASSWORD",
            "DOCKER_HUB_TOKEN",
            "DOCKER_AUTH_CONFIG",
            "LD_SDK_KEY",
            "PODMAN_TOKEN",
            "XDG_TOKEN",
            "DBUS_TOKEN",
            "BUILDKIT_TOKEN",
            "SWITCHBOARD_TOKEN",
            "PATH_TOKEN",
            "docker_host",
        ] {
            assert!(!is_engine_env(OsStr::new(name)), "{name}");
        }
        for name in [
            "PATH",
            "GODEBUG",
            "GOMEMLIMIT",
            "DOCKER_HOST",
            "CONTAINER_HOST",
            "CONTAINERS_CONF",
            "LD_PRELOAD",
            "DYLD_INSERT_LIBRARIES",
            "_CONTAINERS_USERNS_CONFIGURED",
            crate::instance::MARKER,
        ] {
            assert!(is_engine_env(OsStr::new(name)), "{name}");
        }
    }
}
