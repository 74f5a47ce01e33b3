//! ASes, their routers, and who is linked to whom.

use super::Generate;
use super::draw::{Use, about, draw};
use crate::network::Relation;
use splitmix::Random;

/// The plane, in kilometres.
const WIDTH: f64 = 16_000.0;
const HEIGHT: f64 = 8_000.0;
const CITIES: u32 = 200;
/// How far from its city something is at most, in each direction.
const AROUND: f64 = 300.0;
/// How many routers of a large AS are considered for a link, of which the nearest is taken.
const CANDIDATES: u32 = 4;
/// Of the routers of an AS from the third on, the share that has a second link to one before.
const SECOND: f64 = 0.6;

/// In kilometres.
type Position = (f64, f64);

fn distance(a: Position, b: Position) -> f64 {
    // Only what is exact everywhere: the same seed makes the same network on every machine.
    let (x, y) = (a.0 - b.0, a.1 - b.1);
    (x * x + y * y).sqrt()
}

/// What kind of AS it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    One,
    Transit,
    Stub,
}

/// A link of both directions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) kilometres: f64,
    /// The lower of the tiers that it joins.
    pub(super) tier: Tier,
    /// What the AS of `to` is to that of `from`.
    pub(super) relation: Relation,
}

/// Where each AS begins, and the numbers that everything else follows from.
#[derive(Debug)]
pub(super) struct World {
    what: Generate,
    tier1: u32,
    /// ASes that sell transit, those at the top included. Stubs have the numbers from there on.
    sellers: u32,
    /// The first router of each AS.
    firsts: Vec<u32>,
    cities: Vec<Position>,
}

impl World {
    pub(super) fn new(what: &Generate) -> Self {
        let nodes = what.nodes;
        let tier1 = what.tier1.unwrap_or((nodes / 10).clamp(1, 12));
        // In large internets those at the top are larger than the others that sell.
        let top = (f64::from(nodes) / 20_000.0).clamp(1.0, 500.0) as u32;
        let each = what.transit * what.routers + (1.0 - what.transit) * what.stub_routers;
        let ases = f64::from(nodes.saturating_sub(tier1)) / each;
        let sellers = tier1 + (ases * what.transit) as u32;
        let mut firsts = Vec::with_capacity((ases * 1.1) as usize + tier1 as usize);
        let mut next = 0;
        while next < nodes {
            let number = firsts.len() as u32;
            firsts.push(next);
            let mut random = draw(what.seed, Use::Size, number, 0);
            let mean = if number < sellers { what.routers } else { what.stub_routers };
            let size = about(&mut random, if number < tier1 { top } else { 1 }, mean);
            // Something is left for the others that sell.
            let waiting = sellers.saturating_sub(number + 1);
            next += size.min((nodes - next).saturating_sub(waiting).max(1));
        }
        firsts.shrink_to_fit();
        let cities = (0..CITIES).map(|city| {
            let mut random = draw(what.seed, Use::City, city, 0);
            (random.share() * WIDTH, random.share() * HEIGHT)
        });
        let sellers = sellers.min(firsts.len() as u32);
        Self { what: what.clone(), tier1, sellers, cities: cities.collect(), firsts }
    }

    pub(super) fn nodes(&self) -> u32 {
        self.what.nodes
    }

    /// How many ASes there are.
    pub(super) fn ases(&self) -> u32 {
        self.firsts.len() as u32
    }

    /// The first router of each AS.
    pub(super) fn firsts(&self) -> &[u32] {
        &self.firsts
    }

    fn first(&self, number: u32) -> u32 {
        self.firsts.get(number as usize).copied().unwrap_or(self.what.nodes)
    }

    /// How many routers it has: at least one.
    fn routers(&self, number: u32) -> u32 {
        self.first(number + 1) - self.first(number)
    }

    /// One of the AS's routers, counted round.
    pub(super) fn router(&self, number: u32, position: u64) -> u32 {
        self.first(number) + (position % u64::from(self.routers(number))) as u32
    }

    fn tier(&self, number: u32) -> Tier {
        if number < self.tier1 {
            Tier::One
        } else if number < self.sellers {
            Tier::Transit
        } else {
            Tier::Stub
        }
    }

    /// How many IPv4 prefixes it has.
    pub(super) fn prefixes(&self, number: u32) -> u64 {
        let mut random = draw(self.what.seed, Use::Prefixes, number, 0);
        about(&mut random, 1, self.what.prefixes).into()
    }

    /// By how many bits one of its prefixes is longer than the largest ones.
    pub(super) fn longer(&self, number: u32, prefix: u64) -> u8 {
        draw(self.what.seed, Use::Longer, number, prefix as u32).below(3) as u8
    }

    /// Somewhere around a city.
    fn around(&self, city: u64, random: &mut Random) -> Position {
        let city = self.cities[(city % u64::from(CITIES)) as usize];
        let mut aside = || (random.share() + random.share() - 1.0) * AROUND;
        (city.0 + aside(), city.1 + aside())
    }

    /// The city where an AS is at home, and where there.
    fn home(&self, number: u32) -> (u64, Position) {
        let mut random = draw(self.what.seed, Use::Position, number, 0);
        // The lower of two: some cities have more ASes than others.
        let city = random.below(CITIES.into()).min(random.below(CITIES.into()));
        (city, self.around(city, &mut random))
    }

    /// Where a router of an AS is: the first one at home; those of tier 1 in all cities, those of others
    /// that sell at home and in some, those of stubs at home.
    fn position(&self, number: u32, router: u32) -> Position {
        if router == 0 {
            return self.home(number).1;
        }
        let mut random = draw(self.what.seed, Use::Router, number, router);
        let away = match self.tier(number) {
            Tier::One => true,
            Tier::Transit => random.below(3) == 0,
            Tier::Stub => false,
        };
        let city = if away { random.below(CITIES.into()) } else { self.home(number).0 };
        self.around(city, &mut random)
    }

    /// All lines that this AS has inside, and to ASes of lower numbers.
    pub(super) fn edges(&self, number: u32, mut give: impl FnMut(Line)) {
        self.inside(number, &mut give);
        let mut random = draw(self.what.seed, Use::Links, number, 0);
        let tier = self.tier(number);
        if tier == Tier::One {
            for other in 0..number {
                give(self.line(number, other, Relation::Peer, &mut random));
            }
            return;
        }
        let home = self.home(number).1;
        let nearer = |one: u32, two: u32| {
            let first = distance(self.home(one).1, home) <= distance(self.home(two).1, home);
            if first { one } else { two }
        };
        let mut chosen: Vec<u32> = Vec::new();
        let sellers = self.sellers.min(number);
        for _ in 0..about(&mut random, 1, self.what.providers).min(sellers) {
            // The third power makes a few very large.
            let mut skewed = || {
                let share = random.share();
                (share * share * share * f64::from(sellers)) as u32
            };
            let provider = nearer(skewed(), skewed());
            if !chosen.contains(&provider) {
                chosen.push(provider);
                give(self.line(number, provider, Relation::Provider, &mut random));
            }
        }
        let lowest = (number / 2).max(self.tier1);
        if tier == Tier::Stub || lowest == number {
            return;
        }
        for _ in 0..about(&mut random, 0, self.what.peers) {
            let mut like = || lowest + random.below(u64::from(number - lowest)) as u32;
            let peer = nearer(like(), like());
            if !chosen.contains(&peer) {
                chosen.push(peer);
                give(self.line(number, peer, Relation::Peer, &mut random));
            }
        }
    }

    /// A line between two ASes, where they are near each other.
    fn line(&self, number: u32, other: u32, relation: Relation, random: &mut Random) -> Line {
        let here = random.below(self.routers(number).into()) as u32;
        let at = self.position(number, here);
        let (there, kilometres) = self.nearest(other, self.routers(other), at, random);
        Line {
            from: self.first(number) + here,
            to: self.first(other) + there,
            kilometres,
            tier: self.tier(number).max(self.tier(other)),
            relation,
        }
    }

    /// The nearest of some of an AS's first routers, and how far it is.
    fn nearest(&self, number: u32, routers: u32, at: Position, random: &mut Random) -> (u32, f64) {
        let mut best = (0, f64::INFINITY);
        for candidate in 0..CANDIDATES.min(routers) {
            // All of few, some of many.
            let some = routers > CANDIDATES;
            let router = if some { random.below(routers.into()) as u32 } else { candidate };
            let far = distance(self.position(number, router), at);
            if far < best.1 {
                best = (router, far);
            }
        }
        best
    }

    /// The lines inside an AS: each router is linked to one before it, many of them to two.
    fn inside(&self, number: u32, give: &mut impl FnMut(Line)) {
        let (first, tier) = (self.first(number), self.tier(number));
        for router in 1..self.routers(number) {
            let mut random = draw(self.what.seed, Use::Inside, number, router);
            let at = self.position(number, router);
            let mut line = |to: u32, kilometres| {
                let (from, to) = (first + router, first + to);
                give(Line { from, to, kilometres, tier, relation: Relation::None });
            };
            let (one, far) = self.nearest(number, router, at, &mut random);
            line(one, far);
            if router > 1 && random.share() < SECOND {
                let two = random.below(u64::from(router) - 1) as u32;
                let two = if two >= one { two + 1 } else { two };
                line(two, distance(self.position(number, two), at));
            }
        }
    }
}
