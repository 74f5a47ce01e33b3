//! Any frames through the three engines: two bytes of length and an Ethernet frame, again and again. Each
//! frame is counted once, what is known stays known, and no flow takes more than its share of packets.

use capture::{End, Frame, LinkType};
use classify::{
    Engine, Settings,
    offline::{Counts, Run},
};
use std::cell::RefCell;

const SIGNATURES: &str = r"
[[signature]]
name = 'words'
pattern = '(?i)^(hello|help) [a-z]+\r?\n'
side = 'client'

[[signature]]
name = 'bytes'
pattern = '\xe3.{4}\x01'
within = 64
";

#[derive(serde::Deserialize)]
struct File {
    signature: Vec<classify::signatures::SignatureConfig>,
}

fn engine() -> Engine {
    let file: File = toml::from_str(SIGNATURES).expect("the signatures above are read");
    let settings = Settings { signatures: file.signature, names: 64, ..Settings::default() };
    Engine::new(&settings).expect("the engines can be set up")
}

thread_local! {
    // Takes milliseconds to set up; what it remembers of hosts is forgotten for each input.
    static ENGINE: RefCell<Engine> = RefCell::new(engine());
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    ENGINE.with_borrow_mut(|engine| {
        engine.forget();
        let mut run = Run::new(engine, 8);
        let mut done = Vec::new();
        let (mut rest, mut at_ns) = (data, 0);
        while let [high, low, more @ ..] = rest {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            let (bytes, after) = more.split_at(length.min(more.len()));
            rest = after;
            at_ns += 1_000_000;
            let length = length.max(bytes.len()) as u32;
            run.frame(
                &Frame { at_ns, interface: 0, link: LinkType::ETHERNET, bytes, length },
                &mut done,
            );
        }
        let counts = run.finish(End::Whole, &mut done);
        let Counts { frames, of_flows, lost_fragments, other_protocols, not_ip, damaged, .. } =
            counts;
        assert_eq!(frames, of_flows + lost_fragments + other_protocols + not_ip + damaged);
        assert_eq!(done.iter().map(|flow| flow.packets).sum::<u64>(), of_flows);
        for flow in done {
            assert!(flow.known_after.is_none_or(|packets| packets <= 32));
            assert!(flow.known_after.is_none() || flow.label.is_some());
        }
    });
}
