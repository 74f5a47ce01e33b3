//! One frame through the program, without an interface: BPF_PROG_TEST_RUN.

use super::EchoProgram;
use crate::run;
pub use crate::run::{RunError, Verdict};

impl EchoProgram {
    /// Runs one frame of at least 14 bytes through the loaded program with its present settings and
    /// gives the verdict and the frame as it would leave. It counts like any other frame.
    ///
    /// `ifindex` is the interface on which it is to seem to arrive, for [`super::ReturnPath::Fib`].
    pub fn run(&self, ifindex: Option<u32>, frame: &[u8]) -> Result<(Verdict, Vec<u8>), RunError> {
        run::once(&self.skeleton.progs.echo, ifindex, frame)
    }
}
