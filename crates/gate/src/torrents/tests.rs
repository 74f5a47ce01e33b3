//! The store with torrents made here.

use super::*;
use ring::digest::digest;

/// A torrent of these files with pieces of 32 KiB, and its content.
fn torrent(name: &str, files: &[(&str, usize)]) -> (Arc<Torrent>, Vec<u8>) {
    let size: usize = files.iter().map(|(_, size)| size).sum();
    let seed = name.len();
    let content: Vec<u8> = (0..size).map(|at| (at * 31 + at / 255 + seed) as u8).collect();
    let pieces: Vec<u8> = content
        .chunks(32_768)
        .flat_map(|piece| digest(&SHA1_FOR_LEGACY_USE_ONLY, piece).as_ref().to_vec())
        .collect();
    let mut info = b"d5:filesl".to_vec();
    for (path, size) in files {
        info.extend(format!("d6:lengthi{size}e4:pathl{}:{path}ee", path.len()).bytes());
    }
    info.extend(format!("e4:name{}:{name}12:piece lengthi32768e", name.len()).bytes());
    info.extend(format!("6:pieces{}:", pieces.len()).bytes());
    info.extend(pieces);
    info.push(b'e');
    (Arc::new(Torrent::of_info(&info).unwrap()), content)
}

fn blocks(content: &[u8]) -> impl DoubleEndedIterator<Item = (u32, u32, &[u8])> {
    let block = |(number, bytes)| (number as u32 / 2, number as u32 % 2 * BLOCK, bytes);
    content.chunks(BLOCK as usize).enumerate().map(block).collect::<Vec<_>>().into_iter()
}

fn read(store: &Store, whole: &Whole) -> Vec<u8> {
    let mut bytes = Vec::new();
    store.content(whole).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_file_is_given_out_once_all_its_pieces_are_right() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path().join("t"), 1 << 20);
    let (torrent, content) = torrent("two", &[("a", 40_000), ("empty", 0), ("b", 50_000)]);
    let hash = torrent.hash;
    assert_eq!(store.block(&hash, 0, 0, &content[..16_384]).unwrap().whole, []);
    assert_eq!(store.counts().unknown, 1);
    store.learn(Arc::clone(&torrent));
    let mut wholes = Vec::new();
    // From the end, as peers send in any order.
    for (index, begin, bytes) in blocks(&content).rev() {
        wholes.extend(store.block(&hash, index, begin, bytes).unwrap().whole);
    }
    let paths: Vec<_> = wholes.iter().map(|whole| whole.path.as_str()).collect();
    assert_eq!(paths, ["b", "a"]);
    assert_eq!(read(&store, &wholes[0]), content[40_000..]);
    assert_eq!(read(&store, &wholes[1]), content[..40_000]);
    assert_eq!(store.used(), 90_000);
    for whole in &wholes {
        store.verdict(whole, false);
    }
    assert_eq!((store.used(), fs::read_dir(folder.path().join("t")).unwrap().count()), (0, 0));
    assert!(!store.is_refused(&hash));
    // What was scanned is not scanned again.
    assert_eq!(store.block(&hash, 0, 0, &content[..16_384]).unwrap().whole, []);
    assert_eq!(store.counts().known, 1);
}

#[test]
fn a_wrong_block_costs_its_piece_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path().into(), 1 << 20);
    let (torrent, content) = torrent("one", &[("a", 40_000)]);
    store.learn(Arc::clone(&torrent));
    let mut wrong = content.clone();
    wrong[20_000] ^= 1;
    for (index, begin, bytes) in blocks(&wrong) {
        assert_eq!(store.block(&torrent.hash, index, begin, bytes).unwrap().whole, []);
    }
    assert_eq!((store.counts().wrong, store.counts().pieces), (1, 1));
    let mut wholes = Vec::new();
    for (index, begin, bytes) in blocks(&content) {
        wholes.extend(store.block(&torrent.hash, index, begin, bytes).unwrap().whole);
    }
    assert_eq!(read(&store, &wholes[0]), content);
    store.verdict(&wholes[0], true);
    assert!(store.is_refused(&torrent.hash));
    assert_eq!(store.used(), 0);
}

#[test]
fn blocks_that_do_not_fit_are_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path().into(), 1 << 20);
    let (torrent, content) = torrent("one", &[("a", 40_000)]);
    store.learn(Arc::clone(&torrent));
    for (index, begin, length) in [
        (0, 1, 16_384),
        (0, 0, 16_383),
        (0, 32_768, 1),
        (1, 0, 7_231),
        (2, 0, 1),
        (0, 0, 0),
        (0, 0, 32_768),
    ] {
        assert_eq!(store.block(&torrent.hash, index, begin, &content[..length]).unwrap().whole, []);
    }
    assert_eq!(store.block(&torrent.hash, u32::MAX, u32::MAX, &content[..1]).unwrap().whole, []);
    assert_eq!((store.counts().misplaced, store.used()), (8, 0));
}

#[test]
fn a_flood_of_torrents_stays_within_its_disk_space() {
    let folder = tempfile::tempdir().unwrap();
    let limit = 100_000;
    let mut store = Store::open(folder.path().into(), limit);
    let many: Vec<_> = (1..30).map(|n| torrent(&"n".repeat(n), &[("a", 30_000)])).collect();
    for (torrent, content) in &many {
        store.learn(Arc::clone(torrent));
        store.block(&torrent.hash, 0, 0, &content[..16_384]).unwrap();
        assert!(store.used() <= limit);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 6);
    // One that is larger than all there is gets what there is.
    let (large, content) = torrent("large", &[("a", 300_000)]);
    store.learn(Arc::clone(&large));
    for (index, begin, bytes) in blocks(&content) {
        assert_eq!(store.block(&large.hash, index, begin, bytes).unwrap().whole, []);
        assert!(store.used() <= limit);
    }
    assert_eq!(store.counts().no_room, 13);
    drop(store);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn whoever_fetches_a_whole_file_waits_for_its_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path().into(), 1 << 20);
    let (torrent, content) = torrent("two", &[("a", 40_000), ("b", 50_000)]);
    store.learn(Arc::clone(&torrent));
    let mut last = BlockOutcome::default();
    for (index, begin, bytes) in blocks(&content).take(4) {
        last = store.block(&torrent.hash, index, begin, bytes).unwrap();
    }
    assert_eq!((last.whole.len(), &last.awaits[..]), (1, &[0][..]));
    // The same from another peer: in the file, and in the piece that has both files.
    for (index, awaits) in [(0, &[0][..]), (1, &[0])] {
        let again = store.block(&torrent.hash, index, 0, &content[..16_384]).unwrap();
        assert_eq!((again.whole.len(), &again.awaits[..]), (0, awaits));
    }
    store.verdict(&last.whole[0], false);
    let again = store.block(&torrent.hash, 0, 0, &content[..16_384]).unwrap();
    assert_eq!(again, BlockOutcome::default());
    // A find is remembered, also when the torrent itself has been forgotten meanwhile.
    store.forget(&torrent.hash);
    store.verdict(&last.whole[0], true);
    assert!(store.is_refused(&torrent.hash));
    assert!(store.block(&torrent.hash, 0, 0, &content[..16_384]).unwrap().dropped);
}
