//! Any bytes as a capture: the masked one can be read again and has as many packets.

use capture::{ReadError, read};
use mask::{
    file::{Job, MaskError},
    key,
    machine::MappingName,
    policy::Policy,
};
use std::sync::LazyLock;

static JOB: LazyLock<Job> = LazyLock::new(|| {
    let policy = Policy::shipped("research").expect("a policy");
    Job::new(&policy, key::fresh().expect("a key"), MappingName::CryptoPan).expect("a job")
});

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let mut out = Vec::new();
    let done = JOB.run(data, &mut out, 1);
    let mut count = 0;
    read::<ReadError>(&out[..], |_, _| {
        count += 1;
        Ok(())
    })
    .expect("a capture");
    match done {
        Ok(counts) => assert_eq!(counts.masked, count),
        Err(error) => assert!(matches!(error, MaskError::Read(_)), "{error}"),
    }
}
