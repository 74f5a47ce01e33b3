//! The gate's programs run on frames from memory (BPF_PROG_TEST_RUN).

use super::skeleton::types::__sk_buff;
use super::{Direction, Gate};
use libbpf_rs::ProgramInput;
use std::mem::offset_of;
use std::time::Duration;

/// Bytes of a program's context, and where in them the words of [`Meta`] are.
const CONTEXT: usize = size_of::<__sk_buff>();
const WORDS: [usize; 4] = [
    offset_of!(__sk_buff, mark),
    offset_of!(__sk_buff, priority),
    offset_of!(__sk_buff, gso_size),
    offset_of!(__sk_buff, gso_segs),
];

/// What a program of the kernel's traffic control decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TcVerdict {
    /// On to whoever is next.
    Next,
    /// Dropped.
    Drop,
    /// Sent elsewhere.
    Redirect,
}

/// A frame could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The kernel refused.
    #[error("the kernel refuses to run the gate's program on a frame of {length} bytes: {source}")]
    Refused {
        /// Length of the frame.
        length: usize,
        /// The kernel's answer.
        source: libbpf_rs::Error,
    },
    /// A verdict that the programs do not give.
    #[error("the program returned {0}; this is a defect, please report it")]
    Unknown(i32),
}

/// The metadata of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Its mark.
    pub mark: u32,
    /// Its priority: the class that it queues in.
    pub priority: u32,
    /// Bytes of payload in each segment of a super-packet.
    pub gso_size: u32,
    /// Segments of it.
    pub gso_segs: u32,
}

impl Gate {
    /// Runs one frame through a direction's program; the verdict, the frame as it would leave, and what
    /// of its metadata. It counts like any other frame; its interface is `lo`'s.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn run(
        &self,
        direction: Direction,
        frame: &[u8],
        meta: Meta,
    ) -> Result<(TcVerdict, Vec<u8>, Meta), RunError> {
        let mut out = vec![0; frame.len() + 256];
        let mut context = [0; CONTEXT];
        let words = [meta.mark, meta.priority, meta.gso_size, meta.gso_segs];
        for (at, word) in WORDS.into_iter().zip(words) {
            context[at..at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        let mut after = context;
        let (value, length) = {
            let input = ProgramInput {
                context_in: Some(&mut context),
                context_out: Some(&mut after),
                data_in: Some(frame),
                data_out: Some(&mut out),
                ..ProgramInput::default()
            };
            let output = self
                .program(direction)
                .test_run(input)
                .map_err(|source| RunError::Refused { length: frame.len(), source })?;
            (output.return_value as i32, output.data.map_or(0, |data| data.len()))
        };
        let verdict = match value {
            -1 => TcVerdict::Next,
            2 => TcVerdict::Drop,
            7 => TcVerdict::Redirect,
            other => return Err(RunError::Unknown(other)),
        };
        out.truncate(length);
        let [mark, priority, gso_size, gso_segs] = WORDS.map(|at| {
            let mut word = [0; 4];
            word.copy_from_slice(&after[at..at + 4]);
            u32::from_ne_bytes(word)
        });
        let meta = Meta { mark, priority, gso_size, gso_segs };
        Ok((verdict, out, meta))
    }

    /// Runs a frame `times` times over and gives what the kernel says that one run took.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn time(
        &self,
        direction: Direction,
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
        let output = self
            .program(direction)
            .test_run(input)
            .map_err(|source| RunError::Refused { length: frame.len(), source })?;
        Ok(output.duration)
    }

    fn program(&self, direction: Direction) -> &libbpf_rs::ProgramMut<'static> {
        let programs = &self.inner.skeleton.progs;
        match direction {
            Direction::FromInternal => &programs.gate_from_internal,
            Direction::ToInternal => &programs.gate_to_internal,
        }
    }
}
