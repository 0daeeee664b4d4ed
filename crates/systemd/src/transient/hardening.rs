//! The floor: what no workload may do, whatever its manifest says. Source of each directive:
//! systemd.exec(5), "Sandboxing" and "System Call Filtering".

use zbus::zvariant::Value;

use super::manager::Property;
use crate::unit::{Security, is_dropped};

/// What root in a workload may keep at most: the list that container runtimes agree on, without
/// what makes device nodes or writes the audit log.
const CAPABILITIES: [(&str, u32); 12] = [
    ("CHOWN", 0),
    ("DAC_OVERRIDE", 1),
    ("FOWNER", 3),
    ("FSETID", 4),
    ("KILL", 5),
    ("SETGID", 6),
    ("SETUID", 7),
    ("SETPCAP", 8),
    ("NET_BIND_SERVICE", 10),
    ("NET_RAW", 13),
    ("SYS_CHROOT", 18),
    ("SETFCAP", 31),
];

/// Directives that are the same for every workload.
const ALWAYS: [&str; 10] = [
    "PrivateDevices",
    "ProtectClock",
    "ProtectControlGroups",
    "ProtectHostname",
    "ProtectKernelLogs",
    "ProtectKernelModules",
    "ProtectKernelTunables",
    "RestrictRealtime",
    "LockPersonality",
    "MountAPIVFS",
];

/// The floor, with what the unit gives up on top of it.
pub(super) fn properties(security: &Security) -> Vec<Property> {
    let mut list: Vec<Property> = ALWAYS.iter().map(|name| (*name, Value::from(true))).collect();
    list.extend([
        ("NoNewPrivileges", Value::from(!security.allow_privilege_escalation)),
        ("RestrictSUIDSGID", Value::from(!security.allow_privilege_escalation)),
        ("CapabilityBoundingSet", Value::from(capabilities(&security.drop_capabilities))),
        ("DevicePolicy", Value::from("closed")),
        ("KeyringMode", Value::from("private")),
        ("ProtectProc", Value::from("invisible")),
        // None of the kinds of namespaces may be made.
        ("RestrictNamespaces", Value::from(0_u64)),
        ("RestrictAddressFamilies", allow(&["AF_INET", "AF_INET6", "AF_UNIX"])),
        ("SystemCallArchitectures", Value::from(vec!["native"])),
        ("SystemCallFilter", allow(&["@system-service"])),
        // A refused call is an error in the program, not the end of it.
        ("SystemCallErrorNumber", Value::from(EPERM)),
    ]);
    list
}

/// An allow-list.
fn allow(names: &[&'static str]) -> Value<'static> {
    Value::from((true, names.to_vec()))
}

/// "Operation not permitted". Source: errno(3).
const EPERM: i32 = 1;

/// The bits of the capabilities that are left. Source: capabilities(7).
fn capabilities(dropped: &[String]) -> u64 {
    CAPABILITIES.iter().filter(|(name, _)| !is_dropped(dropped, name)).fold(0, |all, (_, bit)| all | 1 << bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_taken_away_by_either_name() {
        let none: [String; 0] = [];
        let all = capabilities(&none);
        assert_ne!(all & (1 << 7), 0, "SETUID, for images that start as root and drop");
        assert_eq!(all & (1 << 21), 0, "SYS_ADMIN is nobody's");
        assert_eq!(capabilities(&["ALL".into()]), 0);
        assert_eq!(capabilities(&["CAP_NET_RAW".into()]), all & !(1 << 13));
        assert_eq!(capabilities(&["net_raw".into()]), all & !(1 << 13));
    }

    #[test]
    fn a_manifest_cannot_lower_the_floor() {
        let open = Security { allow_privilege_escalation: true, drop_capabilities: Vec::new() };
        let names: Vec<&str> = properties(&open).into_iter().map(|(name, _)| name).collect();
        for name in ["PrivateDevices", "RestrictNamespaces", "SystemCallFilter", "CapabilityBoundingSet"] {
            assert!(names.contains(&name), "{name}");
        }
    }
}
