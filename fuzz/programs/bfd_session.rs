#![no_main]
#![allow(missing_docs, reason = "the macro makes public functions")]
libfuzzer_sys::fuzz_target!(|data: &[u8]| nigh_fuzz::bfd_session::run(data));
