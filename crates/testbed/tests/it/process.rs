//! Programs that are started, and waiting.

use std::time::Duration;
use testbed::wait_until;

#[test]
fn waiting_says_what_it_waited_for() {
    let error = wait_until("the moon", Duration::from_millis(10), || false).unwrap_err();
    assert!(error.to_string().contains("the moon"), "{error}");
}

#[test]
fn all_that_a_process_wrote_is_there_once_it_has_ended() {
    for _ in 0..100 {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "echo out; echo err >&2"]);
        let mut process = testbed::Process::start(command).unwrap();
        wait_until("its end", Duration::from_secs(5), || process.ended().is_some()).unwrap();
        assert_eq!((process.stdout().as_str(), process.stderr().as_str()), ("out\n", "err\n"));
    }
}
