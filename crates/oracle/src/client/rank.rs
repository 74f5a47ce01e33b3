//! `nigh oracle rank`: one question, one answer.

use super::{ClientError, ServerArgs, exchange::Exchange};
use crate::{
    candidate::{Candidate, NotACandidate},
    proxidor::{Query, Rcode},
};
use ipnet::IpNet;
use job::command::{Exit, print_result};
use serde::Serialize;
use std::{fmt, io::Read, str::FromStr, time::Duration};

/// How often a request is sent at most.
const TRIES: u32 = 3;

/// Arguments of `nigh oracle rank`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nigh oracle rank 198.51.100.7 203.0.113.9 2001:db8::7
  nigh oracle rank --server oracle.example.net --source 192.0.2.0/24 203.0.113.0/24 198.51.100.7
  cut -f1 peers.txt | nigh oracle rank - --json")]
pub struct Args {
    /// Addresses and prefixes of both families to rank; `-` reads them from stdin
    #[arg(required = true, value_name = "CANDIDATE")]
    pub candidates: Vec<Word>,
    /// Which oracle is asked.
    #[command(flatten)]
    pub server: ServerArgs,
    /// Rank from this address or prefix instead of the client's own, if the server allows it
    #[arg(long, value_name = "PREFIX", value_parser = parse_source)]
    pub source: Option<IpNet>,
    /// How long to wait for each of three tries
    #[arg(short, long, value_name = "TIME", default_value = "500ms",
          value_parser = config::duration)]
    pub timeout: Duration,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}

/// A word of the command line.
#[derive(Clone, Debug)]
pub enum Word {
    /// A candidate.
    Candidate(Candidate),
    /// `-`: the candidates of standard input.
    Input,
}

impl FromStr for Word {
    type Err = NotACandidate;

    fn from_str(text: &str) -> Result<Self, NotACandidate> {
        if text == "-" { Ok(Self::Input) } else { text.parse().map(Self::Candidate) }
    }
}

/// An address counts as the prefix that holds it alone.
fn parse_source(text: &str) -> Result<IpNet, String> {
    let address = text.parse::<std::net::IpAddr>().map(IpNet::from);
    address.or_else(|_| text.parse::<IpNet>()).map_err(|_| "neither an address nor a prefix".into())
}

/// The answer.
#[derive(Debug, Serialize)]
struct Ranking {
    /// Best first.
    candidates: Vec<String>,
    /// How long it holds, in seconds.
    ttl_seconds: u16,
    /// Numbers of the metrics that the server has.
    metrics: Vec<u8>,
    /// Whether the reply is cut: the missing candidates rank below.
    cut: bool,
    rtt_ms: f64,
}

impl fmt::Display for Ranking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.candidates.iter().try_for_each(|candidate| writeln!(f, "{candidate}"))
    }
}

/// Asks and prints the candidates, best first.
///
/// # Errors
/// See [`ClientError`]; no answer and a refusal are errors.
pub fn run(args: &Args) -> Result<Exit, ClientError> {
    let server = args.server.server()?;
    let candidates = candidates(&args.candidates)?;
    let (mut source4, mut source6) = (None, None);
    match args.source {
        Some(IpNet::V4(net)) => source4 = Some(net),
        Some(IpNet::V6(net)) => source6 = Some(net),
        None => {}
    }
    let query = Query {
        identification: rand::random(),
        metric: server.metric,
        source4,
        source6,
        key: server.key.as_ref(),
        candidates: &candidates,
    };
    let mut request = Vec::new();
    query.emit(&mut request)?;
    let mut exchange = Exchange::open(&server)?;
    for _ in 0..TRIES {
        let Some(answer) = exchange.ask(&request, args.timeout)? else { continue };
        let header = answer.reply.header;
        if !header.rcode.has_ranking() {
            return Err(ClientError::Refused { server: server.address, rcode: header.rcode });
        }
        let ranking = Ranking {
            candidates: answer.reply.candidates.iter().map(Candidate::to_string).collect(),
            ttl_seconds: header.ttl,
            metrics: (0..12).filter(|bit| header.servcode >> bit & 1 == 1).collect(),
            cut: header.rcode == Rcode::CUT,
            rtt_ms: answer.round_trip.as_secs_f64() * 1e3,
        };
        if ranking.cut {
            let missing = candidates.len() - ranking.candidates.len();
            eprintln!("the reply was truncated: the {missing} worst candidates are missing");
        }
        return Ok(print_result(args.json, &ranking)?);
    }
    Err(ClientError::NoReply { server: server.address, tries: TRIES, timeout: args.timeout })
}

/// The candidates of the words, those of standard input included.
fn candidates(words: &[Word]) -> Result<Vec<Candidate>, ClientError> {
    let mut candidates = Vec::new();
    for word in words {
        match word {
            Word::Candidate(candidate) => candidates.push(*candidate),
            Word::Input => {
                let mut input = String::new();
                std::io::stdin().take(1 << 20).read_to_string(&mut input)?;
                for word in input.split_whitespace() {
                    candidates.push(word.parse()?);
                }
            }
        }
    }
    Ok(candidates)
}
