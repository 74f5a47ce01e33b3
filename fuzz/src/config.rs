//! Any bytes as a configuration file: it is found good or refused with places that are in the file,
//! and the findings can be shown.

use std::path::Path;

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let report = match nigh::config::parse(data, Path::new("nigh.toml")) {
        Ok(loaded) => {
            assert!(!loaded.report.has_errors());
            assert_eq!(loaded.jobs.problems(), []);
            loaded.report
        }
        Err(report) => {
            assert!(report.has_errors(), "refused without saying why");
            report
        }
    };
    let lines = data.split(|byte| *byte == b'\n').count();
    for finding in &report.findings {
        assert!((1..=lines).contains(&finding.line), "{finding:?} of {lines} lines");
        assert!(finding.column >= 1 && finding.length >= 1);
    }
    let shown = report.render() + &report.sentence();
    assert!(!shown.contains('\x1b'));
}
