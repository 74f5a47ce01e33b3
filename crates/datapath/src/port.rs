//! An interface of a program, by its name: one that is missing is waited for, and one that went and came again has
//! another index.

use crate::attach::{AttachError, AttachMode, Attachment};
use nix::net::if_::if_nametoindex;
use tracing::{info, warn};

/// An interface that a program is to be on, in the calling thread's network namespace.
#[derive(Debug)]
pub struct Port {
    name: String,
    /// The index that was tried; 0 if there was none, or if it is to be tried again.
    index: u32,
    attachment: Option<Attachment>,
    why: Option<String>,
}

/// How it was attached, if it could be; and why not in the first way that was tried.
pub type Attached = (Option<Attachment>, Option<String>);

impl Port {
    /// Attaches the program by `attach`, if there is the interface; else [`Port::look`] does when it appears.
    ///
    /// # Errors
    /// Those of `attach`.
    pub fn open(
        name: &str,
        attach: impl Fn(u32) -> Result<Attached, AttachError>,
    ) -> Result<Self, AttachError> {
        let mut port = Self { name: name.to_owned(), index: 0, attachment: None, why: None };
        port.try_attach(attach)?;
        if port.index == 0 {
            warn!("there is no interface {name} yet; it is used when it appears");
        }
        Ok(port)
    }

    /// Attaches the program if the interface is there and the program is not on it any more; whether it did.
    pub fn look(&mut self, attach: impl Fn(u32) -> Result<Attached, AttachError>) -> bool {
        match self.try_attach(attach) {
            Ok(attached) => {
                if attached {
                    info!(interface = self.name, mode = ?self.mode(), why = self.why, "is there");
                }
                attached
            }
            Err(error) => {
                let why = error.to_string();
                if self.why.as_ref() != Some(&why) {
                    warn!(interface = self.name, "{why}");
                    self.why = Some(why);
                }
                false
            }
        }
    }

    fn try_attach(
        &mut self,
        attach: impl Fn(u32) -> Result<Attached, AttachError>,
    ) -> Result<bool, AttachError> {
        let index = if_nametoindex(self.name.as_str()).unwrap_or(0);
        let is_lost = self.attachment.as_ref().is_some_and(|on| !on.is_attached());
        if index == self.index && !is_lost {
            return Ok(false);
        }
        (self.index, self.attachment) = (0, None);
        if index != 0 {
            (self.attachment, self.why) = attach(index)?;
            self.index = index;
        } else {
            self.why = None;
        }
        Ok(index != 0)
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the program runs; none if it does not, or no longer.
    pub fn mode(&self) -> Option<AttachMode> {
        self.attachment.as_ref().filter(|on| on.is_attached()).map(Attachment::mode)
    }

    /// Why it does not run, or not in the first way that was tried; none if there is no such interface.
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// Whether there was no interface of this name at the last look.
    pub fn is_missing(&self) -> bool {
        self.index == 0 && self.why.is_none()
    }
}
