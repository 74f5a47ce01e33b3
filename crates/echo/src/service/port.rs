//! One interface on which requests arrive: keeps the program attached to it while it exists.

use super::{kernel::Link, probe::LoopProbe};
use crate::{
    config::Mode,
    status::{InterfaceMode, InterfaceStatus},
};
use datapath::echo::{AttachError, AttachMode, Attachment, EchoProgram};
use std::time::{Duration, Instant};

/// After a failure to attach, this long passes before the next attempt.
const RETRY: Duration = Duration::from_secs(1);

/// Who answers on an interface.
#[derive(Debug)]
enum Answers {
    /// The program.
    Program(Attachment),
    /// The kernel itself.
    Kernel,
    /// Nobody; the next attempt to change that is due at this time.
    Nobody(Option<Instant>),
}

/// One interface of `echo.interfaces`.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) mode: Mode,
    /// Its state at the last check; `None` while there is no such interface.
    pub(super) link: Option<Link>,
    /// Why it could not be checked since then.
    pub(super) unseen: Option<String>,
    /// Whether it has an address of its own, of IPv4 and of IPv6.
    pub(super) has_own: [bool; 2],
    /// The probes through the gateway, for each family.
    pub(super) probe4: LoopProbe,
    pub(super) probe6: LoopProbe,
    answers: Answers,
    why: Option<String>,
}

impl Port {
    pub(super) fn new(name: &str, mode: Mode) -> Self {
        Self {
            name: name.to_owned(),
            mode,
            link: None,
            unseen: None,
            has_own: [false; 2],
            probe4: LoopProbe::new(true),
            probe6: LoopProbe::new(false),
            answers: Answers::Nobody(None),
            why: None,
        }
    }

    /// Updates the state of the interface. Returns whether it is a different one than before, so that
    /// everything about it must be looked up again.
    pub(super) fn see(&mut self, link: Option<Link>) -> bool {
        let index = |link: &Option<Link>| link.as_ref().map(|link| link.index);
        let changed = index(&self.link) != index(&link);
        if changed {
            self.answers = Answers::Nobody(None);
            self.probe4.forget();
            self.probe6.forget();
        }
        if link.is_none() {
            self.why = Some(format!("there is no interface {}", self.name));
        }
        (self.link, self.unseen) = (link, None);
        changed
    }

    /// Whether the program is attached or need not be; else why not. A detachment by somebody
    /// else is noticed here.
    pub(super) fn verify(&mut self) -> Result<InterfaceMode, String> {
        if let Answers::Program(attachment) = &self.answers
            && !attachment.is_attached()
        {
            let why = "the program was detached by somebody else".to_owned();
            self.why = Some(why);
            self.answers = Answers::Nobody(Some(Instant::now() + RETRY));
        }
        match &self.answers {
            Answers::Program(_) | Answers::Kernel => Ok(self.answering()),
            Answers::Nobody(_) => Err(self.why.clone().unwrap_or_else(|| "not attached".into())),
        }
    }

    /// Attaches the program if that is due. Without a program the kernel answers.
    pub(super) fn attach(
        &mut self,
        program: Result<&EchoProgram, &str>,
    ) -> Result<(), AttachError> {
        let (Some(link), Answers::Nobody(due)) = (&self.link, &self.answers) else { return Ok(()) };
        if due.is_some_and(|due| Instant::now() < due) {
            return Ok(());
        }
        let (answers, why) = match (program, self.mode) {
            (_, Mode::Kernel) => (Answers::Kernel, Some("mode = \"kernel\"".to_owned())),
            (Err(why), _) => (Answers::Kernel, Some(why.to_owned())),
            (Ok(program), mode) => match attach(program, link.index, mode) {
                Ok((Some(attachment), why)) => (Answers::Program(attachment), why),
                Ok((None, why)) => (Answers::Kernel, why),
                Err(error) => {
                    self.why = Some(error.to_string());
                    self.answers = Answers::Nobody(Some(Instant::now() + RETRY));
                    return Err(error);
                }
            },
        };
        (self.answers, self.why) = (answers, why);
        let mode = self.answering();
        tracing::info!(interface = self.name, ?mode, why = self.why, "requests are answered");
        Ok(())
    }

    /// Makes the next attempt to attach due.
    pub(super) fn try_again(&mut self) {
        if let Answers::Nobody(due) = &mut self.answers {
            *due = None;
        }
    }

    /// Detaches the program, so that [`Port::attach`] attaches it in another mode.
    pub(super) fn set_mode(&mut self, mode: Mode) {
        if self.mode != mode {
            self.mode = mode;
            self.answers = Answers::Nobody(None);
        }
    }

    /// Who answers on it.
    pub(super) fn answering(&self) -> InterfaceMode {
        match &self.answers {
            Answers::Program(attachment) => match attachment.mode() {
                AttachMode::Native => InterfaceMode::Native,
                AttachMode::Generic => InterfaceMode::Generic,
            },
            Answers::Kernel => InterfaceMode::Kernel,
            Answers::Nobody(_) => InterfaceMode::Absent,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.up)
    }

    pub(super) fn status(&self) -> InterfaceStatus {
        InterfaceStatus {
            name: self.name.clone(),
            index: self.link.as_ref().map(|link| link.index),
            mode: self.answering(),
            why: self.why.clone(),
            up: self.is_up(),
        }
    }
}

/// Attaches in the first mode that works. `None` stands for the kernel, with the reason.
fn attach(
    program: &EchoProgram,
    index: u32,
    mode: Mode,
) -> Result<(Option<Attachment>, Option<String>), AttachError> {
    let first = match mode {
        Mode::Generic => AttachMode::Generic,
        _ => AttachMode::Native,
    };
    let cannot = |error: &AttachError| {
        matches!(error, AttachError::Unsupported { .. } | AttachError::SetUp { .. })
    };
    match program.attach(index, first) {
        Ok(attachment) => Ok((Some(attachment), None)),
        Err(native) if mode == Mode::Auto && cannot(&native) => {
            match program.attach(index, AttachMode::Generic) {
                Ok(attachment) => Ok((Some(attachment), Some(native.to_string()))),
                Err(generic) if cannot(&generic) => Ok((None, Some(generic.to_string()))),
                Err(error) => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}
