//! A lab's scene: a file of its own, checked like the configuration file.

use job::file::{Document, LoadError, Reader, Report, read};
use lab::{
    scene::{LabTable, SECTIONS, Scene},
    stage::{Stage, StageError},
};
use std::path::Path;

/// Why a scene cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SceneError {
    /// It cannot be read, or is not valid.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Its network cannot be used.
    #[error(transparent)]
    Stage(#[from] StageError),
}

/// Reads and checks the scene at `path`, and opens its network.
///
/// # Errors
///
/// See [`SceneError`]; [`LoadError::Wrong`] carries everything that was found.
pub fn load(path: &Path) -> Result<(Scene, Stage), SceneError> {
    let (bytes, _) = read(path)?;
    let mut report = Report::new(path);
    let folder = path.parent().unwrap_or(Path::new(""));
    match judge(&bytes, folder, &mut report)? {
        Some(good) if !report.has_errors() => Ok(good),
        _ => {
            report.finish();
            Err(LoadError::Wrong(report).into())
        }
    }
}

/// A section that shows that a supposed daemon configuration is a scene.
pub(super) fn section(reader: &Reader<'_, '_>) -> Option<&'static str> {
    ["node", "host", "wire", "event"].into_iter().find(|section| reader.is_list(section))
}

/// Checks a scene that is already in memory; `None` if the report has errors.
fn judge(
    bytes: &[u8],
    folder: &Path,
    report: &mut Report,
) -> Result<Option<(Scene, Stage)>, StageError> {
    let Some(document) = Document::parse(bytes, report) else { return Ok(None) };
    let mut reader = Reader::new(&document, Vec::new());
    reader.sections(&SECTIONS);
    let lab = reader.section("lab").unwrap_or(Some(LabTable::default()));
    let nodes = reader.section("node").unwrap_or_else(|| Some(Vec::new()));
    let links = reader.section("link").unwrap_or_else(|| Some(Vec::new()));
    let hosts = reader.section("host").unwrap_or_else(|| Some(Vec::new()));
    let wires = reader.section("wire").unwrap_or_else(|| Some(Vec::new()));
    let events = reader.section("event").unwrap_or_else(|| Some(Vec::new()));
    report.findings = reader.into_findings();
    let (Some(lab), Some(nodes), Some(links), Some(hosts), Some(wires), Some(events)) =
        (lab, nodes, links, hosts, wires, events)
    else {
        return Ok(None);
    };
    if report.has_errors() {
        // What is missing in the rest may only follow from these errors.
        return Ok(None);
    }
    let scene = Scene { lab, nodes, links, hosts, wires, events };
    document.add_problems(scene.problems(), report);
    if report.has_errors() {
        return Ok(None);
    }
    match scene.stage(folder) {
        Ok(stage) => Ok(Some((scene, stage))),
        Err(StageError::Problems(problems)) => {
            document.add_problems(problems, report);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
