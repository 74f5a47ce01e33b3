//! What a job can do on this kernel, for `nigh check --kernel`.

use datapath::{AttachMode, Denied, LoadError, capabilities, kernel::Interface};
use serde::Serialize;

/// Whether a job works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// As it is meant to.
    Works,
    /// By another way, which costs something.
    OtherWay,
    /// Not at all.
    Fails,
    /// This process may not find it out.
    Unknown,
}

impl How {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::OtherWay => "other way",
            Self::Fails => "does not work",
            Self::Unknown => "unknown",
        }
    }
}

/// What a job can do here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ability {
    /// Whether it works.
    pub how: How,
    /// How it works, what another way costs, or why it does not work and what to do.
    pub text: String,
}

/// The names of those interfaces that are wanted, for a sentence; empty if there is none.
pub fn names(interfaces: &[Interface], wanted: impl Fn(&Interface) -> bool) -> String {
    let names = interfaces.iter().filter(|it| wanted(it)).map(|it| it.name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

impl Ability {
    /// It works.
    pub fn works(text: impl Into<String>) -> Self {
        Self { how: How::Works, text: text.into() }
    }

    /// It works by another way; the text says what that costs.
    pub fn other_way(text: impl Into<String>) -> Self {
        Self { how: How::OtherWay, text: text.into() }
    }

    /// It does not work; the text says why.
    pub fn fails(text: impl Into<String>) -> Self {
        Self { how: How::Fails, text: text.into() }
    }

    /// The text says what it takes to find out.
    pub fn unknown(text: impl Into<String>) -> Self {
        Self { how: How::Unknown, text: text.into() }
    }

    /// A job whose program could not be loaded, and what it can do then.
    pub fn without_program(self, error: &LoadError) -> Self {
        match error {
            LoadError::NotPermitted { why: Denied::Missing(these), .. } => {
                let these = capabilities::list(these);
                Self::unknown(format!("without {these} its program cannot be tried"))
            }
            _ => Self { text: format!("{}: {error}", self.text), ..self },
        }
    }

    /// A job with a program that is attached by XDP to these interfaces.
    pub fn in_xdp(what: &str, interfaces: &[Interface]) -> Self {
        let at = |mode| names(interfaces, |it| it.exists && it.xdp == mode);
        let generic = at(Some(AttachMode::Generic));
        let parts = [
            ("native on", at(Some(AttachMode::Native)), ""),
            (
                "generic on",
                generic.clone(),
                " (slower: after the kernel has made a socket buffer of the packet)",
            ),
            ("native if the driver can, else generic, on", at(None), ""),
            ("waiting for", names(interfaces, |it| !it.exists), ""),
        ];
        let parts = parts.iter().filter(|(_, names, _)| !names.is_empty());
        let parts: Vec<_> =
            parts.map(|(how, names, cost)| format!("{how} {names}{cost}")).collect();
        let text = match parts.join("; ").as_str() {
            "" => format!("{what} in XDP"),
            parts => format!("{what} in XDP: {parts}"),
        };
        if generic.is_empty() { Self::works(text) } else { Self::other_way(text) }
    }

    /// The same with a further sentence.
    #[must_use]
    pub fn and(mut self, text: &str) -> Self {
        self.text = format!("{}; {text}", self.text);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, xdp: Option<AttachMode>) -> Interface {
        Interface {
            name: name.to_owned(),
            exists: true,
            driver: None,
            xdp,
            xdp_program: None,
            zero_copy: None,
            receive_timestamps: None,
            send_timestamps: None,
        }
    }

    #[test]
    fn generic_xdp_is_another_way() {
        let native = interface("eth0", Some(AttachMode::Native));
        let generic = interface("dummy0", Some(AttachMode::Generic));
        let silent = interface("eth1", None);
        let missing = Interface { exists: false, ..interface("eth9", None) };
        assert_eq!(Ability::in_xdp("answers", &[]), Ability::works("answers in XDP"));
        assert_eq!(
            Ability::in_xdp("answers", &[native.clone(), silent, missing]),
            Ability::works(
                "answers in XDP: native on eth0; native if the driver can, else generic, on eth1; waiting for eth9"
            )
        );
        let ability = Ability::in_xdp("answers", &[native, generic]);
        assert_eq!(ability.how, How::OtherWay);
        assert!(ability.text.contains("native on eth0; generic on dummy0 (slower"), "{ability:?}");
    }

    #[test]
    fn what_may_not_be_found_out_is_unknown() {
        let why = Denied::Missing(vec![crate::Capability::CAP_BPF]);
        let denied = LoadError::NotPermitted { program: "echo", why };
        let ability = Ability::fails("no").without_program(&denied);
        assert_eq!(ability.how, How::Unknown);
        assert!(ability.text.contains("without CAP_BPF its program"), "{ability:?}");
        let lacks = LoadError::Lacks {
            program: "echo",
            lacks: "it has no bpf_loop".into(),
            kernel: "5.10".into(),
        };
        let ability = Ability::other_way("the kernel answers").without_program(&lacks);
        assert_eq!(ability.how, How::OtherWay);
        assert!(ability.text.starts_with("the kernel answers: this kernel (Linux 5.10)"));
    }
}
