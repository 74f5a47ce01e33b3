//! Any bytes as the answers of a parser that was taken over: nothing panics, and what is believed is bounded
//! and can be written as it was read.
//!
//! The first byte chooses the parser, the rest is a frame's body.

use gate::{
    parser::{
        Parser,
        contents::Contents,
        frame::{Answers, Frame},
        names::Names,
    },
    torrents::Torrent,
};

/// Answers that are awaited.
const MOST: usize = 16;

fn answers<P: Parser>(body: &[u8]) -> Option<Vec<P::Answer>> {
    let read = |body: &[u8]| {
        let mut answers = Answers::<P>::new(MOST);
        answers.add(body).map(|()| answers.all())
    };
    let answers = read(body).ok()?;
    assert!(answers.len() <= MOST);
    let mut again = Frame::default();
    answers.iter().for_each(|answer| again.push(answer));
    let same = read(again.body()).expect("what was written from answers is answers");
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
                assert!(
                    *piece > 0 && files.iter().all(|file| file.at + file.size <= torrent.size())
                );
            }
        }
    }
}
