//! Any bytes as each kind of file that networks are imported from. What is taken makes a network, and
//! what is not imported is reported.

use lab::import::{Format, ImportError, ImportOptions, Importer};
use std::path::Path;

/// The first byte chooses: as many as there are formats, and one for recognising it.
const FORMATS: [Option<Format>; 15] = [
    None,
    Some(Format::Traceroute),
    Some(Format::Nodes),
    Some(Format::Links),
    Some(Format::NodeAses),
    Some(Format::AsRelations),
    Some(Format::PrefixToAs),
    Some(Format::Mtr),
    Some(Format::MtrReport),
    Some(Format::Scamper),
    Some(Format::Warts),
    Some(Format::Atlas),
    Some(Format::OracleConf),
    Some(Format::OracleToml),
    Some(Format::GraphMl),
];

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let Some((first, mut rest)) = data.split_first() else { return };
    let format = FORMATS[usize::from(*first) % FORMATS.len()];
    let mut importer = Importer::new();
    let name = Path::new("some.file");
    // Two halves as two files: they refer to each other's nodes.
    if first & 0x80 != 0 {
        let (one, two) = rest.split_at(rest.len() / 2);
        let _ = importer.read(one, name, format, &mut |_| ());
        rest = two;
    }
    match importer.read(rest, name, format, &mut |_| ()) {
        Ok(()) => {}
        Err(ImportError::Unknown { .. }) => assert_eq!(format, None),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let (network, report) = importer.finish(&ImportOptions::default()).expect("it is small");
    assert_eq!((network.nodes(), network.links()), (report.nodes, report.links));
    let bad: u64 = report.files.iter().map(|file| file.bad).sum();
    assert_eq!(report.bad.iter().map(|count| count.count).sum::<u64>(), bad);
}
