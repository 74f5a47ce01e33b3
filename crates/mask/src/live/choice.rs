//! Who masks: the kernel, or this process where the kernel cannot.

use super::LiveError;
use clap::ValueEnum;
use datapath::{
    kernel::{self, Cannot},
    mask::Engine,
};
use serde::Serialize;

/// Who is to mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// The kernel if it can encrypt, else this process
    Auto,
    /// The kernel, or nobody: no original byte reaches this process
    Kernel,
    /// This process, which original bytes reach
    Process,
}

/// Who masks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Chosen {
    /// The one.
    pub engine: Engine,
    /// What the kernel lacks, if it was to mask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_lacks: Option<String>,
}

impl Choice {
    /// Asks the kernel what it can do, if that matters.
    ///
    /// # Errors
    /// When only the kernel is to mask, and cannot.
    pub fn decide(self) -> Result<Chosen, LiveError> {
        self.decide_by(kernel::cipher)
    }

    fn decide_by(self, cipher: impl FnOnce() -> Result<(), Cannot>) -> Result<Chosen, LiveError> {
        let chosen = |engine, kernel_lacks| Ok(Chosen { engine, kernel_lacks });
        if self == Self::Process {
            return chosen(Engine::Process, None);
        }
        match cipher() {
            Err(Cannot::Lacks(what)) if self == Self::Auto => chosen(Engine::Process, Some(what)),
            Err(Cannot::Lacks(what)) => Err(LiveError::Lacks(what)),
            // Who may not ask may not load the programs either, and is told so there.
            Ok(()) | Err(Cannot::Unknown(_)) => chosen(Engine::Kernel, None),
        }
    }
}

impl Chosen {
    /// What has to be said of it before packets are taken.
    pub fn warning(&self) -> Option<String> {
        let told = "original bytes of packets reach this process, which masks them";
        match (&self.engine, &self.kernel_lacks) {
            (Engine::Kernel, _) => None,
            (Engine::Process, None) => Some(told.to_owned()),
            (Engine::Process, Some(what)) => {
                Some(format!("{told}: this kernel {what}; `--engine kernel` refuses that"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_masks_only_if_it_is_to_or_the_kernel_is_known_not_to() {
        let lacks = || Err(Cannot::Lacks("has no cipher".to_owned()));
        let unknown = || Err(Cannot::Unknown("not permitted".to_owned()));
        let engine = |choice: Choice, answer| {
            choice.decide_by(|| answer).map(|chosen| chosen.engine).map_err(|it| it.to_string())
        };
        for choice in [Choice::Auto, Choice::Kernel] {
            assert_eq!(engine(choice, Ok(())), Ok(Engine::Kernel));
            assert_eq!(engine(choice, unknown()), Ok(Engine::Kernel));
        }
        assert_eq!(engine(Choice::Auto, lacks()), Ok(Engine::Process));
        let refused = engine(Choice::Kernel, lacks()).expect_err("it is refused");
        assert!(refused.contains("this kernel has no cipher"), "{refused}");
        let asked = || panic!("the kernel need not be asked");
        let chosen = Choice::Process.decide_by(asked).expect("an engine");
        assert_eq!(chosen, Chosen { engine: Engine::Process, kernel_lacks: None });
    }

    #[test]
    fn that_original_bytes_get_here_is_said_with_the_reason() {
        let chosen =
            |engine, lacks: Option<&str>| Chosen { engine, kernel_lacks: lacks.map(str::to_owned) };
        assert_eq!(chosen(Engine::Kernel, None).warning(), None);
        let warning = chosen(Engine::Process, None).warning().expect("a warning");
        assert!(warning.starts_with("original bytes"), "{warning}");
        let warning = chosen(Engine::Process, Some("has no cipher")).warning().expect("a warning");
        assert!(warning.contains("this kernel has no cipher; `--engine kernel`"), "{warning}");
    }
}
