//! Any bytes as the replies of a parser that was taken over, one after the other: what is believed is bounded over
//! all frames of a reply, and can be written as it was read.
//!
//! The first byte chooses the parser. The rest are frames as they come from its process: a length of four bytes,
//! little-endian, and a body; an empty one ends a reply. With the first frame that makes no sense the process would
//! be killed.

use gate::{
    event::Event,
    parser::{
        Parser,
        contents::Contents,
        frame::{self, Answers, Frame},
        names::Names,
    },
    torrents::Torrent,
};

/// Answers that are awaited.
const MOST: usize = 16;

/// The answers of all replies up to the first frame that makes no sense.
fn replies<P: Parser>(mut stream: &[u8]) -> Vec<Vec<P::Answer>> {
    let (mut all, mut answers) = (Vec::new(), Answers::<P>::new(MOST));
    while let Some((head, rest)) = stream.split_first_chunk() {
        let Ok(length) = frame::length(*head) else { break };
        let Some((body, rest)) = rest.split_at_checked(length) else { break };
        stream = rest;
        if body.is_empty() {
            all.push(std::mem::replace(&mut answers, Answers::new(MOST)).all());
        } else if answers.add(body).is_err() {
            break;
        }
    }
    for answers in &all {
        assert!(answers.len() <= MOST);
        let mut again = Frame::default();
        answers.iter().for_each(|answer| again.push(answer));
        let mut same = Answers::<P>::new(MOST);
        same.add(again.body()).expect("what was written from answers is answers");
        assert_eq!(same.all().len(), answers.len());
    }
    all
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let Some((&first, stream)) = data.split_first() else { return };
    if first & 1 == 0 {
        replies::<Names>(stream);
        return;
    }
    for answer in replies::<Contents>(stream).into_iter().flatten() {
        for event in answer.events {
            if let Event::Torrent { torrent, .. } = event {
                let Torrent { files, piece, .. } = &*torrent;
                assert!(
                    *piece > 0 && files.iter().all(|file| file.at + file.size <= torrent.size())
                );
            }
        }
    }
}
