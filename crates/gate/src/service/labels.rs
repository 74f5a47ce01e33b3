//! Numbers for labels: what the kernel's table keeps of a flow's label.
//!
//! The table outlives this process, so the numbers do too: each new one is appended to a file, one JSON
//! object a line, and read again at the next start. A reason is different for each flow; it is not kept.

use classify::label::{Category, Certainty, Engine, Label};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    path::Path,
};

/// Most labels that have a number; flows of others have number 0, as those that nobody named.
const LIMIT: usize = 10_000;
/// The reason of a label that was read back.
const EARLIER: &str = "named before the gate's last start";

/// What of a label has a number.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Numbered {
    application: String,
    detail: Option<String>,
    category: Category,
    certainty: Certainty,
    engine: Engine,
}

impl Numbered {
    fn of(label: &Label) -> Self {
        Self {
            application: label.application.clone().into_owned(),
            detail: label.detail.clone().map(Into::into),
            category: label.category,
            certainty: label.certainty,
            engine: label.engine,
        }
    }
}

/// All numbers that were given, from 1 on.
#[derive(Debug, Default)]
pub(super) struct Labels {
    list: Vec<Numbered>,
    numbers: HashMap<Numbered, u32>,
    file: Option<File>,
}

impl Labels {
    /// Reads the file and goes on writing it. A line that does not parse ends what is read: all after it
    /// would have another number.
    ///
    /// # Errors
    /// The file cannot be made, read or written.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut labels = Self::default();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
        let mut whole = 0;
        for line in BufReader::new(&file).split(b'\n').take(LIMIT) {
            let line = line?;
            let Ok(label) = serde_json::from_slice::<Numbered>(&line) else { break };
            whole += line.len() as u64 + 1;
            labels.add(label);
        }
        file.set_len(whole.min(file.metadata()?.len()))?;
        file.flush()?;
        labels.file = Some(file);
        Ok(labels)
    }

    fn add(&mut self, label: Numbered) -> u32 {
        self.list.push(label.clone());
        let number = u32::try_from(self.list.len()).unwrap_or(0);
        self.numbers.insert(label, number);
        number
    }

    /// The number of a label, a new one if need be; 0 when there are too many.
    pub(super) fn number(&mut self, label: &Label) -> u32 {
        let numbered = Numbered::of(label);
        if let Some(number) = self.numbers.get(&numbered) {
            return *number;
        }
        if self.list.len() >= LIMIT {
            return 0;
        }
        if let Some(file) = &mut self.file {
            let mut line = serde_json::to_vec(&numbered).unwrap_or_default();
            line.push(b'\n');
            if let Err(error) = file.write_all(&line) {
                tracing::warn!(%error, "labels are no longer saved for a restart");
                self.file = None;
            }
        }
        self.add(numbered)
    }

    /// The label of a number.
    pub(super) fn label(&self, number: u32) -> Option<Label> {
        let label = self.list.get(usize::try_from(number).ok()?.checked_sub(1)?)?;
        Some(Label {
            application: label.application.clone().into(),
            detail: label.detail.clone().map(Into::into),
            category: label.category,
            certainty: label.certainty,
            engine: label.engine,
            reason: EARLIER.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(application: &'static str) -> Label {
        Label {
            application: application.into(),
            detail: None,
            category: Category::Web,
            certainty: Certainty::Certain,
            engine: Engine::Ndpi,
            reason: "a test".into(),
        }
    }

    #[test]
    fn numbers_outlive_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gate/labels");
        let mut labels = Labels::open(&path).unwrap();
        assert_eq!([labels.number(&label("http")), labels.number(&label("tls"))], [1, 2]);
        assert_eq!(labels.number(&label("http")), 1);
        drop(labels);
        let mut labels = Labels::open(&path).unwrap();
        assert_eq!(labels.label(2).unwrap().application, "tls");
        assert_eq!(labels.label(0), None);
        assert_eq!(labels.label(3), None);
        assert_eq!(labels.number(&label("ssh")), 3);
    }

    #[test]
    fn a_line_cut_short_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("labels");
        let mut labels = Labels::open(&path).unwrap();
        labels.number(&label("http"));
        labels.number(&label("tls"));
        drop(labels);
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 5]).unwrap();
        let mut labels = Labels::open(&path).unwrap();
        assert_eq!(labels.label(2), None);
        assert_eq!(labels.number(&label("dns")), 2);
        drop(labels);
        assert_eq!(Labels::open(&path).unwrap().label(2).unwrap().application, "dns");
    }
}
