//! Whether eBPF programs can encrypt.

use crate::load::{log_to_tracing, undisturbed};
use libbpf_rs::{
    ErrorKind, ProgramInput,
    skel::{OpenSkel as _, SkelBuilder as _},
};
use std::{mem::MaybeUninit, sync::OnceLock};

#[allow(missing_docs, unreachable_pub, clippy::all, clippy::undocumented_unsafe_blocks)]
#[allow(clippy::multiple_unsafe_ops_per_block, dead_code)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/cipher.skel.rs"));
}
use skeleton::CipherSkelBuilder;

/// Why a feature cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cannot {
    /// The kernel lacks something: this.
    #[error("this kernel {0}")]
    Lacks(String),
    /// It could not be asked: the process lacks rights or memory.
    #[error("this kernel cannot be asked what it can do: {0}")]
    Unknown(String),
}

/// Whether eBPF programs can encrypt by AES: `bpf_crypto_encrypt` without a vector and `ecb(aes)`, for
/// [`crate::mask`].
///
/// # Errors
/// When they cannot.
pub fn cipher() -> Result<(), Cannot> {
    static ANSWER: OnceLock<Result<(), Cannot>> = OnceLock::new();
    ANSWER.get_or_init(probe_cipher).clone()
}

fn probe_cipher() -> Result<(), Cannot> {
    log_to_tracing();
    let failed = |error: libbpf_rs::Error| match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::OutOfMemory => Cannot::Unknown(error.to_string()),
        _ => Cannot::Lacks(
            "does not let eBPF programs encrypt (bpf_crypto_encrypt as of Linux 6.12)".to_owned(),
        ),
    };
    let mut storage = MaybeUninit::uninit();
    let open = CipherSkelBuilder::default().open(&mut storage).map_err(failed)?;
    let skeleton = undisturbed(|| open.load()).map_err(failed)?;
    let made = skeleton.progs.cipher_create.test_run(ProgramInput::default()).map_err(failed)?;
    match made.return_value as i32 {
        0 => Ok(()),
        error => Err(Cannot::Lacks(format!(
            "has no cipher ecb(aes) for eBPF programs (error {error}; CONFIG_CRYPTO_AES, CONFIG_CRYPTO_ECB)"
        ))),
    }
}
