//! Whether a host has what a configuration names: files for the daemon's user, and interfaces (`nigh check --host`).

use config::Problem;
use nix::{
    errno::Errno,
    net::if_::if_nametoindex,
    unistd::{AccessFlags, Group, Uid, User, access},
};
use std::{
    fs::{self, Metadata},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

/// Keys, without what is before the last dot, whose values are files that are read.
const READ: [&str; 10] = [
    "authority",
    "certificate",
    "client_ca",
    "file",
    "http_token",
    "key",
    "oracle_conf",
    "password_file",
    "shared_key",
    "token",
];
/// Those whose values are folders that are written, and made if they are missing.
const WRITTEN: [&str; 2] = ["folder", "state"];
/// Those whose values are sockets of other programs.
const SOCKETS: [&str; 2] = ["clamd", "socket"];
/// Those whose values are interfaces.
const INTERFACES: [&str; 2] = ["interfaces", "internal"];
/// What the unit hides (ProtectHome, PrivateTmp).
const HIDDEN: [&str; 4] = ["/home", "/root", "/tmp", "/var/tmp"];
/// What systemd makes of LoadCredential, for the unit alone.
const CREDENTIALS: &str = "/run/credentials/nigh.service";
/// The folders that the unit makes.
const MADE: [&str; 3] = ["/run/nigh", "/var/lib/nigh", "/var/log/nigh"];

/// What this process may not do with files that these values of a configuration name, and interfaces that are
/// missing: errors and warnings.
pub fn problems(values: &[(String, String)]) -> [Vec<Problem>; 2] {
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    for (key, value) in values {
        let last = key.rsplit('.').next().unwrap_or_default();
        let name = last.split('[').next().unwrap_or_default();
        let path = Path::new(value);
        if path.starts_with(CREDENTIALS) && !path.exists() {
            let why = format!("{value} is there only while the unit runs: it was not checked");
            warnings.push(Problem::new(key, why));
            continue;
        }
        let refused = if !path.is_absolute() {
            None
        } else if READ.contains(&name) {
            access(path, AccessFlags::R_OK).err().map(|why| format!("cannot read {value}: {why}"))
        } else if WRITTEN.contains(&name) {
            let (folder, flags) = (existing(path), AccessFlags::W_OK | AccessFlags::X_OK);
            access(folder, flags)
                .err()
                .filter(|_| !is_made(path, folder))
                .map(|why| format!("cannot write to {}: {why}", folder.display()))
        } else if SOCKETS.contains(&name) {
            let flags = AccessFlags::R_OK | AccessFlags::W_OK;
            access(path, flags).err().map(|why| cannot_open(path, why))
        } else if name == "commands" && last.ends_with("][0]") {
            access(path, AccessFlags::X_OK).err().map(|why| format!("cannot run {value}: {why}"))
        } else {
            None
        };
        let closed = refused.is_none().then(|| closed_by_unit(name, path)).flatten();
        warnings.extend(closed.map(|why| Problem::new(key, why)));
        errors.extend(refused.map(|why| Problem::new(key, why)));
        if INTERFACES.contains(&name) && if_nametoindex(value.as_str()).is_err() {
            let why = format!("there is no interface {value} now; it is used when it appears");
            warnings.push(Problem::new(key, why));
        }
    }
    [errors, warnings]
}

/// A socket that this process cannot open, and how it could.
fn cannot_open(path: &Path, why: Errno) -> String {
    let text = format!("cannot open {}: {why}", path.display());
    let group = fs::metadata(path).ok().and_then(|socket| group_of(&socket));
    match (group, User::from_uid(Uid::effective())) {
        (Some(group), Ok(Some(user))) if why == Errno::EACCES => {
            format!(
                "{text}; it is open to a group: `usermod -aG {group} {}`, then restart the daemon",
                user.name
            )
        }
        _ => text,
    }
}

/// The group that may use a socket, unless it is root's.
fn group_of(socket: &Metadata) -> Option<String> {
    if socket.mode() & 0o060 != 0o060 || socket.gid() == 0 {
        return None;
    }
    Some(Group::from_gid(socket.gid().into()).ok()??.name)
}

/// What the sandbox of contrib/nigh.service forbids with an absolute path, whoever the user is.
fn closed_by_unit(name: &str, path: &Path) -> Option<String> {
    let below = |folders: &[&str]| folders.iter().any(|folder| path.starts_with(folder));
    let (read, written) = (READ.contains(&name), WRITTEN.contains(&name));
    if (read || written) && below(&HIDDEN) {
        let path = path.display();
        Some(format!(
            "the unit has another /home, /root and /tmp, without {path}: use another folder"
        ))
    } else if written && path.is_absolute() && !below(&MADE) {
        let path = path.display();
        Some(format!(
            "the unit cannot write there without ReadWritePaths={path} and a line for AppArmor: \
             docs/systemd.md, Files"
        ))
    } else {
        None
    }
}

/// The path, or what there is of it.
fn existing(path: &Path) -> &Path {
    path.ancestors().find(|path| path.exists()).unwrap_or(path)
}

/// Whether the unit makes a part of the path that is missing.
fn is_made(path: &Path, existing: &Path) -> bool {
    MADE.iter().map(Path::new).any(|made| path.starts_with(made) && !existing.starts_with(made))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};

    fn found(key: &str, value: &str) -> [Vec<String>; 2] {
        let found = problems(&[(key.to_owned(), value.to_owned())]);
        found.map(|problems| problems.into_iter().map(|it| it.message).collect())
    }

    #[test]
    fn files_folders_and_interfaces_are_looked_for() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().to_str().unwrap();
        for (key, value, error) in [
            ("probe.security.key", "/nonexistent/k", "cannot read /nonexistent/k: ENOENT"),
            ("anycast.upstream[0].socket", "/nonexistent/s", "cannot open /nonexistent/s: ENOENT"),
            ("gate.audit.folder", "/etc/passwd/folder", "cannot write to /etc/passwd"),
            ("anycast.health.commands[0][0]", "/etc/passwd", "cannot run /etc/passwd: EACCES"),
        ] {
            let [errors, warnings] = found(key, value);
            assert!(errors.len() == 1 && errors[0].starts_with(error), "{errors:?}");
            assert!(warnings.is_empty(), "{warnings:?}");
        }
        let credential = "/run/credentials/nigh.service/isp-a";
        let [errors, warnings] = found("anycast.upstream[0].password_file", credential);
        assert!(errors.is_empty() && warnings.len() == 1, "{errors:?} {warnings:?}");
        // Open to its group alone; root's group is never advised.
        let socket = folder.path().join("bird.ctl");
        fs::write(&socket, "").unwrap();
        for (mode, advised) in [(0o660, true), (0o600, false)] {
            fs::set_permissions(&socket, Permissions::from_mode(mode)).unwrap();
            let gid = fs::metadata(&socket).unwrap().gid();
            let error = cannot_open(&socket, Errno::EACCES);
            assert_eq!(error.contains("`usermod -aG "), advised && gid != 0, "{error}");
        }
        let new = format!("{here}/new/state");
        for (key, value) in [
            ("node.state", "/var/lib/nigh"),
            ("probe.security.key", "relative"),
            ("echo.interfaces[0]", "lo"),
        ] {
            assert_eq!(found(key, value), [[""; 0], [""; 0]], "{key} {value}");
        }
        for (key, value) in [("gate.audit.folder", here), ("node.state", new.as_str())] {
            let [errors, warnings] = found(key, value);
            assert!(errors.is_empty(), "{errors:?}");
            assert!(warnings.len() == 1 && warnings[0].starts_with("the unit "), "{warnings:?}");
        }
        let closed = |name, path| closed_by_unit(name, Path::new(path)).unwrap_or_default();
        assert!(closed("folder", "/srv/it").contains("ReadWritePaths=/srv/it "));
        assert!(closed("key", "/root/it").contains("without /root/it"));
        for (name, path) in
            [("folder", "/var/lib/nigh/it"), ("key", "/srv/it"), ("folder", "it"), ("id", "/srv")]
        {
            assert_eq!(closed(name, path), "", "{name} {path}");
        }
        let made = |existing| is_made(Path::new("/var/lib/nigh/probe"), Path::new(existing));
        assert!(made("/var/lib") && !made("/var/lib/nigh"), "what the unit makes may be missing");
        let [errors, warnings] = found("gate.internal[1]", "no-such-if");
        assert!(errors.is_empty() && warnings[0].contains("no interface no-such-if"));
    }
}
