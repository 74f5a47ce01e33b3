//! A lab's scene: a file of its own, judged as the configuration file is.

use super::{LoadError, document, read, report::Report, shape, tell_problems};
use lab::scene::{LabTable, SECTIONS, Scene, Stage, StageError};
use std::path::Path;

/// Reads and judges the scene at `path`, and builds its network.
///
/// # Errors
///
/// See [`LoadError`]; [`LoadError::Wrong`] carries everything that was found.
pub fn load(path: &Path) -> Result<(Scene, Stage), LoadError> {
    let (bytes, _) = read(path)?;
    let mut report = Report::new(path);
    match judge(&bytes, &mut report) {
        Some(good) if !report.has_errors() => Ok(good),
        _ => {
            report.finish();
            Err(LoadError::Wrong(report))
        }
    }
}

/// Judges a scene that is already in memory; `None` when the report says why.
fn judge(bytes: &[u8], report: &mut Report) -> Option<(Scene, Stage)> {
    let (text, root) = document(bytes, report)?;
    let mut judge = shape::Judge::new(text, &root);
    judge.sections(&SECTIONS);
    let lab = judge.section("lab").unwrap_or(Some(LabTable::default()));
    let nodes = judge.section("node").unwrap_or_else(|| Some(Vec::new()));
    let links = judge.section("link").unwrap_or_else(|| Some(Vec::new()));
    let hosts = judge.section("host").unwrap_or_else(|| Some(Vec::new()));
    report.findings = judge.into_findings();
    let (Some(lab), Some(nodes), Some(links), Some(hosts)) = (lab, nodes, links, hosts) else {
        return None;
    };
    if report.has_errors() {
        // What is missing in the rest may only follow from what was wrong.
        return None;
    }
    let scene = Scene { lab, nodes, links, hosts };
    tell_problems(scene.problems(), text, &root, report);
    if report.has_errors() {
        return None;
    }
    match scene.stage() {
        Ok(stage) => Some((scene, stage)),
        Err(StageError(problems)) => {
            tell_problems(problems, text, &root, report);
            None
        }
    }
}
