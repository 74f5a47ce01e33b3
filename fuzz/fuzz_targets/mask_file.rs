//! Any bytes as a capture: the masked one can be read again and has as many packets.
#![no_main]

use capture::{ReadError, read};
use libfuzzer_sys::fuzz_target;
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

fuzz_target!(|data: &[u8]| {
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
});
