//! XDP programs run on frames from memory: BPF_PROG_TEST_RUN (bpf_prog_run in the kernel's manual).

use libbpf_rs::{ProgramInput, ProgramMut, libbpf_sys};
use std::time::Duration;

/// What an XDP program decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// An error of the program; the frame is dropped.
    Aborted,
    /// Dropped.
    Drop,
    /// Handed to the kernel.
    Pass,
    /// Sent out of the interface that it came in by.
    Tx,
    /// Sent elsewhere.
    Redirect,
}

/// A frame could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The kernel refused.
    #[error(
        "the kernel refuses to run the program on a frame of {length} bytes: {source}; frames must have 14 to about 3,500 bytes, and an interface that is named must exist"
    )]
    Refused {
        /// Length of the frame.
        length: usize,
        /// The kernel's answer.
        source: libbpf_rs::Error,
    },
    /// A verdict that no XDP program can give.
    #[error(
        "the program returned {0}, which is no XDP verdict; this is a defect, please report it"
    )]
    Unknown(u32),
}

/// Runs a frame once.
pub(crate) fn once(
    program: &ProgramMut<'_>,
    ifindex: Option<u32>,
    frame: &[u8],
) -> Result<(Verdict, Vec<u8>), RunError> {
    let mut out = vec![0; frame.len() + 256];
    let context = libbpf_sys::xdp_md {
        data_end: frame.len() as u32,
        ingress_ifindex: ifindex.unwrap_or(0),
        ..Default::default()
    };
    let mut context = bytes_of(context);
    let input = ProgramInput {
        context_in: Some(&mut context),
        data_in: Some(frame),
        data_out: Some(&mut out),
        ..ProgramInput::default()
    };
    let output = program
        .test_run(input)
        .map_err(|source| RunError::Refused { length: frame.len(), source })?;
    let verdict = match output.return_value {
        libbpf_sys::XDP_ABORTED => Verdict::Aborted,
        libbpf_sys::XDP_DROP => Verdict::Drop,
        libbpf_sys::XDP_PASS => Verdict::Pass,
        libbpf_sys::XDP_TX => Verdict::Tx,
        libbpf_sys::XDP_REDIRECT => Verdict::Redirect,
        other => return Err(RunError::Unknown(other)),
    };
    let length = output.data.map_or(0, |data| data.len());
    out.truncate(length);
    Ok((verdict, out))
}

/// Runs a frame `times` times over, each run on what the one before left of it. Gives the processor
/// time of all of them.
pub(crate) fn repeat(
    program: &ProgramMut<'_>,
    frame: &[u8],
    times: u32,
) -> Result<Duration, RunError> {
    let mut out = vec![0; frame.len() + 256];
    let input = ProgramInput {
        data_in: Some(frame),
        data_out: Some(&mut out),
        repeat: times,
        ..ProgramInput::default()
    };
    let clock = || {
        let clock = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID;
        Duration::from(nix::time::clock_gettime(clock).expect("every thread has this clock"))
    };
    let start = clock();
    program.test_run(input).map_err(|source| RunError::Refused { length: frame.len(), source })?;
    Ok(clock() - start)
}

fn bytes_of(context: libbpf_sys::xdp_md) -> [u8; size_of::<libbpf_sys::xdp_md>()] {
    let words = [
        context.data,
        context.data_end,
        context.data_meta,
        context.ingress_ifindex,
        context.rx_queue_index,
        context.egress_ifindex,
    ];
    let mut bytes = [0; size_of::<libbpf_sys::xdp_md>()];
    for (to, word) in bytes.chunks_exact_mut(size_of::<u32>()).zip(words) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}
