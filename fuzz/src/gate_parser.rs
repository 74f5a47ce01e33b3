//! Any bytes as the answers of a parser that was taken over: nothing panics, and what is believed is bounded
//! and can be written as it was read.
//!
//! The first byte chooses the parser, the rest is a frame's body.

use gate::{
    parser::{
        Parser,
        contents::Contents,
        frame::{self, Frame},
        names::Names,
    },
    torrents::Torrent,
};

fn answers<P: Parser>(body: &[u8]) -> Option<Vec<P::Answer>> {
    let mut answers = Vec::new();
    frame::answers::<P>(body, &mut answers).ok()?;
    // An answer takes at least a byte, so few bytes are few answers.
    assert!(answers.len() <= body.len());
    let mut again = Frame::default();
    answers.iter().for_each(|answer| again.push(answer));
    let mut same = Vec::new();
    frame::answers::<P>(again.body(), &mut same).expect("what was written from answers is answers");
    assert_eq!(same.len(), answers.len());
    Some(answers)
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let Some((&first, body)) = data.split_first() else { return };
    if first & 1 == 0 {
        let _ = answers::<Names>(body);
        return;
    }
    for answer in answers::<Contents>(body).unwrap_or_default() {
        for event in answer.events {
            if let gate::event::Event::Torrent { torrent, .. } = event {
                let Torrent { files, piece, .. } = &*torrent;
                assert!(*piece > 0 && files.iter().all(|file| file.at + file.size <= torrent.size()));
            }
        }
    }
}
