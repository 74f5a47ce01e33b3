//! The timetable: a pure function of the jobs and of time.
//!
//! Time is cut into epochs that begin at multiples of the longest interval (of an hour at the least)
//! since 1970. Each epoch is planned by itself, so a station that starts in the middle of one comes to
//! the same timetable as those that have planned it from its beginning.
//!
//! ```text
//! epoch │ phase │  due ├─spread─┤            due + interval ├─spread─┤                      │ epoch
//!                        ▓▓▓▓▓ run                              ▓▓▓▓▓
//! ```
//!
//! Within an epoch a job is due every interval from its phase on, and its run begins within the spread
//! after that: at a scattered moment, or at the first one from there, else from the due time, at which
//! no run that was placed before is disturbed. Runs are placed in the order in which they are due. A run
//! for which there is no room is skipped, and the job's next ones are placed at once, before all that
//! is due earlier: so a job that went without is the first to choose. At an epoch's beginning each job
//! places its first run in an order that begins with another job every epoch. So the time between two
//! runs of a job is bounded, whatever the others want.

use super::{Class, Job, scatter};
use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap, VecDeque},
    sync::Arc,
};

/// The shortest epoch.
const SHORTEST_EPOCH_NS: u64 = 3_600_000_000_000;

/// What the timetable says about a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// It runs.
    Run {
        /// When, in nanoseconds since 1970.
        begin_ns: u64,
        /// When at the latest, so that the spread holds.
        latest_ns: u64,
        /// Which one, an index.
        job: usize,
    },
    /// There was no room for it at a time at which it was due.
    Skip {
        /// When it was due, in nanoseconds since 1970.
        due_ns: u64,
        /// Which one, an index.
        job: usize,
    },
}

impl Step {
    /// When it happens, in nanoseconds since 1970.
    pub const fn at_ns(&self) -> u64 {
        match self {
            Self::Run { begin_ns: at_ns, .. } | Self::Skip { due_ns: at_ns, .. } => *at_ns,
        }
    }

    /// Which job it is about, an index.
    pub const fn job(&self) -> usize {
        match self {
            Self::Run { job, .. } | Self::Skip { job, .. } => *job,
        }
    }
}

/// The timetable from a moment on: an iterator over its steps in the order of time, without end unless
/// there are no jobs.
#[derive(Clone, Debug)]
pub struct Plan {
    jobs: Arc<[Job]>,
    from_ns: u64,
    epoch_ns: u64,
    /// Number of the epoch that is planned.
    epoch: u64,
    /// For each station and link the runs that were placed: begin, end, job.
    placed: Vec<BTreeSet<(u64, u64, usize)>>,
    /// The longest run of all.
    longest_ns: u64,
    /// Which round of which job is to be placed next, by its due time.
    due: BinaryHeap<Reverse<(u64, usize, u64)>>,
    /// Steps that are not yet returned, because others may come before them.
    waiting: BinaryHeap<Reverse<(u64, Step)>>,
}

impl Plan {
    /// The timetable from a moment on, in nanoseconds since 1970. Runs never take longer than an
    /// interval less the spread.
    pub fn new(mut jobs: Vec<Job>, from_ns: u64) -> Self {
        for job in &mut jobs {
            job.interval_ns = job.interval_ns.max(1);
            job.spread_ns = job.spread_ns.min(job.interval_ns - 1);
            job.length_ns = job.length_ns.clamp(1, job.interval_ns - job.spread_ns);
        }
        let longest = jobs.iter().map(|job| job.interval_ns).max().unwrap_or(1);
        let epoch_ns = longest.saturating_mul(SHORTEST_EPOCH_NS.div_ceil(longest));
        let uses = jobs.iter().flat_map(|job| &job.uses).max().map_or(0, |most| *most as usize + 1);
        let longest_ns = jobs.iter().map(|job| job.length_ns).max().unwrap_or(0);
        let mut plan = Self {
            jobs: jobs.into(),
            from_ns,
            epoch_ns,
            epoch: from_ns / epoch_ns,
            placed: vec![BTreeSet::new(); uses],
            longest_ns,
            due: BinaryHeap::new(),
            waiting: BinaryHeap::new(),
        };
        plan.begin_epoch();
        plan
    }

    /// The jobs, in the order of their indices.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// When the epoch begins that is planned.
    fn begin_ns(&self) -> u64 {
        self.epoch.saturating_mul(self.epoch_ns)
    }

    /// When a job is due for the nth time in this epoch; `None` when that is in the next.
    fn due_ns(&self, job: usize, round: u64) -> Option<u64> {
        let Job { interval_ns, spread_ns, length_ns, seed, .. } = &self.jobs[job];
        let room = interval_ns - spread_ns - length_ns;
        let phase = scatter(*seed) % (room + 1);
        let due = phase.checked_add(round.checked_mul(*interval_ns)?)?;
        (due + spread_ns + length_ns <= self.epoch_ns).then(|| self.begin_ns().saturating_add(due))
    }

    /// The first moment of a job's nth window at which it disturbs nothing that was placed.
    fn room(&self, job: usize, round: u64, due_ns: u64) -> Option<u64> {
        let Job { spread_ns, length_ns, class, seed, .. } = &self.jobs[job];
        let last = due_ns + spread_ns;
        let wanted = due_ns + scatter(seed ^ scatter(self.epoch ^ (round << 20))) % (spread_ns + 1);
        let mut busy: Vec<(u64, u64)> = Vec::new();
        if *class != Class::Background {
            for used in &self.jobs[job].uses {
                let from = (due_ns.saturating_sub(self.longest_ns), 0, 0);
                let to = (last + length_ns, 0, 0);
                let near = self.placed[*used as usize].range(from..to);
                let near = near.filter(|(_, _, other)| class.disturbs(self.jobs[*other].class));
                busy.extend(near.map(|(begin, end, _)| (*begin, *end)));
            }
            busy.sort_unstable();
        }
        let first_free = |from: u64| {
            let mut at = from;
            for (begin, end) in &busy {
                if at + length_ns <= *begin {
                    break;
                }
                at = at.max(*end);
            }
            (at <= last).then_some(at)
        };
        first_free(wanted).or_else(|| first_free(due_ns))
    }

    /// Places a job's first run from a round on for which there is room; what is skipped before that is
    /// returned.
    fn schedule(&mut self, job: usize, round: u64) {
        let mut round = round;
        while let Some(due_ns) = self.due_ns(job, round) {
            if let Some(begin_ns) = self.room(job, round, due_ns) {
                let end = begin_ns + self.jobs[job].length_ns;
                let latest_ns = due_ns + self.jobs[job].spread_ns;
                let jobs = self.jobs.clone();
                if jobs[job].class != Class::Background {
                    for used in &jobs[job].uses {
                        self.placed[*used as usize].insert((begin_ns, end, job));
                    }
                }
                self.waiting.push(Reverse((begin_ns, Step::Run { begin_ns, latest_ns, job })));
                if let Some(next_ns) = self.due_ns(job, round + 1) {
                    self.due.push(Reverse((next_ns, job, round + 1)));
                }
                return;
            }
            self.waiting.push(Reverse((due_ns, Step::Skip { due_ns, job })));
            round += 1;
        }
    }

    fn begin_epoch(&mut self) {
        self.placed.iter_mut().for_each(BTreeSet::clear);
        let count = self.jobs.len();
        let first = if count == 0 { 0 } else { (self.epoch % count as u64) as usize };
        for job in (first..count).chain(0..first) {
            self.schedule(job, 0);
        }
    }

    /// Forgets runs that no later one can meet.
    fn forget(&mut self, job: usize, due_ns: u64) {
        for used in &self.jobs[job].uses {
            let placed = &mut self.placed[*used as usize];
            while placed.first().is_some_and(|(begin, _, _)| begin + self.longest_ns < due_ns) {
                placed.pop_first();
            }
        }
    }
}

impl Iterator for Plan {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        if self.jobs.is_empty() {
            return None;
        }
        loop {
            let reported = self.waiting.peek().map(|Reverse((at_ns, _))| *at_ns);
            let due = self.due.peek().map(|Reverse((due_ns, _, _))| *due_ns);
            match (reported, due) {
                // Nothing that is still to be placed begins before it is due.
                (Some(at_ns), due) if due.is_none_or(|due_ns| at_ns < due_ns) => {
                    let Reverse((_, step)) = self.waiting.pop()?;
                    if at_ns >= self.from_ns {
                        return Some(step);
                    }
                }
                (_, Some(_)) => {
                    let Reverse((due_ns, job, round)) = self.due.pop()?;
                    self.forget(job, due_ns);
                    self.schedule(job, round);
                }
                (_, None) => {
                    self.epoch = self.epoch.checked_add(1)?;
                    self.begin_epoch();
                }
            }
        }
    }
}

/// Steps of the near future that concern some jobs, taken from a timetable as time goes on.
#[derive(Clone, Debug)]
pub struct Ahead {
    plan: Plan,
    next: Option<Step>,
    steps: VecDeque<Step>,
}

impl Ahead {
    /// What a timetable says, from its beginning on.
    pub fn new(plan: Plan) -> Self {
        Self { plan, next: None, steps: VecDeque::new() }
    }

    /// Looks ahead until a moment; steps of jobs that are not wanted are passed over.
    pub fn look(&mut self, until_ns: u64, wanted: impl Fn(usize) -> bool) {
        loop {
            let Some(step) = self.next.take().or_else(|| self.plan.next()) else { return };
            if step.at_ns() > until_ns {
                self.next = Some(step);
                return;
            }
            if wanted(step.job()) {
                self.steps.push_back(step);
            }
        }
    }

    /// The steps that were seen and not yet taken.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter()
    }

    /// Takes the next step, when its time has come.
    pub fn take(&mut self, now_ns: u64) -> Option<Step> {
        if self.steps.front()?.at_ns() > now_ns { None } else { self.steps.pop_front() }
    }

    /// The jobs, in the order of their indices.
    pub fn jobs(&self) -> &[Job] {
        self.plan.jobs()
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
