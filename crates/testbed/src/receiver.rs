//! Makes an end of a veth take the frames that a program at the other end sends with XDP_TX.
//!
//! The kernel (`veth_xdp_flush`, drivers/net/veth.c) wakes a receiver for them only if that has an
//! XDP program of its own; with generic receive offload alone they lie in its ring until something
//! else wakes it. A physical interface needs none of this.

use crate::{Error, Namespace};
use datapath::echo::{AttachMode, Attachment, EchoProgram};

/// An end of a veth that takes frames sent with XDP_TX, until this is dropped.
#[derive(Debug)]
pub struct Receiver {
    _attachment: Attachment,
    _program: EchoProgram,
}

impl Receiver {
    /// Attaches a program that passes every frame: the responder, answering for nobody.
    ///
    /// # Errors
    ///
    /// When there is no such interface, or a program is attached to it already.
    pub fn new(namespace: &Namespace, interface: &str) -> Result<Self, Error> {
        let what = format!("an XDP program on {interface} in {}", namespace.name());
        let fail = |why: String| Error::new(&what, why);
        let links = namespace.check(&["ip", "-j", "link", "show", "dev", interface])?;
        let links: serde_json::Value =
            serde_json::from_str(&links).map_err(|error| fail(error.to_string()))?;
        let index = links[0]["ifindex"].as_u64().and_then(|index| u32::try_from(index).ok());
        let index = index.ok_or_else(|| fail(format!("no index in {links}")))?;
        let program = EchoProgram::load().map_err(|error| fail(error.to_string()))?;
        let attachment = namespace
            .enter(|| program.attach(index, AttachMode::Native))
            .map_err(|error| fail(error.to_string()))?;
        Ok(Self { _attachment: attachment, _program: program })
    }
}
